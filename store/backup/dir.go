package backup

import (
	"errors"
	"io"
	"os"

	"taxon/internal/fs"
)

// Dir is a folder that is being written: others see it when it is committed, whole.
type Dir interface {
	// Create begins a file; Close makes it durable. Several may be written at a time.
	Create(name string) (io.WriteCloser, error)
	Commit() error
	Abort() // does nothing after Commit
}

// Local begins a folder on this machine. A snapshot that bears the name is replaced in
// the instant of Commit.
func Local(path string) (Dir, error) {
	d, err := fs.CreateDir(path, true)
	if err != nil {
		return nil, err
	}
	return localDir{d}, nil
}

type localDir struct{ *fs.OutDir }

func (d localDir) Create(name string) (io.WriteCloser, error) {
	f, err := os.Create(d.Join(name))
	if err != nil {
		return nil, fs.Explain(d.Name(), err)
	}
	return &localFile{f, d.Name()}, nil
}

type localFile struct {
	f   *os.File
	dir string // as the user named it
}

func (f *localFile) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	return n, fs.Explain(f.dir, err)
}

func (f *localFile) Close() error {
	return fs.Explain(f.dir, errors.Join(f.f.Sync(), f.f.Close()))
}
