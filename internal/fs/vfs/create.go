package vfs

import (
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// NewFile is a file that appears under its name only when it is complete: it is written next to its
// final place and renamed by Commit.
type NewFile struct {
	File
	fs     FS
	target string
	done   bool
}

// Create creates a file that may replace an older one. The caller publishes it by Commit and defers
// Abort, which cleans up after an error. Its temporary name contains the process id, so that two
// processes never share one, and a number that distinguishes several in one process. Living
// processes lock theirs. Create first removes temporary files of the same target that killed
// processes have left.
func Create(fs FS, target string, mode iofs.FileMode) (*NewFile, error) {
	dir, base := filepath.Split(target)
	sweep(fs, filepath.Clean(dir), base)
	const tries = 1000
	for i := 0; ; i++ {
		name := filepath.Join(dir, fmt.Sprintf(".%s.%d-%d.part", base, os.Getpid(), i))
		f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if err == nil {
			if !Busy(f) && Stands(fs, f, name) {
				return &NewFile{File: f, fs: fs, target: target}, nil
			}
			// before it was locked, another process took it for that of a killed one
			f.Close()
		} else if !os.IsExist(err) {
			return nil, err
		}
		if i == tries {
			return nil, err
		}
	}
}

// Commit makes the file durable and publishes it under its name.
func (f *NewFile) Commit() error {
	if f.done {
		return nil
	}
	defer f.Abort()
	if err := f.Sync(); err != nil {
		return err
	}
	// The rename comes before Close, which gives up the lock: a file that is closed under its old
	// name would pass for a killed process's.
	if err := f.fs.Rename(f.Name(), f.target); err != nil {
		return err
	}
	f.done = true
	if err := f.Close(); err != nil {
		return err
	}
	return SyncDir(f.fs, filepath.Dir(f.target))
}

// Abort removes an uncommitted file. After Commit it does nothing.
func (f *NewFile) Abort() {
	if f.done {
		return
	}
	f.done = true
	// while it is locked, so that the name still refers to this file
	_ = f.fs.Remove(f.Name())
	f.Close()
}

// WriteFile writes a whole file in one atomic step. It may replace an older one.
func WriteFile(fs FS, name string, data []byte, mode iofs.FileMode) error {
	f, err := Create(fs, name, mode)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// HalfWritten reports whether a name is the temporary name of an incomplete file, and returns the
// final name.
func HalfWritten(name string) (target string, ok bool) {
	m := halfName.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1], true
}

var halfName = regexp.MustCompile(`^\.(.+)\.[0-9]+-[0-9]+\.part$`)

// sweep removes the temporary files for a name that killed processes have left. It ignores those
// that it cannot remove.
func sweep(fs FS, dir, base string) {
	entries, _ := fs.ReadDir(dir)
	for _, e := range entries {
		if target, ok := HalfWritten(e.Name()); ok && target == base && e.Type().IsRegular() {
			RemoveAbandoned(fs, filepath.Join(dir, e.Name()))
		}
	}
}

// Busy locks a file or folder, and reports whether another process has the lock. File systems
// without locks (some network ones) are accepted.
func Busy(f File) bool { return f.Lock() == ErrLocked }

// RemoveAbandoned removes a file or folder of this user that no living process has locked. If that
// is uncertain, it keeps it.
func RemoveAbandoned(fs FS, name string) {
	f, err := fs.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && Owned(info) && f.Lock() == nil && Stands(fs, f, name) {
		_ = fs.RemoveAll(name)
	}
}

// Stands reports whether an open file or folder is still the one under its name.
func Stands(fs FS, f File, name string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := fs.Lstat(name)
	return err == nil && SameFile(mine, named)
}
