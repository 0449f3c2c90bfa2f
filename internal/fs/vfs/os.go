package vfs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// OS is the file system of this machine.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Open(name string) (File, error) {
	f, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) OpenFile(name string, flag int, mode iofs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Mkdir(name string, mode iofs.FileMode) error  { return os.Mkdir(name, mode) }
func (osFS) Rename(from, to string) error                 { return os.Rename(from, to) }
func (osFS) Exchange(a, b string) error                   { return exchange(a, b) }
func (osFS) Link(from, to string) error                   { return os.Link(from, to) }
func (osFS) Remove(name string) error                     { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                  { return os.RemoveAll(name) }
func (osFS) ReadDir(name string) ([]iofs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) Stat(name string) (iofs.FileInfo, error)      { return os.Stat(name) }
func (osFS) Lstat(name string) (iofs.FileInfo, error)     { return os.Lstat(name) }
func (osFS) RealPath(name string) (string, error)         { return filepath.EvalSymlinks(name) }

// osFile is an open file of this machine.
type osFile struct{ *os.File }

// ErrSpecial is the error of OpenRegular for a pipe, a device or a socket.
var ErrSpecial = errors.New("is a pipe, a device or a socket: give a regular file")

// OpenRegular opens a regular file or a folder for reading. It returns ErrSpecial at once for a
// pipe, device or socket, because opening or reading one can block for ever.
func OpenRegular(name string) (*os.File, error) {
	special := &iofs.PathError{Op: "open", Path: name, Err: ErrSpecial}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil, special
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = special
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
