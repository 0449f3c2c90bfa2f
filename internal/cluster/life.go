package cluster

import (
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/fs"
)

// Life is a worker's name in its folder. While it is held no other process of the same
// folder takes up that name's past: so the process that noted Previous is dead.
type Life struct {
	Previous string // the worker's id that was noted last; "": none is known
	path     string
	lock     *os.File // nil: another living process has the name
}

// TakeLife takes up a name's past, if no living process holds it.
func TakeLife(dir, name string) (*Life, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fs.Explain(dir, err)
	}
	path := filepath.Join(dir, "worker-"+plain(name))
	lock, err := tryLockFile(path + ".lock")
	if err != nil || lock == nil {
		return &Life{}, err
	}
	l := &Life{path: path + ".id", lock: lock}
	if data, err := os.ReadFile(l.path); err == nil { // without it the leases run out
		l.Previous = strings.TrimSpace(string(data))
	}
	return l, nil
}

// Note keeps the id under which the worker is registered, for the next life.
func (l *Life) Note(id string) error {
	if l.lock == nil {
		return nil
	}
	return fs.WriteFile(l.path, []byte(id+"\n"))
}

// Close lets go of the name. A worker that ends in good order has left nothing behind.
func (l *Life) Close() {
	if l.lock != nil {
		_ = os.Remove(l.path)
		l.lock.Close()
	}
}

// plain makes a file's name of a worker's.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
