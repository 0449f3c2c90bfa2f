package vfs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Faulty is a file system in which one call, or every call from one on, fails as its Fault says. It
// counts the calls of FS and of its open files, except Close, Name and Stat of a file.
type Faulty struct {
	fs    FS
	fault Fault

	mu    sync.Mutex
	calls int
}

// Fault says which calls of a file system fail, and with which error.
type Fault struct {
	// At is the number of the call that fails, counted from 1. At 0 no call fails.
	At int

	// Err is the error of a failing call, such as syscall.EIO. If it is syscall.ENOSPC, calls that
	// need no space on the disk are not counted and do not fail.
	Err error
	// Short makes a write that is the first call to fail write the first half of its bytes.
	Short bool

	// Ever makes all later calls fail as well. Then nothing that the process does later has an
	// effect, as if it had been killed.
	Ever bool
}

// NewFaulty returns fs with a fault.
func NewFaulty(fs FS, fault Fault) *Faulty { return &Faulty{fs: fs, fault: fault} }

// Met reports whether a call has failed.
func (f *Faulty) Met() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault.At > 0 && f.calls >= f.fault.At
}

// call counts a call and returns the error if it must fail. room says that the call needs space.
func (f *Faulty) call(op, name string, room bool) error {
	if !room && errors.Is(f.fault.Err, syscall.ENOSPC) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.fault.At == 0 || f.calls < f.fault.At || f.calls > f.fault.At && !f.fault.Ever {
		return nil
	}
	return &iofs.PathError{Op: op, Path: name, Err: f.fault.Err}
}

// Open implements FS.
func (f *Faulty) Open(name string) (File, error) {
	if err := f.call("open", name, false); err != nil {
		return nil, err
	}
	return f.file(f.fs.Open(name))
}

// OpenFile implements FS.
func (f *Faulty) OpenFile(name string, flag int, mode iofs.FileMode) (File, error) {
	if err := f.call("open", name, flag&os.O_CREATE != 0); err != nil {
		return nil, err
	}
	return f.file(f.fs.OpenFile(name, flag, mode))
}

func (f *Faulty) file(file File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f}, nil
}

// Mkdir implements FS.
func (f *Faulty) Mkdir(name string, mode iofs.FileMode) error {
	if err := f.call("mkdir", name, true); err != nil {
		return err
	}
	return f.fs.Mkdir(name, mode)
}

// Rename implements FS.
func (f *Faulty) Rename(from, to string) error {
	if err := f.call("rename", from, true); err != nil {
		return err
	}
	return f.fs.Rename(from, to)
}

// Exchange implements FS.
func (f *Faulty) Exchange(a, b string) error {
	if err := f.call("exchange", a, true); err != nil {
		return err
	}
	return f.fs.Exchange(a, b)
}

// Link implements FS.
func (f *Faulty) Link(from, to string) error {
	if err := f.call("link", from, true); err != nil {
		return err
	}
	return f.fs.Link(from, to)
}

// Remove implements FS.
func (f *Faulty) Remove(name string) error {
	if err := f.call("remove", name, false); err != nil {
		return err
	}
	return f.fs.Remove(name)
}

// RemoveAll implements FS. A call that fails has removed half of the content of a folder.
func (f *Faulty) RemoveAll(name string) error {
	met := f.Met()
	if err := f.call("remove", name, false); err != nil {
		if list, _ := f.fs.ReadDir(name); !met {
			for _, e := range list[:len(list)/2] {
				_ = f.fs.RemoveAll(filepath.Join(name, e.Name()))
			}
		}
		return err
	}
	return f.fs.RemoveAll(name)
}

// ReadDir implements FS.
func (f *Faulty) ReadDir(name string) ([]iofs.DirEntry, error) {
	if err := f.call("readdir", name, false); err != nil {
		return nil, err
	}
	return f.fs.ReadDir(name)
}

// Stat implements FS.
func (f *Faulty) Stat(name string) (iofs.FileInfo, error) {
	if err := f.call("stat", name, false); err != nil {
		return nil, err
	}
	return f.fs.Stat(name)
}

// Lstat implements FS.
func (f *Faulty) Lstat(name string) (iofs.FileInfo, error) {
	if err := f.call("lstat", name, false); err != nil {
		return nil, err
	}
	return f.fs.Lstat(name)
}

// RealPath implements FS.
func (f *Faulty) RealPath(name string) (string, error) {
	if err := f.call("lstat", name, false); err != nil {
		return "", err
	}
	return f.fs.RealPath(name)
}

// faultyFile is an open file of a Faulty.
type faultyFile struct {
	File
	fs *Faulty
}

// Read implements File.
func (f *faultyFile) Read(p []byte) (int, error) {
	if err := f.fs.call("read", f.Name(), false); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

// ReadAt implements File.
func (f *faultyFile) ReadAt(p []byte, at int64) (int, error) {
	if err := f.fs.call("read", f.Name(), false); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

// Write implements File.
func (f *faultyFile) Write(p []byte) (int, error) {
	return f.write(p, f.File.Write)
}

// WriteAt implements File.
func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	return f.write(p, func(p []byte) (int, error) { return f.File.WriteAt(p, at) })
}

func (f *faultyFile) write(p []byte, write func(p []byte) (int, error)) (int, error) {
	met := f.fs.Met()
	err := f.fs.call("write", f.Name(), true)
	if err == nil {
		return write(p)
	}
	if met || !f.fs.fault.Short {
		return 0, err
	}
	n, e := write(p[:len(p)/2])
	return n, errors.Join(err, e)
}

// Truncate implements File.
func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.call("truncate", f.Name(), false); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync implements File.
func (f *faultyFile) Sync() error {
	if err := f.fs.call("sync", f.Name(), true); err != nil {
		return err
	}
	return f.File.Sync()
}

// SyncData implements File.
func (f *faultyFile) SyncData() error {
	if err := f.fs.call("sync", f.Name(), true); err != nil {
		return err
	}
	return f.File.SyncData()
}

// Lock implements File.
func (f *faultyFile) Lock() error {
	if err := f.fs.call("lock", f.Name(), false); err != nil {
		return err
	}
	return f.File.Lock()
}
