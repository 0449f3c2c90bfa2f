package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/secure"
	"taxon/internal/ui/option"
)

// maxCertDays is ten years, the validity of the authority.
const maxCertDays = 3650

// certsOptions holds the flags of certs and of certs token.
type certsOptions struct {
	dir   string
	hosts []string
	roles []string
	name  string
	days  int
	renew bool
}

func newCertsCmd(a *app) *cobra.Command {
	var o certsOptions
	cmd := &cobra.Command{
		Use:     "certs --dir DIR [--host NAME,IP...]",
		GroupID: groupCluster,
		Short:   "certificates and tokens for a cluster's processes",
		Long: "Makes a private certificate authority in DIR, or uses the existing one, and a certificate of " +
			"it for each --host " +
			"(with the names and addresses by which others call it) or, without --host, for a caller of the --role given. " +
			"Running it again keeps certificates that match the flags, and replaces those that differ or have less than a " +
			"third of their time left. " +
			"Processes notice changed files. Keep ca.key off the hosts.",
		Example: "taxon certs --dir certs --host node-1,10.0.0.1 --host node-2,10.0.0.2\n" +
			"taxon certs --dir certs --role submit --name alice",
		RunE: func(cmd *cobra.Command, _ []string) error { return runCerts(a, o, time.Now()) },
	}
	flagGroup(cmd, "Certificates", func(f *pflag.FlagSet) {
		f.StringVar(&o.dir, "dir", "", "`DIR` of the authority and its certificates")
		f.StringArrayVar(&o.hosts, "host", nil, "`NAME,IP...` of one host; repeated: a certificate each")
		f.StringArrayVar(&o.roles, "role", nil, "`ROLE` that the certificate carries: "+strings.Join(secure.Roles(), ", ")+
			"; repeated: several (default for hosts coordinator, store and worker)")
		f.StringVar(&o.name, "name", "", "`NAME` of the files (default the host's, with the roles if given)")
		intFlag(f, &o.days, "days", 365, 1, maxCertDays, "`N` days that certificates are valid")
		f.BoolVar(&o.renew, "renew", false, "replace certificates even if they are still good")
	})
	require(cmd, "dir")
	cmd.AddCommand(newCertsTokenCmd(a))
	return cmd
}

// certsReport is the JSON output of `taxon certs`.
type certsReport struct {
	// Authority is the file for the flag --tls-ca.
	Authority string `json:"authority"`
	// Made reports that the authority was made now.
	Made bool `json:"made"`
	// Expires is the end of the authority's validity, in RFC 3339.
	Expires      string       `json:"expires"`
	Certificates []certReport `json:"certificates"`
}

// certReport describes a certificate.
type certReport struct {
	Cert  string   `json:"cert"`
	Key   string   `json:"key"`
	Hosts []string `json:"hosts"`
	Roles []string `json:"roles"`
	// Expires is in RFC 3339.
	Expires string `json:"expires"`
	// Made reports that it was made now and not kept.
	Made bool `json:"made"`
}

func runCerts(a *app, o certsOptions, now time.Time) error {
	requests, err := o.requests()
	if err != nil {
		return err
	}
	authority, err := secure.OpenAuthority(o.dir, now)
	if err != nil {
		return err
	}
	report := certsReport{
		Authority: authority.CertFile(), Made: authority.Made, Expires: authority.Expires().UTC().Format(time.RFC3339),
		Certificates: []certReport{},
	}
	for _, r := range requests {
		issued, err := authority.Issue(r, now)
		if err != nil {
			return option.Errorf("certs: %w", err)
		}
		report.Certificates = append(report.Certificates, certReport{
			Cert: issued.Cert, Key: issued.Key, Hosts: append([]string{}, r.Hosts...), Roles: secure.RoleNames(r.Roles),
			Expires: issued.Expires.UTC().Format(time.RFC3339), Made: issued.Made,
		})
	}
	if a.json {
		return a.printJSON(report)
	}
	fmt.Fprintf(a.stdout, "%s  authority, %s, until %s\n", report.Authority, madeOrKept(report.Made), report.Expires[:10])
	for _, c := range report.Certificates {
		fmt.Fprintf(a.stdout, "%s  %s, %s, until %s\n", c.Cert, strings.Join(c.Roles, " "), madeOrKept(c.Made),
			c.Expires[:10])
	}
	return nil
}

