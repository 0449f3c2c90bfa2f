package secure

import (
	"errors"

	"github.com/spf13/pflag"
)

// Options configure the security of one process, as its flags set it. The zero value means
// plaintext on loopback without identities.
type Options struct {
	// CACert is the PEM file of the authority that must have signed the other side's certificate.
	CACert string

	// Cert and Key are the PEM files of this process's certificate chain and private key. Both or
	// neither must be set.
	Cert, Key string

	// TokenFile is the path of a file with tokens. Each line of a server's file is "role token". A
	// client's file holds one token.
	TokenFile string

	// RequireToken makes the server demand a token from every caller, also on loopback and in
	// addition to a certificate.
	RequireToken bool

	// Insecure allows plaintext, and callers without an identity, beyond loopback.
	Insecure bool

	// Hosts are names, besides its own, under which callers without an identity may reach a server
	// of HTTP.
	Hosts []string

	// ServerName is the name that servers' certificates must have. If it is empty, that is the
	// dialled address.
	ServerName string

	// Role selects this process's own line in a token file with several roles, for its calls to
	// others. If it is empty, the file must have a single token.
	Role Role

	// Warn is called for what goes wrong outside of calls, such as a changed file that can't be
	// read; what was read before stays in use. It may be nil.
	Warn func(error)

	// Refused is called for each call that was denied or that exceeds a limit. It must be quick. It
	// may be nil.
	Refused func(Refusal)
}

// AddFlags defines the flags that all processes share. They are the settings of a client's profile, too.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.CACert, "tls-ca", o.CACert, "certificate authority, PEM `FILE` (see `taxon certs`)")
	f.StringVar(&o.Cert, "tls-cert", o.Cert, "own certificate, PEM `FILE`")
	f.StringVar(&o.Key, "tls-key", o.Key, "own private key, PEM `FILE` that others can't read")
	f.StringVar(&o.TokenFile, "token-file", o.TokenFile, "`FILE` with the token, for servers `role token` a line (see "+
		"`taxon certs token`)")
	f.BoolVar(&o.RequireToken, "require-token", o.RequireToken, "refuse callers without a token, on loopback too")
	f.BoolVar(&o.Insecure, "insecure", o.Insecure, "allow plaintext and unknown callers beyond loopback")
	f.StringArrayVar(&o.Hosts, "allow-host", nil, "answer HTTP callers without identity also under the host `NAME`, "+
		"such as a proxy's; repeated: several (default: addresses, localhost, this host's name and that of the "+
		"address listened on)")
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

// mutual reports whether callers can prove their identity by certificates.
func (o Options) mutual() bool { return o.CACert != "" && o.Cert != "" && o.Key != "" }

// serverTLS reports whether this process serves TLS.
func (o Options) serverTLS() bool { return o.Cert != "" && o.Key != "" }

// identified reports whether callers need an identity.
func (o Options) identified() bool { return o.mutual() || o.TokenFile != "" || o.RequireToken }

// warn passes an error to Warn.
func (o Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}
