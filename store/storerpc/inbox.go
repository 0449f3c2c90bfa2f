package storerpc

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// inboxFolder is where clients of a short circuit put files, within a shard's folder.
const inboxFolder = "inbox"

// inboxStale is the age at which a file there is one that a client left when it was killed.
const inboxStale = 10 * time.Minute

var inboxName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// inbox is the shard's side of its folder.
type inbox struct {
	folder string // of the shard, absolute

	mu    sync.Mutex
	proof string // name of a file there, made at the first call
}

// newName is one that nobody guesses.
func newName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// attach gives the name of the file that proves to a client that it sees this folder. What
// killed clients have left goes first.
func (in *inbox) attach() (proof string, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	dir := filepath.Join(in.folder, inboxFolder)
	if in.proof == "" {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			return "", err
		}
		name := newName()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return "", err
		}
		in.proof = name
	}
	entries, err := os.ReadDir(dir) // a client at work writes to its file now and then
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != in.proof && time.Since(info.ModTime()) > inboxStale {
			_ = os.Remove(filepath.Join(dir, e.Name())) // or the next time
		}
	}
	return in.proof, err
}

// read reads the beginning of a client's file. fs.ErrNotExist if there is none.
func (in *inbox) read(name string, data []byte) error {
	f, err := openInbox(filepath.Join(in.folder, inboxFolder, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() < int64(len(data)) {
		return fmt.Errorf("%s has %d bytes, must have %d", name, info.Size(), len(data))
	}
	_, err = io.ReadFull(f, data)
	return err
}
