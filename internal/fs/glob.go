package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"taxon/internal/fs/hdfs"
)

// glob lists what matches a pattern on this machine, like filepath.Glob. But filepath.Glob passes
// over folders that it can't list, so that a training would silently lack files. Here that is an
// error with the folder's name.
func glob(pattern string) ([]string, error) {
	if !hdfs.HasGlob(pattern) {
		if _, err := os.Lstat(pattern); err != nil {
			return nil, nil
		}
		return []string{pattern}, nil
	}
	dir, last := filepath.Split(pattern)
	if _, err := filepath.Match(last, ""); err != nil {
		return nil, err
	}
	dirs, err := glob(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, Explain(d, err)
		}
		for _, e := range entries {
			if ok, _ := filepath.Match(last, e.Name()); ok {
				out = append(out, filepath.Join(d, e.Name()))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
