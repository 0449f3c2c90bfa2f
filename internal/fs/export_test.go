package fs

import "taxon/internal/fs/vfs"

// SetRemoveAll replaces the function that removes folders.
func SetRemoveAll(f func(path string) error) {
	removeAll = func(_ vfs.FS, path string) error { return f(path) }
}