// requests returns the certificates that the flags ask for.
func (o certsOptions) requests() ([]secure.Request, error) {
	roles, err := secure.ParseRoles(o.roles)
	if err != nil {
		return nil, option.Errorf("certs: %w", err)
	}
	switch {
	case o.name != "" && len(o.hosts) > 1:
		return nil, option.Errorf("certs: --name is for one certificate, there are %d --host", len(o.hosts))
	case len(o.hosts) == 0 && len(roles) == 0 && (o.name != "" || o.renew):
		return nil, option.Errorf("certs: give --host or --role: whom is the certificate for?")
	case len(o.hosts) == 0 && len(roles) == 0:
		return nil, nil // the authority alone
	}
	return secure.Requests(o.hosts, secure.Request{Roles: roles, Name: o.name,
		Valid: time.Duration(o.days) * 24 * time.Hour, Renew: o.renew}), nil
}

func madeOrKept(made bool) string {
	if made {
		return "made"
	}
	return "kept"
}

func newCertsTokenCmd(a *app) *cobra.Command {
	var o certsOptions
	cmd := &cobra.Command{
		Use:   "token --dir DIR [--role ROLE]",
		Short: "token files for callers and servers",
		Long: "Makes a token for each --role (default all) in DIR/ROLE.token, for the --token-file of callers, " +
			"keeps existing ones, " +
			"and writes DIR/ROLE.tokens for the --token-file of coordinator, store and worker, which hold their own token and " +
			"hashes of the others. " +
			"With --renew the tokens of the roles given are replaced; the last ones stay valid until the next renewal.",
		Example: "taxon certs token --dir certs\ntaxon certs token --dir certs --role submit --renew",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runCertsToken(a, o) },
	}
	flagGroup(cmd, "Tokens", func(f *pflag.FlagSet) {
		f.StringVar(&o.dir, "dir", "", "`DIR` of the files")
		f.StringArrayVar(&o.roles, "role", nil, "`ROLE` to make a token for; repeated: several (default all)")
		f.BoolVar(&o.renew, "renew", false, "replace the tokens of the roles given")
	})
	require(cmd, "dir")
	return cmd
}

// tokensReport is the JSON output of `taxon certs token`. It names files, never tokens.
type tokensReport struct {
	Callers []callerReport `json:"callers"`
	// Servers are files.
	Servers []string `json:"servers"`
}

// callerReport describes a caller's token.
type callerReport struct {
	Role string `json:"role"`
	File string `json:"file"`
	// Made reports that it was made now and not kept.
	Made bool `json:"made"`
}

func runCertsToken(a *app, o certsOptions) error {
	names := o.roles
	if len(names) == 0 {
		if o.renew {
			return option.Errorf("certs token: --renew: say whose tokens by --role")
		}
		names = secure.Roles()
	}
	roles, err := secure.ParseRoles(names)
	if err != nil {
		return option.Errorf("certs token: %w", err)
	}
	callers, servers, err := secure.MakeTokens(o.dir, roles, o.renew)
	if err != nil {
		return err
	}
	report := tokensReport{Callers: []callerReport{}, Servers: servers}
	for _, c := range callers {
		report.Callers = append(report.Callers, callerReport{Role: string(c.Role), File: c.Path, Made: c.Made})
	}
	if a.json {
		return a.printJSON(report)
	}
	for _, c := range report.Callers {
		fmt.Fprintf(a.stdout, "%s  for callers of role %s, %s\n", c.File, c.Role, madeOrKept(c.Made))
	}
	for _, s := range servers {
		fmt.Fprintf(a.stdout, "%s  for the server\n", s)
	}
	return nil
}
