package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/exit"
	"taxon/internal/secure"
)

func newCertsTokenCmd(a *app) *cobra.Command {
	var o certsOptions
	cmd := &cobra.Command{
		Use:   "token --dir DIR [--role ROLE]",
		Short: "token files for callers and servers",
		Long: "Makes a token for each --role (default all) in DIR/ROLE.token, for the --token-file of callers, keeps those that are there, " +
			"and writes DIR/ROLE.tokens for the --token-file of coordinator, store and worker, which hold their own token and hashes of the others. " +
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

// tokensReport is `taxon certs token --json`. It names files, never tokens.
type tokensReport struct {
	Callers []callerReport `json:"callers"`
	Servers []string       `json:"servers"` // files
}

type callerReport struct {
	Role string `json:"role"`
	File string `json:"file"`
	Made bool   `json:"made"` // now; false: kept
}

func runCertsToken(a *app, o certsOptions) error {
	names := o.roles
	if len(names) == 0 {
		if o.renew {
			return exit.Usagef("certs token: --renew: say whose tokens by --role")
		}
		names = secure.Roles()
	}
	roles, err := secure.ParseRoles(names)
	if err != nil {
		return exit.Usagef("certs token: %w", err)
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
