package fs

import (
	"context"
	"io"
	iofs "io/fs"
	"time"

	"taxon/internal/fs/hdfs"
	"taxon/internal/fs/vfs"
)

// remote is the Hadoop file system of a path, as an FS.
type remote struct {
	ctx context.Context // for all calls, and for the reading and writing of files
	// wait is how long a name node may take to answer first. Zero tries once.
	wait time.Duration
	// kept is the connection that calls share. It is nil if each has its own.
	kept **hdfs.FS
}

// dial connects to a path's file system.
func (r remote) dial(path string) (f *hdfs.FS, name string, err error) {
	l, err := hdfs.Parse(path)
	if err == nil {
		f, err = hdfs.Dial(r.ctx, l, r.wait)
	}
	return f, l.Path, r.explain(path, err)
}

// explain explains an error of a path. If the context was cancelled, that is the cause.
func (r remote) explain(path string, err error) error {
	if err != nil && r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	return Explain(path, err)
}

// with calls do with the file system of path, and the path within it.
func (r remote) with(path string, do func(f *hdfs.FS, name string) error) error {
	if r.kept != nil && *r.kept != nil {
		l, err := hdfs.Parse(path)
		if err == nil {
			err = do(*r.kept, l.Path)
		}
		return r.explain(path, err)
	}
	f, name, err := r.dial(path)
	if err != nil {
		return err
	}
	if r.kept != nil {
		*r.kept = f
	} else {
		defer f.Close()
	}
	return r.explain(path, do(f, name))
}

// close ends the connection that calls share.
func (r remote) close() error {
	if *r.kept == nil {
		return nil
	}
	return (*r.kept).Close()
}

func (r remote) Stat(path string) (info iofs.FileInfo, err error) {
	err = r.with(path, func(f *hdfs.FS, name string) (err error) {
		info, err = f.Stat(name)
		return err
	})
	return info, err
}

func (r remote) ReadDir(path string) (entries []iofs.DirEntry, err error) {
	err = r.with(path, func(f *hdfs.FS, name string) error {
		list, err := f.ReadDir(name)
		for _, info := range list {
			entries = append(entries, iofs.FileInfoToDirEntry(info))
		}
		return err
	})
	return entries, err
}

// open opens a file over a connection of its own.
func (r remote) open(path string) (*remoteFile, error) {
	f, name, err := r.dial(path)
	if err != nil {
		return nil, err
	}
	file, err := f.Open(name)
	if err != nil {
		f.Close()
		return nil, r.explain(path, err)
	}
	return &remoteFile{file, r, path}, nil
}

func (r remote) Open(path string) (Regular, error) {
	f, err := r.open(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (r remote) Input(path string) (io.ReadCloser, int64, error) {
	f, err := r.open(path)
	if err != nil {
		return nil, 0, err
	}
	return f, f.Size(), nil
}

// remoteFile adds the path to errors.
type remoteFile struct {
	*hdfs.Reader
	disk remote
	path string
}

func (f *remoteFile) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != io.EOF {
		err = f.disk.explain(f.path, err)
	}
	return n, err
}

func (f *remoteFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.Reader.ReadAt(p, offset)
	if err != io.ErrUnexpectedEOF {
		err = f.disk.explain(f.path, err)
	}
	return n, err
}

func (r remote) Create(path string) (*OutFile, error) {
	f, name, err := r.dial(path)
	if err != nil {
		return nil, err
	}
	w, err := f.Create(name)
	if err != nil {
		f.Close()
		return nil, explainNew(r, path, err)
	}
	return &OutFile{out: w, path: path}, nil
}

func (r remote) WriteFile(path string, data []byte) error {
	var failed error
	err := r.with(path, func(f *hdfs.FS, name string) error {
		failed = f.WriteNew(name, data)
		return nil
	})
	if err == nil && failed != nil {
		err = explainNew(r, path, failed)
	}
	return err
}

func (r remote) MkdirAll(path string) error {
	return r.with(path, func(f *hdfs.FS, name string) error { return f.MkdirAll(name) })
}

func (r remote) RemoveAll(path string) error {
	return r.with(path, func(f *hdfs.FS, name string) error { return f.RemoveAll(name) })
}

func (r remote) Rename(from, to string) error {
	l, err := hdfs.Parse(to)
	if err != nil {
		return Explain(to, err)
	}
	return r.with(from, func(f *hdfs.FS, name string) error { return f.Rename(name, l.Path) })
}

func (r remote) chmod(path string, mode iofs.FileMode) error {
	return r.with(path, func(f *hdfs.FS, name string) error { return f.Chmod(name, mode) })
}

// CreateDir begins a folder that is filled on this machine (TMPDIR). Commit copies it next to its place and
// renames it.
func (r remote) CreateDir(path string, replace bool) (*OutDir, error) {
	d := &OutDir{disk: vfs.OS, name: path, target: Clean(path), replace: replace, remote: true, removeParents: func() {}}
	if err := r.with(path, d.checkRemote); err != nil {
		return nil, err
	}
	var err error
	if d.work, d.lock, err = tempDir("hdfs"); err != nil {
		return nil, err
	}
	return d, nil
}
