package secure

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"taxon/internal/fs/vfs"
)

// maxFileBytes bounds certificates, keys and token files. It protects against a mistyped path.
const maxFileBytes = 1 << 20

// recheckEvery is how long a file is trusted without checking whether it changed. A check costs a
// few microseconds, and certificates are rotated over hours.
const recheckEvery = time.Second

// readFile reads a small file. A secret file must not be readable by others.
func readFile(path string, secret bool) ([]byte, error) {
	if info, err := vfs.OS.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe may wait for ever
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := vfs.OS.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if secret {
		if err := checkPrivate(path, info); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: more than %d bytes: not a certificate, key or token file", path, maxFileBytes)
	}
	return data, nil
}

// stamp identifies one state of a file.
type stamp struct {
	mod  time.Time
	size int64
	info os.FileInfo
}

// stampOf returns the present state of a file.
func stampOf(path string) (stamp, error) {
	info, err := vfs.OS.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{mod: info.ModTime(), size: info.Size(), info: info}, nil
}

// same reports whether two stamps are equal.
func (s stamp) same(t stamp) bool {
	return s.info != nil && t.info != nil && s.mod.Equal(t.mod) && s.size == t.size && os.SameFile(s.info, t.info)
}

// watched is a value made from files, and made again when one of them changes. If that fails, as in
// the middle of a rotation, the last good value stays.
type watched[T any] struct {
	paths []string
	load  func() (T, error)
	warn  func(error)

	mu     sync.Mutex
	value  T
	stamps []stamp
	looked time.Time
}

// watch loads the value for the first time.
func watch[T any](paths []string, warn func(error), load func() (T, error)) (*watched[T], error) {
	w := &watched[T]{paths: paths, load: load, warn: warn, stamps: make([]stamp, len(paths))}
	// Take the stamps first: a file that changes in between is then loaded again, not missed.
	var err error
	for i, p := range paths {
		if w.stamps[i], err = stampOf(p); err != nil {
			return nil, err
		}
	}
	if w.value, err = load(); err != nil {
		return nil, err
	}
	w.looked = time.Now()
	return w, nil
}

// get returns the value. It notices a change within recheckEvery.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.looked) >= recheckEvery {
		w.looked = now
		w.refresh()
	}
	return w.value
}

// refresh loads the value again if a file has changed. The caller holds mu.
func (w *watched[T]) refresh() {
	changed := false
	stamps := make([]stamp, len(w.paths))
	for i, p := range w.paths {
		s, err := stampOf(p)
		if err != nil {
			w.warn(fmt.Errorf("%w: what was read before stays in use", err))
			return
		}
		stamps[i] = s
		changed = changed || !s.same(w.stamps[i])
	}
	if !changed {
		return
	}
	value, err := w.load()
	if err != nil {
		w.warn(fmt.Errorf("%w: what was read before stays in use", err))
		return
	}
	w.value, w.stamps = value, stamps
}
