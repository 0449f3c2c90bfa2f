package main

import (
	"os"
	"path/filepath"

	"taxon/internal/fs"
)

// checkOut refuses an --out of verb that would overwrite what the verb reads: the data
// file (empty: none) or anything in the model's folder.
func checkOut(verb, out, data, modelDir string) error {
	switch {
	case out == fs.Stdin:
		return nil
	case data != "" && data != fs.Stdin && within(out, data):
		return usagef("%s: --out %s would overwrite --data %s: choose another --out", verb, out, data)
	case within(out, modelDir):
		return usagef("%s: --out %s lies in the model's folder %s: choose another --out", verb, out, modelDir)
	}
	return nil
}

// within reports whether path is root, under whatever name, or lies below it. Devices
// and pipes are never within anything: writing to them replaces nothing.
func within(path, root string) bool {
	if fs.IsRemote(path) || fs.IsRemote(root) {
		return fs.Within(path, root)
	}
	r, err := os.Stat(root)
	if err != nil || !r.IsDir() && !r.Mode().IsRegular() {
		return false
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	for at = realPath(at); ; at = filepath.Dir(at) {
		if st, err := os.Stat(at); err == nil && os.SameFile(st, r) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// realPath follows the links in the part of an absolute path that exists.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(realPath(dir), filepath.Base(path))
}

// checkWritable refuses a place beside which nothing can be written, before the work whose
// result goes there. Places that are not of this machine are seen later.
func checkWritable(out string) error {
	if fs.IsRemote(out) {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(out))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fs.Explain(parent, err)
	}
	probe, err := os.MkdirTemp(parent, ".taxon-probe-")
	if err != nil {
		return fs.Explain(parent, err)
	}
	return os.Remove(probe)
}
