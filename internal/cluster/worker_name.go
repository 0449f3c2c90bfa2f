package cluster

import (
	"path/filepath"
	"strings"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// WorkerName is a worker's name in its folder, reserved by a file lock. While it is held, no other
// process can reserve the name in that folder, so the process that saved Previous is dead.
type WorkerName struct {
	// Previous is the worker id that was saved last. It is empty if there is none.
	Previous string
	path     string
	// lock is nil if another living process has the name.
	lock vfs.File
}

// ReserveName reserves a name and reads the id saved under it. If a living process holds the name,
// the result saves nothing.
func ReserveName(dir, name string) (*WorkerName, error) {
	if err := fs.MkdirMode(dir, 0o755); err != nil {
		return nil, fs.Explain(dir, err)
	}
	path := filepath.Join(dir, "worker-"+plain(name))
	lock, err := tryLockFile(path + ".lock")
	if err != nil || lock == nil {
		return &WorkerName{}, err
	}
	l := &WorkerName{path: path + ".id", lock: lock}
	if data, err := vfs.ReadFile(vfs.OS, l.path); err == nil { // if it fails, the old leases run out
		l.Previous = strings.TrimSpace(string(data))
	}
	return l, nil
}

// SaveID saves the id under which the worker is registered, for the next process of that name.
func (l *WorkerName) SaveID(id string) error {
	if l.lock == nil {
		return nil
	}
	return fs.WriteFile(l.path, []byte(id+"\n"))
}

// Close releases the name and removes the saved id, because a worker that ends cleanly holds no
// leases.
func (l *WorkerName) Close() {
	if l.lock != nil {
		_ = fs.RemoveAll(l.path)
		l.lock.Close()
	}
}

// plain turns a worker's name into the name of a file.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
