package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"taxon/internal/fs/vfs"
)

// local is a disk as an FS.
type local struct {
	ctx  context.Context // ends the waiting for the writer of a pipe
	disk vfs.FS
}

func (l local) Stat(name string) (iofs.FileInfo, error)      { return l.disk.Stat(name) }
func (l local) ReadDir(name string) ([]iofs.DirEntry, error) { return l.disk.ReadDir(name) }
func (l local) MkdirAll(name string) error                   { return vfs.MkdirAll(l.disk, name, 0o777) }
func (l local) Rename(from, to string) error                 { return l.disk.Rename(from, to) }
func (l local) RemoveAll(name string) error                  { return l.disk.RemoveAll(name) }

func (l local) CreateDir(name string, replace bool) (*OutDir, error) {
	return CreateDirOn(l.disk, name, replace)
}

// regular is an open file with its size.
type regular struct {
	vfs.File
	size int64
}

func (f regular) Size() int64 { return f.size }

func (l local) Open(name string) (Regular, error) {
	f, err := l.disk.Open(name)
	if errors.Is(err, vfs.ErrSpecial) {
		err = Explain(name, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return regular{f, info.Size()}, nil
}

func (l local) Input(name string) (io.ReadCloser, int64, error) {
	if l.disk != vfs.OS { // which has no pipes
		f, err := l.Open(name)
		if err != nil {
			return nil, 0, Explain(name, err)
		}
		return f, f.Size(), nil
	}
	f, err := openFile(l.ctx, name)
	if err != nil {
		if l.ctx.Err() != nil {
			return nil, 0, l.ctx.Err()
		}
		return nil, 0, Explain(name, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &iofs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if err != nil {
		f.Close()
		return nil, 0, Explain(name, err)
	}
	if !info.Mode().IsRegular() {
		return &waitingFile{NewCancelReader(l.ctx, f), f}, -1, nil
	}
	return f, info.Size(), nil
}

// waitingFile is an opened pipe or device. A Read that waits for data ends with the context of Open.
type waitingFile struct {
	*CancelReader
	file *os.File
}

func (w *waitingFile) Close() error { return w.WhenIdle(w.file.Close) }

// openFile is like os.Open, except that it returns when ctx ends while the opening of a pipe waits
// for a writer.
func openFile(ctx context.Context, path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
	}
	for {
		// Open waits for a writer: be one. It may not have begun to wait yet.
		w, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			w.Close()
		} else if !errors.Is(err, unix.ENXIO) {
			return nil, ctx.Err() // the pipe is gone, or not writable: nothing ends Open
		}
		select {
		case o := <-done:
			if o.err == nil {
				o.f.Close()
			}
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (l local) Create(name string) (*OutFile, error) {
	target, direct, err := l.resolve(name)
	if err != nil {
		return nil, err
	}
	if direct {
		f, err := l.disk.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, Explain(name, err)
		}
		return &OutFile{out: device{f}, path: name}, nil
	}
	f, err := vfs.Create(l.disk, target, 0o666)
	if err != nil {
		return nil, explainNew(l, name, err)
	}
	return &OutFile{out: f, path: name}, nil
}

// device is an open device or pipe, which is written directly. Abort does not undo its writes.
type device struct{ vfs.File }

func (d device) Commit() error { return d.Close() }
func (d device) Abort()        { d.Close() }

// resolve follows links and reports whether the target is a device or pipe.
func (l local) resolve(path string) (target string, direct bool, err error) {
	if path == "" {
		return "", false, Inputf("", 0, "empty path: give a file to write")
	}
	info, err := l.disk.Stat(path)
	if err != nil {
		return path, false, nil // most likely it is new; creating it shows
	}
	if info.IsDir() {
		return "", false, Inputf(path, 0, "is a directory: give a file to write")
	}
	if !info.Mode().IsRegular() {
		return path, true, nil
	}
	if target, err = l.disk.RealPath(path); err != nil {
		return "", false, Explain(path, err)
	}
	return target, false, nil
}

func (l local) WriteFile(name string, data []byte) error {
	f, err := l.Create(name)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}
