// Package vfs is the interface between taxon and a disk. The journal, the store's segments and
// everything that is published as a complete file or folder use a disk only through FS, so that a
// test can replace it:
//
//   - OS is the disk of this machine.
//   - Mem is a disk in memory. It crashes on demand, which drops what was not synced.
//   - Faulty is another FS whose n-th call fails.
//
// Package vfstest runs code against all of these. Package vfs imports no other package of taxon.
package vfs

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is a file system. Names have the form that package path/filepath defines. Methods return the
// errors of package os. All methods may be called from several goroutines.
//
// The effect of a method is not durable when it returns. File.Sync makes the content of a file
// durable. SyncDir makes the entries of a folder durable: files created, renamed and removed in it.
type FS interface {
	// Open opens a file or a folder for reading. A pipe or a device is refused.
	Open(name string) (File, error)
	// OpenFile opens a file with the flags of os.OpenFile.
	OpenFile(name string, flag int, mode iofs.FileMode) (File, error)
	// Mkdir creates a folder, whose parent must exist.
	Mkdir(name string, mode iofs.FileMode) error
	// Rename renames a file or a folder. A file replaces an existing file. A folder is never
	// replaced.
	Rename(from, to string) error
	// Exchange swaps two names in one step. It returns an error if the system cannot do that.
	Exchange(a, b string) error
	// Link gives a file a second name.
	Link(from, to string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// RemoveAll removes a file, or a folder with everything in it. A missing one is no error.
	RemoveAll(name string) error
	// ReadDir lists a folder, sorted by name.
	ReadDir(name string) ([]iofs.DirEntry, error)
	// Stat describes a file or folder. It follows links.
	Stat(name string) (iofs.FileInfo, error)
	// Lstat is like Stat, except that it describes a link itself.
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
	// Close closes the file and releases its lock.
	io.Closer
	// Name returns the name under which the file was opened.
	Name() string

	// Stat describes the file.
	Stat() (iofs.FileInfo, error)
	// Truncate changes the size of a file.
	Truncate(size int64) error
	// Sync makes a file, or the entries of a folder, durable.
	Sync() error
	// SyncData is like Sync, but does not make the file's times durable.
	SyncData() error
	// Lock takes the advisory lock of a file or folder, which is released by Close or at the end of
	// the process. It returns ErrLocked if another open file has the lock, and another error if the
	// file system has no locks.
	Lock() error
}

// ErrLocked is the error for a lock that another open file holds.
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

// WriteNew writes a new file and makes its content durable. Its name becomes durable only by
// SyncDir.
func WriteNew(fs FS, name string, data []byte, mode iofs.FileMode) error {
	f, err := fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return CloseSynced(f, err)
}

// CloseSynced ends the writing of a file. It makes the file durable, unless err is an earlier
// error, and always closes it. It returns the first error.
func CloseSynced(f File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// SyncDir makes the entries of a folder durable: files created, renamed and removed in it. It
// accepts a file system that cannot do that.
func SyncDir(fs FS, dir string) error {
	d, err := fs.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(IgnoreUnsupported(d.Sync()), d.Close())
}

// MkdirAll creates a folder and its missing parents. The created folders are durable when it
// returns.
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

// LockFile opens a file for its lock only, and creates it if it is missing. It returns ErrLocked if
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

// SameFile reports whether two descriptions refer to the same file or folder.
func SameFile(a, b iofs.FileInfo) bool {
	if m, ok := a.Sys().(*memNode); ok {
		return m == b.Sys()
	}
	return os.SameFile(a, b)
}
