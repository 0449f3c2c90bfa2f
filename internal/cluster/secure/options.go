package secure

import (
	"errors"

	"github.com/spf13/pflag"
)

// Options is the security of one process, as set by its flags. The zero value is plaintext on
// loopback without identities.
type Options struct {
	CACert    string // PEM file: the authority that must have signed both sides' certificates
	Cert, Key string // PEM files: this process's certificate (chain) and key
	TokenFile string // a server's file has "role token" lines, a client's one token

	// RequireToken demands a token from every caller, also on loopback and with a certificate.
	RequireToken bool
	// Insecure allows plaintext, and callers without identity, beyond loopback.
	Insecure bool

	// Hosts are names, beside its own, under which callers without identity may reach a server of
	// HTTP.
	Hosts []string

	// ServerName is the name that servers' certificates must have; "": the dialled address.
	ServerName string

	// Role selects this process's own line in a token file with many roles, for its calls to
	// others; "": the file's only token.
	Role Role
	// Warn is called for what goes wrong outside of calls (such as a changed file that can't be
	// read; what was read before stays in use); nil: not called.
	Warn func(error)
	// Refused is called for each call that was denied or is beyond a limit. It must be quick. nil: not
	// called.
	Refused func(Refusal)
}

// AddFlags defines the flags that all processes and clients share.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.CACert, "tls-ca", o.CACert, "certificate authority, PEM `FILE` (see `taxon certs`)")
	f.StringVar(&o.Cert, "tls-cert", o.Cert, "own certificate, PEM `FILE`")
	f.StringVar(&o.Key, "tls-key", o.Key, "own private key, PEM `FILE` that others can't read")
	f.StringVar(&o.TokenFile, "token-file", o.TokenFile, "`FILE` with the token, for servers `role token` a line (see `taxon certs token`)")
	f.BoolVar(&o.RequireToken, "require-token", o.RequireToken, "refuse callers without a token, on loopback too")
	f.BoolVar(&o.Insecure, "insecure", o.Insecure, "allow plaintext and unknown callers beyond loopback")
	f.StringArrayVar(&o.Hosts, "allow-host", nil, "answer HTTP callers without identity also under the host `NAME`, such as a proxy's; repeated: several (default: addresses, localhost, this host's name and that of the address listened on)")
}

// AddClientFlags defines the flags of a verb that only calls.
func (o *Options) AddClientFlags(f *pflag.FlagSet) {
	f.StringVar(&o.CACert, "tls-ca", o.CACert, "certificate authority, PEM `FILE` (see `taxon certs`)")
	f.StringVar(&o.Cert, "tls-cert", o.Cert, "own certificate, PEM `FILE`")
	f.StringVar(&o.Key, "tls-key", o.Key, "own private key, PEM `FILE` that others can't read")
	f.StringVar(&o.TokenFile, "token-file", o.TokenFile, "`FILE` with one token")
	f.BoolVar(&o.Insecure, "insecure", o.Insecure, "allow plaintext beyond loopback")
}

// Validate checks the options together, and reports everything wrong.
func (o Options) Validate() error {
	var errs []error
	if (o.Cert == "") != (o.Key == "") {
		errs = append(errs, errors.New("‹tls-cert› and ‹tls-key› go together"))
	}
	if o.RequireToken && o.TokenFile == "" {
		errs = append(errs, errors.New("‹require-token› needs ‹token-file› (make one with `taxon certs token`)"))
	}
	return errors.Join(errs...)
}

// mutual says whether callers can prove themselves by certificates.
func (o Options) mutual() bool { return o.CACert != "" && o.Cert != "" && o.Key != "" }

// serverTLS says whether this process serves TLS.
func (o Options) serverTLS() bool { return o.Cert != "" && o.Key != "" }

// identified says whether callers need an identity.
func (o Options) identified() bool { return o.mutual() || o.TokenFile != "" || o.RequireToken }

func (o Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}
