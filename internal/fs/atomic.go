package fs

import (
	"io"
	"os"
	"path/filepath"

	"taxon/internal/fs/vfs"
)

// OutFile is a file that appears under its name only when it is complete: it is written next to its
// final place and renamed by Commit, on a local or a Hadoop file system. A device or pipe is
// written directly.
type OutFile struct {
	out  whole
	path string // path as the user gave it
	done bool
}

// whole is a file that one call of Commit publishes, or one of Abort drops.
type whole interface {
	io.Writer
	Commit() error
	Abort()
}

// CreateFile creates a file. The caller publishes it by Commit and defers Abort, which cleans up
// after an error.
func CreateFile(path string) (*OutFile, error) {
	if IsRemote(path) {
		return createRemoteFile(path)
	}
	target, direct, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if direct {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, Explain(path, err)
		}
		return &OutFile{out: device{f}, path: path}, nil
	}
	f, err := vfs.Create(vfs.OS, target, 0o666)
	if err != nil {
		return nil, explainNew(path, err)
	}
	return &OutFile{out: f, path: path}, nil
}

// device is an open device or pipe, which is written directly. Abort does not undo its writes.
type device struct{ *os.File }

func (d device) Commit() error { return d.Close() }
func (d device) Abort()        { d.Close() }

// resolve follows links and reports whether the target is a device or pipe.
func resolve(path string) (target string, direct bool, err error) {
	if path == "" {
		return "", false, Inputf("", 0, "empty path: give a file to write")
	}
	info, err := os.Stat(path)
	if err != nil {
		return path, false, nil // it is probably new; otherwise creating it fails
	}
	if info.IsDir() {
		return "", false, Inputf(path, 0, "is a directory: give a file to write")
	}
	if !info.Mode().IsRegular() {
		return path, true, nil
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return "", false, Explain(path, err)
	}
	return target, false, nil
}

// HalfWritten reports whether a name is the temporary name of an incomplete file, and returns the
// final name.
func HalfWritten(name string) (target string, ok bool) { return vfs.HalfWritten(name) }

// Write implements io.Writer. Errors name the path as the user gave it.
func (f *OutFile) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	return n, Explain(f.path, err)
}

// Commit flushes the file to the disk and publishes it under its name.
func (f *OutFile) Commit() error {
	if f.done {
		return nil
	}
	f.done = true
	return Explain(f.path, f.out.Commit())
}

// Abort removes an uncommitted file. After Commit it does nothing.
func (f *OutFile) Abort() {
	if !f.done {
		f.done = true
		f.out.Abort()
	}
}

// WriteFile writes a file in one atomic step.
func WriteFile(path string, data []byte) error {
	f, err := CreateFile(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}
