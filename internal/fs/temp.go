package fs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/fs/vfs"
)

// Temporary folders have names of the form taxon-WHAT-RANDOM.tmp.
const (
	tempPrefix = "taxon-"
	tempSuffix = ".tmp"
)

// TempDir creates a temporary folder on this machine (in TMPDIR). `what` is a short name of its
// purpose. done removes the folder. TempDir first removes the folders of killed processes, which
// are those that no process has locked.
func TempDir(what string) (dir string, done func(), err error) {
	dir, lock, err := tempDir(what)
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		os.RemoveAll(dir)
		lock.Close()
	}, nil
}

// tempDir is like TempDir. Closing lock releases the lock.
func tempDir(what string) (dir string, lock vfs.File, err error) {
	sweepTemp()
	const tries = 100
	for range tries {
		dir, err = os.MkdirTemp("", tempPrefix+what+"-*"+tempSuffix)
		if err != nil {
			return "", nil, Explain(os.TempDir(), err)
		}
		lock, err = vfs.OS.Open(dir)
		if err == nil {
			if !vfs.Busy(lock) && vfs.Stands(vfs.OS, lock, dir) {
				return dir, lock, nil
			}
			lock.Close()
		} else if !errors.Is(err, os.ErrNotExist) {
			os.RemoveAll(dir)
			return "", nil, Explain(dir, err)
		}
		// before it was locked, another process took it for that of a killed one
	}
	return "", nil, Inputf(os.TempDir(), 0, "temporary folders vanish there: set TMPDIR to another folder")
}

// sweepTemp removes the temporary folders of killed processes. It ignores those that it cannot
// remove, such as another user's.
func sweepTemp() {
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) || !strings.HasSuffix(e.Name(), tempSuffix) {
			continue
		}
		vfs.RemoveAbandoned(vfs.OS, filepath.Join(os.TempDir(), e.Name()))
	}
}
