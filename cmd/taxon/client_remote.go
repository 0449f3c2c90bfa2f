package main

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"

	"taxon/internal/cluster"
	"taxon/internal/fs"
)

// findRemote prepares calls to a cluster that is found by a file: it refuses a path where no
// coordinator has announced itself, and takes the certificates that lie beside, unless
// others were given. forget removes their copies.
func (o *clientOptions) findRemote(ctx context.Context) (forget func(), err error) {
	if !fs.IsRemote(o.coordinator) {
		return func() {}, nil
	}
	switch _, err := cluster.ReadPlace(ctx, o.coordinator); {
	case errors.Is(err, iofs.ErrNotExist):
		return nil, usagef("%s: %s: no coordinator has said there where it is: give the file that `taxon coordinator --announce` or `taxon yarn up` writes", o.verb, o.coordinator)
	case err != nil:
		return nil, err
	}
	named(&o.security, o.coordinator)
	s := &o.security
	if s.CACert != "" || s.Cert != "" || s.TokenFile != "" || s.Insecure {
		return func() {}, nil
	}
	temp, forget, err := fs.TempDir("client")
	if err != nil {
		return nil, err
	}
	from := fs.Join(fs.Dir(o.coordinator), cluster.ClientFolder)
	for name, to := range map[string]*string{cluster.CAFile: &s.CACert, cluster.ClientName + ".crt": &s.Cert, cluster.ClientName + ".key": &s.Key, cluster.TokenFile: &s.TokenFile} {
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
