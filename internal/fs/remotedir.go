package fs

import (
	"context"
	"crypto/rand"
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"taxon/internal/fs/hdfs"
)

// publishPatience is the time for which a name node may be unreachable when a folder is to be
// published. The folder may have taken hours to create.
const publishPatience = 5 * time.Minute

// staleAge is the age at which a temporary folder counts as the remains of a killed process.
const staleAge = 7 * 24 * time.Hour

// checkRemote returns an error if Commit cannot or must not replace the target, or if its folder is
// not writable, before hours of work go into the folder.
func (d *OutDir) checkRemote(f *hdfs.FS, name string) error {
	if name == "/" {
		return &InputError{Msg: "is the root of the file system: give a folder below it"}
	}
	info, err := f.Stat(name)
	switch {
	case err == nil && !info.IsDir():
		return &InputError{Msg: "is a file: give a folder to write"}
	case err == nil:
		list, err := f.ReadDir(name)
		if err != nil {
			return err
		}
		if len(list) > 0 && !d.replace {
			return &InputError{Msg: "exists already: choose another place, or use ‹force› to replace it"}
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
	// the parents are created when the folder is published, so that nothing is created before
	if made != "" {
		err = errors.Join(err, f.RemoveAll(made))
	}
	if err != nil {
		return firstOf(err)
	}
	return d.sweep(f, name)
}

// firstOf returns the first of joined errors, for a message of one line.
func firstOf(err error) error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()[0]
	}
	return err
}

// makeParents creates dir and returns the outermost folder that it had to create, or "" if there
// was none.
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

// tempName returns a unique name next to the folder's.
func (d *OutDir) tempName(name string) string {
	dir, base := path.Split(name)
	return dir + "." + base + "." + strings.ToLower(rand.Text()[:13]) + ".part"
}

// sweep removes the remains of processes that were killed long ago, next to the folder.
func (d *OutDir) sweep(f *hdfs.FS, name string) error {
	dir, base := path.Split(name)
	list, err := f.ReadDir(path.Clean(dir))
	if err != nil {
		return nil // its parents do not exist
	}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "."+base+".") && strings.HasSuffix(e.Name(), ".part") &&
			time.Since(e.ModTime()) > staleAge {
			if err := f.RemoveAll(dir + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// publishRemote copies the folder next to its final place, marks it as complete and renames it.
func (d *OutDir) publishRemote() error {
	return remote{ctx: context.Background(), wait: publishPatience}.with(d.target, d.publishTo)
}

func (d *OutDir) publishTo(f *hdfs.FS, name string) error {
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
	// HDFS cannot exchange two folders: between the two renames, no folder has the name
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
