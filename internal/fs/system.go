package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"taxon/internal/fs/hdfs"
	"taxon/internal/fs/vfs"
)

// FS is a file system on which a path may lie: one of this machine, one in memory, or one in HDFS.
// It has the operations that all of these support. Operations that only a disk supports, such as
// locks, links and files that grow, are in vfs.FS. Names are paths as the user gives them. Paths in
// HDFS have their scheme and host. Methods return the errors of package os, or InputErrors that
// name the path.
type FS interface {
	// Stat describes a file or folder.
	Stat(name string) (iofs.FileInfo, error)
	// ReadDir lists a folder, sorted by name.
	ReadDir(name string) ([]iofs.DirEntry, error)
	// Open opens a regular file. A pipe, a device or a socket in its place is refused.
	Open(name string) (Regular, error)
	// Input opens whatever can be read from beginning to end, also a pipe, for whose writer it waits. The
	// size is -1 where it is unknown.
	Input(name string) (io.ReadCloser, int64, error)
	// Create begins a file that appears under its name when it is whole, and may replace an older one.
	Create(name string) (*OutFile, error)
	// WriteFile writes a whole file in one atomic step.
	WriteFile(name string, data []byte) error
	// CreateDir begins a folder that appears under its name when it is whole: see the function CreateDir.
	CreateDir(name string, replace bool) (*OutDir, error)
	// MkdirAll makes a folder and those above it. Those that it has made are durable when it returns.
	MkdirAll(name string) error
	// Rename renames a file or folder, over an existing file.
	Rename(from, to string) error
	// RemoveAll removes a file, or a folder with everything in it. A missing one is no error.
	RemoveAll(name string) error
}

// Regular is a regular file that is open for reading. It is for one goroutine.
type Regular interface {
	io.ReadCloser
	io.ReaderAt
	// Size returns the length that the file had when it was opened.
	Size() int64
}

// For returns the file system of a path. When ctx ends, so do calls that wait for another process or
// machine. A call to HDFS has a connection of its own.
func For(ctx context.Context, path string) FS {
	if Shared(path) {
		return remote{ctx: ctx}
	}
	return local{ctx, vfs.OS}
}

// Keep does what For does, but all calls except Open and Input share one connection to HDFS, which
// the first call makes. The file system is then for one goroutine, and of one host. done ends the
// connection.
func Keep(ctx context.Context, path string) (disk FS, done func() error) {
	if !Shared(path) {
		return For(ctx, path), func() error { return nil }
	}
	r := remote{ctx: ctx, kept: new(*hdfs.FS)}
	return r, r.close
}

// On returns a disk as a file system.
func On(disk vfs.FS) FS { return local{context.Background(), disk} }

// here returns what For returns, with a context that never ends.
func here(path string) FS { return For(context.Background(), path) }

// Stat describes a file or folder.
func Stat(path string) (iofs.FileInfo, error) { return here(path).Stat(path) }

// RemoveAll removes a file, or a folder with everything in it. A missing one is no error.
func RemoveAll(path string) error { return here(path).RemoveAll(path) }

// Rename renames a file or folder within one file system. It replaces an existing file.
func Rename(from, to string) error { return here(from).Rename(from, to) }

// MkdirAll creates a folder and its missing parents. They are durable when it returns.
func MkdirAll(path string) error { return here(path).MkdirAll(path) }

// MkdirMode is like MkdirAll for local paths, with the mode of the created folders.
func MkdirMode(path string, mode iofs.FileMode) error { return vfs.MkdirAll(vfs.OS, path, mode) }

// CreateFile creates a file. The caller publishes it by Commit and defers Abort, which cleans up
// after an error.
func CreateFile(path string) (*OutFile, error) { return here(path).Create(path) }

// WriteFile writes a file in one atomic step.
func WriteFile(path string, data []byte) error { return here(path).WriteFile(path, data) }

// CreateDir begins a folder. What a killed process left at the working path is removed. It is
// an error if a living process holds that path, or if it holds something that is not taxon's, or
// if the folder exists, is not empty, and replace is not set. Parents are made as needed.
func CreateDir(path string, replace bool) (*OutDir, error) {
	return here(path).CreateDir(path, replace)
}

// OpenRaw opens a regular file without decompressing it.
func OpenRaw(path string) (Regular, error) { return here(path).Open(path) }

// ReadFile reads a whole regular file without decompressing it.
func ReadFile(ctx context.Context, path string) ([]byte, error) {
	return ReadFileOn(For(ctx, path), path)
}

// ReadFileOn does what ReadFile does, on a given file system.
func ReadFileOn(disk FS, path string) ([]byte, error) {
	r, err := disk.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return readAll(r, r.Size())
}

