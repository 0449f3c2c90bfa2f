package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"taxon/internal/fs/hdfs"
	"taxon/internal/fs/vfs"
)

// The functions of this file are those of packages os and path/filepath, for local and hdfs://
// paths. Errors are explained and name the path.

// IsRemote reports whether a path lies on a Hadoop file system.
func IsRemote(path string) bool { return hdfs.Is(path) }

// Join appends names to a path, as filepath.Join does.
func Join(base string, names ...string) string {
	if IsRemote(base) {
		return hdfs.Join(base, names...)
	}
	return filepath.Join(append([]string{base}, names...)...)
}

// Clean is the shortest equivalent path.
func Clean(path string) string { return Join(path) }

// Dir is the folder that holds a path.
func Dir(path string) string {
	if IsRemote(path) {
		return hdfs.Dir(path)
	}
	return filepath.Dir(path)
}

// dial connects to a path's file system. wait 0: it tries once.
func dial(ctx context.Context, path string, wait time.Duration) (*hdfs.FS, string, error) {
	l, err := hdfs.Parse(path)
	if err != nil {
		return nil, "", Explain(path, err)
	}
	f, err := hdfs.Dial(ctx, l, wait)
	if err != nil {
		return nil, "", remoteErr(ctx, path, err)
	}
	return f, l.Path, nil
}

// remoteErr explains an error of a remote path. If the context was cancelled, that is the cause.
func remoteErr(ctx context.Context, path string, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return Explain(path, err)
}

// remotely calls do with the file system of path, and the path within it.
func remotely(ctx context.Context, path string, do func(f *hdfs.FS, name string) error) error {
	f, name, err := dial(ctx, path, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return remoteErr(ctx, path, do(f, name))
}

// Stat describes a file or folder.
func Stat(path string) (info iofs.FileInfo, err error) {
	if !IsRemote(path) {
		return os.Stat(path)
	}
	err = remotely(context.Background(), path, func(f *hdfs.FS, name string) (err error) {
		info, err = f.Stat(name)
		return err
	})
	return info, err
}

// ReadDir describes the files and folders in a folder, sorted by name, but those that vanish
// meanwhile.
func ReadDir(path string) (list []iofs.FileInfo, err error) {
	if IsRemote(path) {
		err = remotely(context.Background(), path, func(f *hdfs.FS, name string) (err error) {
			list, err = f.ReadDir(name)
			return err
		})
		return list, err
	}
	names, err := ReadDirNames(path)
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil {
			list = append(list, info)
		}
	}
	return list, err
}

// ReadDirNames lists the names in a folder, sorted.
func ReadDirNames(path string) (names []string, err error) {
	if !IsRemote(path) {
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}
	err = remotely(context.Background(), path, func(f *hdfs.FS, name string) error {
		list, err := f.ReadDir(name)
		for _, e := range list {
			names = append(names, e.Name())
		}
		return err
	})
	return names, err
}

// ReadFile reads a whole regular file without decompressing it: see OpenRegular.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	if !IsRemote(path) {
		return readRegular(path)
	}
	r, size, err := openRemote(ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readAll(r, size)
}

// RemoveAll removes a file, or a folder with everything in it. A missing one is no error.
func RemoveAll(path string) error {
	if !IsRemote(path) {
		return os.RemoveAll(path)
	}
	return remotely(context.Background(), path, func(f *hdfs.FS, name string) error { return f.RemoveAll(name) })
}

// Rename renames a file or folder within one file system, over an existing file.
func Rename(from, to string) error {
	if !IsRemote(from) {
		return os.Rename(from, to)
	}
	l, err := hdfs.Parse(to)
	if err != nil {
		return Explain(to, err)
	}
	return remotely(context.Background(), from, func(f *hdfs.FS, name string) error { return f.Rename(name, l.Path) })
}

// Private takes all rights to a file or folder from everybody but its owner.
func Private(path string) error {
	info, err := Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm() &^ 0o077
	if !IsRemote(path) {
		return os.Chmod(path, mode)
	}
	return remotely(context.Background(), path, func(f *hdfs.FS, name string) error { return f.Chmod(name, mode) })
}

// Exists says whether something has this name; false if that can't be found out.
func Exists(path string) bool {
	_, err := Stat(path)
	return err == nil
}

// partPrefix begins the names of a folder's part files, as Hadoop's jobs write them.
const partPrefix = "part-"

// HasParts says whether path is a folder whose parts Open reads as one file.
func HasParts(path string) bool {
	names, err := ReadDirNames(path)
	return err == nil && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, partPrefix) })
}

// noParts says what to do about a folder without parts.
const noParts = "is a directory without files part-*: give a file, or a pattern like DIR/*"

