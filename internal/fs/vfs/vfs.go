// Package vfs is the interface between taxon and a disk. The journal, the store's segments and all
// that is published as a whole file or folder use a disk through FS alone, so that a test can put
// another one in its place:
//
//   - OS is the disk of this machine.
//   - Mem is a disk in memory. It crashes on demand, which drops what was not synced.
//   - Faulty is another FS whose n-th call fails.
//
// Package vfstest runs a piece of code against all of these. This package imports no other one of
// taxon's.
package vfs

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is a file system. Names are those of package path/filepath. Errors are those of package os. All
// methods may be called from several goroutines.
//
// Nothing that a method does is durable when it returns. File.Sync makes a file's content durable,
// SyncDir makes durable what was made, renamed and removed in a folder.
type FS interface {
	// Open opens a file or a folder for reading. A pipe or a device is refused.
	Open(name string) (File, error)
	// OpenFile opens a file with the flags of os.OpenFile.
	OpenFile(name string, flag int, mode iofs.FileMode) (File, error)
	// Mkdir makes a folder, whose parent must exist.
	Mkdir(name string, mode iofs.FileMode) error
	// Rename renames a file or a folder. It replaces an existing file by a file, and never a folder.
	Rename(from, to string) error
	// Exchange swaps two names in one step. It returns an error where that is impossible.
	Exchange(a, b string) error
	// Link gives a file a second name.
	Link(from, to string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// RemoveAll removes a file, or a folder with everything in it. A missing one is no error.
	RemoveAll(name string) error
	// ReadDir lists a folder, sorted by name.
	ReadDir(name string) ([]iofs.DirEntry, error)
	// Stat describes a file or folder, and what a link leads to.
	Stat(name string) (iofs.FileInfo, error)
	// Lstat is Stat, except that it describes a link itself.
	Lstat(name string) (iofs.FileInfo, error)
	// RealPath follows the links in the name of an existing file or folder.
	RealPath(name string) (string, error)
}

// File is an open file or folder.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	// Close also gives up the lock.
	io.Closer
	// Name is the name under which the file was opened.
	Name() string
	Stat() (iofs.FileInfo, error)
	// Truncate changes the size of a file.
	Truncate(size int64) error
	// Sync makes a file, or the entries of a folder, durable.
	Sync() error
	// SyncData is Sync without the file's times.
	SyncData() error
	// Lock takes the advisory lock of a file or folder, which ends with Close or with the process. It
	// returns ErrLocked if another open file has it, and another error where there are no locks.
	Lock() error
}

// ErrLocked is the error of a lock that another open file holds.
var ErrLocked = errors.New("locked by another process")

// ReadFile reads a whole file.
func ReadFile(fs FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// WriteNew writes a new file and makes its content durable. Its name is not durable before SyncDir.
func WriteNew(fs FS, name string, data []byte, mode iofs.FileMode) error {
	f, err := fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return CloseSynced(f, err)
}

// CloseSynced ends the writing of a file, which has had the error err so far: it makes the file durable,
// unless there was an error, and closes it in any case.
func CloseSynced(f File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// SyncDir makes durable what was made, renamed and removed in a folder. A file system that can't do
// that is accepted.
func SyncDir(fs FS, dir string) error {
	d, err := fs.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(IgnoreUnsupported(d.Sync()), d.Close())
}

// MkdirAll makes a folder and those above it. Those that it has made are durable when it returns.
func MkdirAll(fs FS, name string, mode iofs.FileMode) error {
	name = filepath.Clean(name)
	if info, err := fs.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(name)
	if above != name {
		if err := MkdirAll(fs, above, mode); err != nil {
			return err
		}
	}
	if err := fs.Mkdir(name, mode); err != nil {
		switch info, e := fs.Stat(name); {
		case e != nil:
			return err
		case !info.IsDir():
			return &iofs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		return nil // another process was faster
	}
	return SyncDir(fs, above)
}

// LockFile opens a file for its lock alone, and makes it if it is missing. The error is ErrLocked if
// another process holds the lock.
func LockFile(fs FS, name string, mode iofs.FileMode) (File, error) {
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return nil, err
	}
	if err := f.Lock(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// SameFile says whether two descriptions are of one file or folder.
func SameFile(a, b iofs.FileInfo) bool {
	if m, ok := a.Sys().(*memNode); ok {
		return m == b.Sys()
	}
	return os.SameFile(a, b)
}
