package client

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"

	"taxon/internal/cluster"
	"taxon/internal/exit"
	"taxon/internal/fs"
)

// Folder is the folder beside the file in which a coordinator says where it is, and the
// others are its files: what its owner calls the cluster with. Who may read them is the
// file system's business.
const (
	Folder    = "client"
	CAFile    = "ca.crt"
	CertName  = "client" // of a certificate, .crt, and its key, .key
	TokenFile = "client.token"
)

// findRemote prepares calls to a cluster that is found by a file: it refuses a path where no
// coordinator has announced itself, and takes the certificates that lie beside, unless
// others were given. forget removes their copies.
func (o *Options) findRemote(ctx context.Context) (forget func(), err error) {
	if !fs.IsRemote(o.Coordinator) {
		return func() {}, nil
	}
	switch _, err := cluster.ReadPlace(ctx, o.Coordinator); {
	case errors.Is(err, iofs.ErrNotExist):
		return nil, exit.Usagef("%s: %s: no coordinator has said there where it is: give the file that `taxon coordinator --announce` or `taxon yarn up` writes", o.Verb, o.Coordinator)
	case err != nil:
		return nil, err
	}
	cluster.NameServers(&o.Security, o.Coordinator)
	s := &o.Security
	if s.CACert != "" || s.Cert != "" || s.TokenFile != "" || s.Insecure {
		return func() {}, nil
	}
	temp, forget, err := fs.TempDir("client")
	if err != nil {
		return nil, err
	}
	from := fs.Join(fs.Dir(o.Coordinator), Folder)
	for name, to := range map[string]*string{CAFile: &s.CACert, CertName + ".crt": &s.Cert, CertName + ".key": &s.Key, TokenFile: &s.TokenFile} {
		data, err := fs.ReadFile(ctx, fs.Join(from, name))
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err == nil {
			*to = filepath.Join(temp, name)
			err = os.WriteFile(*to, data, 0o600)
		}
		if err != nil {
			forget()
			return nil, err
		}
	}
	return forget, nil
}