// NoParts is the error for a folder without parts, where a file is wanted.
func NoParts(dir string) error {
	return &InputError{Path: dir, Msg: noParts, Err: syscall.EISDIR}
}

// Expand lists the files that an input path stands for: itself; for a pattern (* ? []) all files
// that match, by name; for a folder its part files. A local file whose name looks like a pattern
// is itself.
func Expand(ctx context.Context, path string) ([]string, error) {
	switch {
	case path == Stdin || path == "":
		return []string{path}, nil
	case IsRemote(path):
		return expandRemote(ctx, path)
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return localParts(path)
	}
	if err == nil || !hdfs.HasGlob(path) {
		return []string{path}, nil // opening it shows what is wrong
	}
	found, err := glob(path)
	if errors.Is(err, filepath.ErrBadPattern) {
		return nil, Inputf(path, 0, "not a pattern: %w", err)
	}
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(p string) bool {
		info, err := os.Stat(p)
		base := filepath.Base(p)
		return err == nil && info.IsDir() || hdfs.Hidden(base) && !hdfs.Hidden(filepath.Base(path))
	})
	if len(found) == 0 {
		return nil, noMatch(path)
	}
	return found, nil
}

func localParts(dir string) ([]string, error) {
	names, err := ReadDirNames(dir)
	if err != nil {
		return nil, Explain(dir, err)
	}
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, partPrefix) {
			out = append(out, filepath.Join(dir, n))
		}
	}
	if len(out) == 0 {
		return []string{dir}, nil // opening it reports that it is a folder
	}
	return out, nil
}

func noMatch(path string) error {
	return &InputError{Path: path, Msg: "no file matches", Err: iofs.ErrNotExist}
}

func expandRemote(ctx context.Context, path string) (out []string, err error) {
	l, err := hdfs.Parse(path)
	if err != nil {
		return nil, Explain(path, err)
	}
	err = remotely(ctx, path, func(f *hdfs.FS, name string) error {
		info, err := f.Stat(name)
		switch {
		case err == nil && info.IsDir():
			out, err = remoteParts(f, name)
		case err == nil:
			out = []string{name}
		case errors.Is(err, iofs.ErrNotExist) && hdfs.HasGlob(name):
			out, err = remoteMatches(f, l)
			if err == nil && len(out) == 0 {
				err = noMatch(path)
			}
		}
		return err
	})
	for i := range out {
		out[i] = l.With(out[i])
	}
	return out, err
}

// remoteParts are a folder's part files.
func remoteParts(f *hdfs.FS, dir string) (out []string, err error) {
	list, err := f.ReadDir(dir)
	for _, e := range list {
		if strings.HasPrefix(e.Name(), partPrefix) && !e.IsDir() {
			out = append(out, strings.TrimSuffix(dir, "/")+"/"+e.Name())
		}
	}
	if err == nil && len(out) == 0 {
		err = &InputError{Msg: noParts}
	}
	return out, err
}

// remoteMatches are the files that match a pattern.
func remoteMatches(f *hdfs.FS, pattern hdfs.Location) (out []string, err error) {
	found, err := f.Glob(pattern.Path)
	for _, p := range found {
		info, err := f.Stat(p)
		if err != nil {
			return nil, Explain(pattern.With(p), err)
		}
		if !info.IsDir() {
			out = append(out, p)
		}
	}
	return out, err
}

// MkdirAll makes a folder and those above it, and waits until those that it has made are on disk.
func MkdirAll(path string) error {
	if !IsRemote(path) {
		return MkdirMode(path, 0o777)
	}
	return remotely(context.Background(), path, func(f *hdfs.FS, name string) error { return f.MkdirAll(name) })
}

// OpenRaw opens a regular file without decompressing it: see OpenRegular.
func OpenRaw(path string) (io.ReadCloser, error) {
	if !IsRemote(path) {
		return OpenRegular(path)
	}
	r, _, err := openRemote(context.Background(), path)
	return r, err
}

// FolderBytes is the size of the files in a folder, as far as they can be listed.
func FolderBytes(path string) (n int64) {
	if !IsRemote(path) {
		entries, _ := os.ReadDir(path)
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return n
	}
	_ = remotely(context.Background(), path, func(f *hdfs.FS, name string) error {
		list, err := f.ReadDir(name)
		for _, e := range list {
			n += e.Size()
		}
		return err
	})
	return n
}

// Within says whether one remote path is another or is below it.
func Within(path, root string) bool {
	a, b := Clean(path), Clean(root)
	return IsRemote(a) && IsRemote(b) && (a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/"))
}

// MkdirMode is MkdirAll on this machine, with the mode of the folders made.
func MkdirMode(path string, mode iofs.FileMode) error { return vfs.MkdirAll(vfs.OS, path, mode) }
