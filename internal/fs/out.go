package fs

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
)

// WriteOut calls write with a buffered writer for path, or for stdout if path is "-". A file
// appears under its name when it is complete.
func WriteOut(path string, stdout io.Writer, write func(*bufio.Writer) error) (err error) {
	if path == Stdin {
		buf := bufio.NewWriterSize(stdout, 1<<16)
		if err := write(buf); err != nil {
			buf.Flush()
			return err
		}
		return buf.Flush()
	}
	undo, err := MakeParents(path)
	if err != nil {
		return Explain(path, err)
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	f, err := CreateFile(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	buf := bufio.NewWriterSize(f, 1<<20)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Commit()
}

// Overwrites reports whether writing path could replace root or something in it: whether path is
// root, under any name, or is below it. Devices and pipes are never within root, because writing to
// them replaces nothing.
func Overwrites(path, root string) bool {
	if Shared(path) || Shared(root) {
		return Within(path, root)
	}
	r, err := os.Stat(root)
	if err != nil || !r.IsDir() && !r.Mode().IsRegular() {
		return false
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for at = realPath(at); ; at = filepath.Dir(at) {
		if st, err := os.Stat(at); err == nil && os.SameFile(st, r) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// realPath follows the links in the existing part of an absolute path.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(realPath(dir), filepath.Base(path))
}

// CheckWritable returns an error if the folder of a path is not writable, before the work whose
// result is written there. It does not check paths on other machines.
func CheckWritable(out string) error {
	if Shared(out) {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(out))
	if err := MkdirAll(parent); err != nil {
		return Explain(parent, err)
	}
	probe, err := os.MkdirTemp(parent, ".taxon-probe-")
	if err != nil {
		return Explain(parent, err)
	}
	return os.Remove(probe)
}
