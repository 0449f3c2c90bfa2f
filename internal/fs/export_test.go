package fs

// SetRemoveAll replaces the function that removes folders.
func SetRemoveAll(f func(path string) error) { removeAll = f }
