//go:build unix

package storerpc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/internal/fs/vfs"
	"taxon/store"
)

// aged makes a file in a folder's inbox that was written to so long ago.
func aged(t *testing.T, folder, digit string, ago time.Duration) string {
	t.Helper()
	path := filepath.Join(folder, inboxFolder, strings.Repeat(digit, 32))
	at := time.Now().Add(-ago)
	if err := os.WriteFile(path, []byte{1}, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return path
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestSweep: what clients leave that have ended goes in time, and sooner where the disk is
// full; what they write to, and the proof, stays; and an inbox that somebody removed comes back.
func TestSweep(t *testing.T) {
	in := &inbox{folder: t.TempDir()}
	proof, err := in.attach()
	if err != nil {
		t.Fatal(err)
	}
	left, resting, fresh := aged(t, in.folder, "a", time.Hour), aged(t, in.folder, "b", inboxStale/2),
		aged(t, in.folder, "c", 0)
	in.sweep(false)
	if there(left) || !there(resting) || !there(fresh) || !there(filepath.Join(in.folder, inboxFolder, proof)) {
		t.Error("not what is old alone has gone")
	}
	left = aged(t, in.folder, "a", time.Hour)
	in.sweep(false)
	if !there(left) {
		t.Error("the folder is looked through all the time")
	}
	in.sweep(true)
	if there(left) || there(resting) || !there(fresh) {
		t.Error("on a full disk not what rests has gone")
	}
	if again, err := in.attach(); err != nil || again != proof {
		t.Errorf("another proof: %v", err)
	}
	if err := ClearInbox(in.folder); err != nil || there(fresh) {
		t.Errorf("cleared: %v", err)
	}
	if again, err := in.attach(); err != nil || again == proof || !there(filepath.Join(in.folder, inboxFolder, again)) {
		t.Errorf("an inbox that was removed: %v", err)
	}
}

// TestOpenedBlocksNever: a client opens plain files alone, below the shard's folder.
func TestOpenedBlocksNever(t *testing.T) {
	folder := t.TempDir()
	for _, put := range []func(path string) error{
		func(path string) error { return syscall.Mkfifo(path, 0o600) },
		func(path string) error { return os.Symlink("/dev/zero", path) },
		func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		if err := put(filepath.Join(folder, "x")); err != nil {
			t.Fatal(err)
		}
		o := opened{folder: folder, names: []string{"x", "../x", "/dev/zero"}, files: make([]vfs.File, 3)}
		for file := range uint32(5) {
			if data, err := o.read(file, 0, 8); err == nil {
				t.Errorf("file %d: read %v", file, data)
			}
		}
		o.close()
		if err := os.Remove(filepath.Join(folder, "x")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAskedAgain: a shard that showed no files is asked again, now and then.
func TestAskedAgain(t *testing.T) {
	s := &shard{node: &node{name: "s"}}
	a := &attachment{}
	s.files.Store(a)
	for range askAgain - 1 {
		if s.attached(t.Context()) != "" {
			t.Fatal("files from nowhere")
		}
	}
	if a.passed.Load() != askAgain-1 {
		t.Errorf("%d calls passed", a.passed.Load())
	}
	found := &attachment{folder: "/x"}
	s.files.Store(found)
	if s.attached(t.Context()) != "/x" || found.passed.Load() != 0 {
		t.Error("an attachment is not used")
	}
}

// fullShard has no room.
type fullShard struct{ store.Shard }

func (fullShard) PutChecksummed(context.Context, []store.Checksummed) error { return store.ErrFull }

// TestFullShardSweeps: whichever way values come, a full shard takes its inbox's room.
func TestFullShardSweeps(t *testing.T) {
	in := &inbox{folder: t.TempDir()}
	if _, err := in.attach(); err != nil {
		t.Fatal(err)
	}
	resting := aged(t, in.folder, "b", inboxStale/2)
	put := &putStream{server: &Server{shard: fullShard{}, inbox: in}, ctx: t.Context()}
	if err := put.flush(); !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	if there(resting) {
		t.Error("what rests in the inbox keeps its room")
	}
}