// ReadDir describes the files and folders in a folder, sorted by name, but those that vanish
// meanwhile. A link is described by what it leads to.
func ReadDir(path string) (list []iofs.FileInfo, err error) {
	disk := here(path)
	entries, err := disk.ReadDir(path)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode()&iofs.ModeSymlink != 0 {
			info, err = disk.Stat(Join(path, e.Name()))
		}
		if err == nil {
			list = append(list, info)
		}
	}
	return list, err
}

// ReadDirNames lists the names in a folder, sorted.
func ReadDirNames(path string) ([]string, error) { return NamesOn(here(path), path) }

// NamesOn does what ReadDirNames does, on a given file system.
func NamesOn(disk FS, path string) (names []string, err error) {
	entries, err := disk.ReadDir(path)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Exists reports whether a file or folder has this name. It returns false if that cannot be
// determined.
func Exists(path string) bool { return there(here(path), path) }

// FolderBytes returns the size of the files in a folder, as far as they can be listed.
func FolderBytes(path string) (n int64) {
	entries, _ := here(path).ReadDir(path)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// Private revokes all rights to a file or folder from everybody except its owner.
func Private(path string) error {
	disk := here(path)
	info, err := disk.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm() &^ 0o077
	if r, ok := disk.(remote); ok {
		return r.chmod(path, mode)
	}
	return os.Chmod(path, mode)
}

// partPrefix is the prefix of the names of part files in folders that Hadoop's jobs write.
const partPrefix = "part-"

// HasParts reports whether path is a folder whose part files Open reads as one file.
func HasParts(path string) bool {
	names, err := ReadDirNames(path)
	return err == nil && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, partPrefix) })
}

// NoParts returns the error for a folder without part files, where a file is expected.
func NoParts(dir string) error {
	return &InputError{Path: dir, Msg: "is a directory without files part-*: give a file, or a pattern like DIR/*",
		Err: syscall.EISDIR}
}

// Expand lists the files that an input path stands for: itself; for a pattern (* ? []) all files
// that match, by name; for a folder its part files. A file whose name looks like a pattern is itself.
func Expand(ctx context.Context, path string) ([]string, error) {
	if path == Stdin || path == "" {
		return []string{path}, nil
	}
	disk, done := Keep(ctx, path)
	defer done()
	return expand(disk, path)
}

func expand(disk FS, path string) ([]string, error) {
	info, err := disk.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return partsOf(disk, path)
	case err == nil:
		return []string{path}, nil
	case !errors.Is(err, iofs.ErrNotExist) || !hasGlob(path):
		return nil, Explain(path, err)
	}
	found, err := match(disk, path, true)
	if errors.Is(err, filepath.ErrBadPattern) {
		return nil, Inputf(path, 0, "not a pattern: %w", err)
	}
	if err == nil && len(found) == 0 {
		err = &InputError{Path: path, Msg: "no file matches", Err: iofs.ErrNotExist}
	}
	return found, err
}

// match lists what matches a pattern, by name. Names that begin with _ or . match only what begins
// so, as with Hadoop's tools. If files is true, match leaves out folders. A folder that can't be
// listed is an error, so that no training silently lacks files.
func match(disk FS, pattern string, files bool) (out []string, err error) {
	dir, last := Dir(pattern), path.Base(pattern)
	if !hasGlob(pattern) || dir == pattern {
		return []string{pattern}, nil
	}
	if _, err := filepath.Match(last, ""); err != nil {
		return nil, err
	}
	dirs, err := match(disk, dir, false)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		entries, err := disk.ReadDir(d)
		switch {
		case errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
			continue
		case errors.Is(err, iofs.ErrPermission):
			return nil, &InputError{Path: d, Msg: "the folder may not be listed: check its owner and mode, or give a pattern " +
				"that leaves it out", Err: err}
		case err != nil:
			return nil, Explain(d, err)
		}
		for _, e := range entries {
			if ok, _ := filepath.Match(last, e.Name()); !ok || hdfs.Hidden(e.Name()) && !hdfs.Hidden(last) {
				continue
			}
			if at := Join(d, e.Name()); !files || !leadsToDir(disk, at, e) {
				out = append(out, at)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// leadsToDir reports whether an entry is a folder or a link to one.
func leadsToDir(disk FS, path string, e iofs.DirEntry) bool {
	if e.Type()&iofs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := disk.Stat(path)
	return err == nil && info.IsDir()
}

// partsOf lists a folder's part files.
func partsOf(disk FS, dir string) (out []string, err error) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return nil, Explain(dir, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partPrefix) && !e.IsDir() {
			out = append(out, Join(dir, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, NoParts(dir)
	}
	return out, nil
}

// totalSize returns the sum of the files' sizes, or -1 if one of them is unknown.
func totalSize(disk FS, paths []string) (total int64, err error) {
	for _, p := range paths {
		info, err := disk.Stat(p)
		if err != nil {
			return 0, Explain(p, err)
		}
		if !info.Mode().IsRegular() {
			return -1, nil
		}
		total += info.Size()
	}
	return total, nil
}
