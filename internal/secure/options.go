package secure

import (
	"errors"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
)

// Options is the security of one process, as its flags give it. The zero value is
// plaintext on loopback without identities.
type Options struct {
	CACert    string // PEM file: the authority that both sides' certificates are checked against
	Cert, Key string // PEM files: this process's certificate (chain) and key
	TokenFile string // a server's: "role token" a line; a client's: one token

	// RequireToken demands a token of every caller, on loopback and beside certificates.
	RequireToken bool
	// Insecure allows plaintext, and callers without identity, beyond loopback.
	Insecure bool

	// ServerName is what servers' certificates are checked for; "": the address dialled.
	ServerName string

	// Role picks this process's own line out of a token file of many roles when it calls
	// others; "" takes the file's only token.
	Role Role
	// Warn is told of what goes wrong outside of any call (a file that changed and can't
	// be read: what was read before stays in use); nil: not told.
	Warn func(error)
	// Refused is told of each call that was refused, with Unauthenticated or
	// PermissionDenied; it must be quick. nil: not told.
	Refused func(codes.Code)
}

// AddFlags defines the flags that all processes and clients share.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.CACert, "tls-ca", o.CACert, "certificate authority, PEM `FILE` (see `taxon certs`)")
	f.StringVar(&o.Cert, "tls-cert", o.Cert, "own certificate, PEM `FILE`")
	f.StringVar(&o.Key, "tls-key", o.Key, "own private key, PEM `FILE` that others can't read")
	f.StringVar(&o.TokenFile, "token-file", o.TokenFile, "`FILE` with the token, for servers `role token` a line (see `taxon certs token`)")
	f.BoolVar(&o.RequireToken, "require-token", o.RequireToken, "refuse callers without a token, on loopback too")
	f.BoolVar(&o.Insecure, "insecure", o.Insecure, "allow plaintext and unknown callers beyond loopback")
}

// AddClientFlags defines the flags of a verb that only calls.
func (o *Options) AddClientFlags(f *pflag.FlagSet) {
	f.StringVar(&o.CACert, "tls-ca", o.CACert, "certificate authority, PEM `FILE` (see `taxon certs`)")
	f.StringVar(&o.Cert, "tls-cert", o.Cert, "own certificate, PEM `FILE`")
	f.StringVar(&o.Key, "tls-key", o.Key, "own private key, PEM `FILE` that others can't read")
	f.StringVar(&o.TokenFile, "token-file", o.TokenFile, "`FILE` with one token")
	f.BoolVar(&o.Insecure, "insecure", o.Insecure, "allow plaintext beyond loopback")
}

// Validate checks what the options say together, all complaints at once.
func (o Options) Validate() error {
	var errs []error
	if (o.Cert == "") != (o.Key == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key go together"))
	}
	if o.RequireToken && o.TokenFile == "" {
		errs = append(errs, errors.New("--require-token needs --token-file (make one with `taxon certs token`)"))
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
