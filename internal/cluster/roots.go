package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"taxon/internal/fs"
)

// Roots are the folders that jobs may read data from, besides the store. A job comes
// from the network, so its paths are not trusted: links are followed before a path is
// judged, that of the folder and those in it. A path in HDFS, which has no links unless
// its admin has allowed them, is judged by its text.
type Roots []string

// MakeRoots resolves folders that an operator has named. They must be there; those in HDFS
// are looked for when a job names them.
func MakeRoots(dirs []string) (Roots, error) {
	var r Roots
	for _, d := range dirs {
		if fs.IsRemote(d) {
			r = append(r, fs.Clean(d))
			continue
		}
		real, err := resolve(d)
		if err != nil {
			return nil, fmt.Errorf("data root %s: %w", d, err)
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("data root %s: must be a folder", d)
		}
		r = append(r, real)
	}
	return r, nil
}

func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// Check says why data at path may not be read; nil: it may. Whether it is there is not
// told of places outside the roots.
func (r Roots) Check(path string) error {
	if len(r) == 0 {
		return fmt.Errorf("%s: data may not be read in place here: start the processes with --data-root, or submit without --in-place", path)
	}
	outside := fmt.Errorf("%s: lies outside the data roots %s", path, strings.Join(r, ", "))
	if fs.IsRemote(path) {
		if fs.Clean(path) != path || !slices.ContainsFunc(r, func(root string) bool { return fs.Within(path, root) }) {
			return outside
		}
		return nil
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("%s: data read in place needs an absolute path, without \"..\" in it", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil && r.hold(path) {
		return err
	}
	if err != nil || !r.hold(real) {
		return outside
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return err
	}
	for _, e := range entries {
		file, err := filepath.EvalSymlinks(filepath.Join(real, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // a link to nothing
		}
		if err != nil || !r.hold(file) {
			return fmt.Errorf("%s: a link leads outside the data roots", filepath.Join(path, e.Name()))
		}
	}
	return nil
}

// hold says whether a resolved path lies below one of the roots, or is one.
func (r Roots) hold(real string) bool {
	for _, root := range r {
		if real == root || strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/") {
			return true
		}
	}
	return false
}
