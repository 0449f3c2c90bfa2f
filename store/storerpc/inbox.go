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

// A file there that was not written to for inboxStale is one of a client that has ended, or
// of one that makes another when it needs it; they are looked for every sweepEvery, and at
// once, if idle for a little, where the disk is full.
const (
	inboxStale = time.Minute
	sweepEvery = 10 * time.Second
	inboxIdle  = 5 * time.Second
)

var inboxName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// inbox is the shard's side of its folder.
type inbox struct {
	folder string // of the shard, absolute

	mu    sync.Mutex
	proof string    // name of a file there, made at the first call
	swept time.Time // when clients' files were last looked for
}

// newName is one that nobody guesses.
func newName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ClearInbox removes what clients have left in a shard's folder that nobody serves.
func ClearInbox(folder string) error { return os.RemoveAll(filepath.Join(folder, inboxFolder)) }

// attach gives the name of the file that proves to a client that it sees this folder.
func (in *inbox) attach() (proof string, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	dir := filepath.Join(in.folder, inboxFolder)
	if _, err := os.Lstat(filepath.Join(dir, in.proof)); in.proof == "" || err != nil { // or somebody has removed it
		if err := errors.Join(ClearInbox(in.folder), os.Mkdir(dir, 0o700)); err != nil {
			return "", err
		}
		name := newName()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return "", err
		}
		in.proof = name
	}
	return in.proof, nil
}

// sweep removes clients' files that were not written to for inboxStale, unless that was
// done just before; if the disk is full those of inboxIdle, at once.
func (in *inbox) sweep(full bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	idle := inboxStale
	if full {
		idle = inboxIdle
	} else if time.Since(in.swept) < sweepEvery {
		return
	}
	in.swept = time.Now()
	dir := filepath.Join(in.folder, inboxFolder)
	entries, _ := os.ReadDir(dir) // what can't be read now can the next time
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != in.proof && time.Since(info.ModTime()) > idle {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// read reads the beginning of a client's file. fs.ErrNotExist if there is none.
func (in *inbox) read(name string, data []byte) error {
	f, err := openPlain(filepath.Join(in.folder, inboxFolder, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < int64(len(data)) {
		return fmt.Errorf("%s has %d bytes, must have %d", name, info.Size(), len(data))
	}
	_, err = io.ReadFull(f, data)
	return err
}
