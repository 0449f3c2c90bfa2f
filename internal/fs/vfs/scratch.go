package vfs

import (
	"cmp"
	"os"
)

// ScratchFile makes a temporary file of this machine in dir; an empty dir stands for TMPDIR. what is a short name
// of its purpose. The file has no name where the system allows that, so that a killed process leaves
// none. drop closes and removes it.
func ScratchFile(dir, what string) (f *os.File, drop func() error, err error) {
	dir = cmp.Or(dir, os.TempDir())
	if f, err = os.CreateTemp(dir, "taxon-"+what+"-*.part"); err != nil {
		return nil, nil, err
	}
	if os.Remove(f.Name()) == nil {
		return f, f.Close, nil
	}
	return f, func() error {
		err := f.Close()
		if e := os.Remove(f.Name()); err == nil {
			err = e
		}
		return err
	}, nil
}

// Output opens a file of this machine for the output of a process, which needs an *os.File. It
// makes the file if there is none. flag is os.O_APPEND or os.O_TRUNC.
func Output(path string, flag int) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|flag, 0o644)
}
