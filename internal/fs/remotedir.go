package fs

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"taxon/internal/fs/hdfs"
)

// publishPatience is how long a name node may be away when a folder that took hours to
// make is to be published.
const publishPatience = 5 * time.Minute

// staleAge is the age from which a temporary folder is taken for that of a killed process.
const staleAge = 7 * 24 * time.Hour

// createRemoteDir begins a folder of a Hadoop file system: it is filled on this machine
// (TMPDIR), and Commit copies it beside its place and renames it.
func createRemoteDir(name string, replace bool) (*OutDir, error) {
	d := &OutDir{name: name, target: Clean(name), replace: replace, remote: true, removeParents: func() {}}
	if err := remotely(context.Background(), name, d.checkRemote); err != nil {
		return nil, err
	}
	var err error
	if d.work, d.lock, err = tempDir("hdfs"); err != nil {
		return nil, err
	}
	return d, nil
}

// checkRemote refuses what Commit could not or must not replace, and places where it may
// not write, before hours of work go into the folder.
func (d *OutDir) checkRemote(f *hdfs.FS, name string) error {
	if name == "/" {
		return &UsageError{Msg: "is the root of the file system: give a folder below it"}
	}
	info, err := f.Stat(name)
	switch {
	case err == nil && !info.IsDir():
		return &UsageError{Msg: "is a file: give a folder to write"}
	case err == nil:
		list, err := f.ReadDir(name)
		if err != nil {
			return err
		}
		if len(list) > 0 && !d.replace {
			return &UsageError{Msg: "exists already: choose another place, or use --force to replace it"}
		}
	case !errors.Is(err, iofs.ErrNotExist):
		return err
	}
	probe := d.tempName(name)
	made, err := d.makeParents(f, path.Dir(name))
	if err == nil {
		err = f.MkdirAll(probe)
	}
	if err == nil {
		err = f.RemoveAll(probe)
	}
	// Parents come with the folder: until then nothing of ours is there.
	if made != "" {
		err = errors.Join(err, f.RemoveAll(made))
	}
	if err != nil {
		return firstOf(err)
	}
	return d.sweep(f, name)
}

// firstOf is the first of joined errors: one line says one thing.
func firstOf(err error) error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()[0]
	}
	return err
}

// makeParents makes dir and returns the outermost folder that was made for it, "" if none.
func (d *OutDir) makeParents(f *hdfs.FS, dir string) (made string, err error) {
	for at := dir; at != "/"; at = path.Dir(at) {
		if info, err := f.Stat(at); err == nil {
			if !info.IsDir() {
				return "", &os.PathError{Op: "mkdir", Path: at, Err: errNotDir}
			}
			break
		} else if !errors.Is(err, iofs.ErrNotExist) {
			return "", err
		}
		made = at
	}
	if made == "" {
		return "", nil
	}
	return made, f.MkdirAll(dir)
}

// tempName is a name beside the folder's that nobody else has.
func (d *OutDir) tempName(name string) string {
	dir, base := path.Split(name)
	return dir + "." + base + "." + strings.ToLower(rand.Text()[:13]) + ".part"
}

// sweep removes what killed processes have left beside the folder long ago.
func (d *OutDir) sweep(f *hdfs.FS, name string) error {
	dir, base := path.Split(name)
	list, err := f.ReadDir(path.Clean(dir))
	if err != nil {
		return nil // its parents are not there yet
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "."+base+".") && strings.HasSuffix(e.Name(), ".part") && time.Since(e.ModTime()) > staleAge {
			if err := f.RemoveAll(dir + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// publishRemote copies the folder beside its place, marks it as whole and renames it.
func (d *OutDir) publishRemote() error {
	f, name, err := dial(context.Background(), d.target, publishPatience)
	if err != nil {
		return err
	}
	defer f.Close()
	temp := d.tempName(name)
	made, err := d.makeParents(f, path.Dir(name))
	if err == nil {
		err = d.uploadMarked(f, temp, name)
	}
	if err != nil {
		_ = f.RemoveAll(temp)
		if made != "" {
			_ = f.RemoveAll(made)
		}
	}
	return err
}

func (d *OutDir) uploadMarked(f *hdfs.FS, temp, name string) error {
	if err := upload(f, d.work, temp); err != nil {
		return err
	}
	mark := filepath.Join(d.work, successName)
	if _, err := os.Stat(mark); errors.Is(err, iofs.ErrNotExist) {
		if err := os.WriteFile(mark, nil, 0o666); err != nil {
			return err
		}
		if err := f.Put(mark, temp+"/"+successName); err != nil {
			return err
		}
	}
	_, err := f.Stat(name)
	if errors.Is(err, iofs.ErrNotExist) {
		return f.Rename(temp, name)
	}
	if err != nil {
		return err
	}
	// HDFS can't exchange two folders: for the time of two renames none bears the name.
	old := d.tempName(name)
	if err := f.Rename(name, old); err != nil {
		return err
	}
	if err := f.Rename(temp, name); err != nil {
		_ = f.Rename(old, name)
		return err
	}
	return f.RemoveAll(old)
}

// Files writes small files of one file system one after the other: over one connection,
// if the file system is a remote one. It is for one goroutine. The zero value is ready.
type Files struct{ remote *hdfs.FS }

// Write writes a whole file in one atomic step; its folder must be there. All files lie on
// the file system of the first.
func (w *Files) Write(path string, data []byte) error {
	if !IsRemote(path) {
		return WriteFile(path, data)
	}
	l, err := hdfs.Parse(path)
	if err != nil {
		return Explain(path, err)
	}
	if w.remote == nil {
		if w.remote, _, err = dial(context.Background(), path, 0); err != nil {
			return err
		}
	}
	return Explain(path, w.remote.WriteNew(l.Path, data))
}

// Close ends the connection.
func (w *Files) Close() error {
	if w.remote == nil {
		return nil
	}
	return w.remote.Close()
}

// createRemoteFile begins a file of a Hadoop file system.
func createRemoteFile(path string) (*OutFile, error) {
	f, name, err := dial(context.Background(), path, 0)
	if err != nil {
		return nil, err
	}
	w, err := f.Create(name)
	if err != nil {
		f.Close()
		return nil, explainNew(path, err)
	}
	return &OutFile{out: remoteOut{w}, path: path}, nil
}

// remoteOut is a Writer of package hdfs as a file of this one.
type remoteOut struct{ *hdfs.Writer }

func (w remoteOut) Close() error { return w.Commit() }

var _ io.WriteCloser = remoteOut{}
