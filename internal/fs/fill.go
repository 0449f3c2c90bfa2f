package fs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Fill puts the files of a folder of this machine into the working folder: as links where
// both lie on one disk, else as copies. They must not be written to afterwards.
func (d *OutDir) Fill(from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return Explain(from, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == MarkName {
			continue
		}
		path, to := filepath.Join(from, e.Name()), filepath.Join(d.work, e.Name())
		if os.Link(path, to) == nil {
			continue
		}
		if err := copyFile(path, to); err != nil {
			return Explain(d.name, err)
		}
	}
	return nil
}

// copyFile copies a file to a new one, and waits until it is on disk.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
