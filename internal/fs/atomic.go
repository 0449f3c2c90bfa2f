package fs

import (
	"io"

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

// HalfWritten reports whether a name is the temporary name of a file that is being written. It also
// returns the final name.
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
