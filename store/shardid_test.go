package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
	"taxon/store"
)

func TestShardID(t *testing.T) {
	dir := t.TempDir()
	id, err := store.ShardID(vfs.OS, dir, "")
	if err != nil || !strings.HasPrefix(id, "shard-") {
		t.Fatalf("%q, %v", id, err)
	}
	for _, want := range []string{"", id} {
		if again, err := store.ShardID(vfs.OS, dir, want); again != id || err != nil {
			t.Errorf("again: %q, %v", again, err)
		}
	}
	if _, err := store.ShardID(vfs.OS, dir, "another"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("another id: %v", err)
	}
	if _, err := store.ShardID(vfs.OS, t.TempDir(), "a b"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("bad id: %v", err)
	}
	if _, err := store.ShardID(vfs.OS, filepath.Join(dir, "no"), ""); err == nil {
		t.Error("an id in no folder")
	}
	if other, err := store.ShardID(vfs.OS, t.TempDir(), ""); other == id || err != nil {
		t.Errorf("two shards are %q, %v", other, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v is left, %v", names, err)
	}
}

// TestShardIDDamaged: no flipped bit and no cut makes it another id.
func TestShardIDDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, store.IDFile)
	if _, err := store.ShardID(vfs.OS, dir, "s-1"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(whole) != "taxon-shard 1 s-1 a1f676ed\n" {
		t.Errorf("the file holds %q: another layout needs another version", whole)
	}
	try := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if id, err := store.ShardID(vfs.OS, dir, ""); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %q, %v", what, id, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			b := []byte(string(whole))
			b[i] ^= 1 << bit
			try("flipped", b)
		}
		try("cut", whole[:i])
	}
}

// TestShardIDOnAnyDisk fails every call to the disk, and crashes after it: an id that was given stays.
func TestShardIDOnAnyDisk(t *testing.T) {
	give := func(fs vfs.FS) string {
		id, err := store.ShardID(fs, "/shard", "")
		if err != nil {
			return ""
		}
		return id
	}
	vfstest.Sweep(t, func(fs vfs.FS) error { return vfs.MkdirAll(fs, "/shard", 0o777) }, give,
		func(fs vfs.FS, id string) error {
			again, err := store.ShardID(fs, "/shard", "")
			if err == nil && id != "" && again != id {
				err = fmt.Errorf("the shard was %s and is %s", id, again)
			}
			if list, e := fs.ReadDir("/shard"); err == nil && (e != nil || id == "" && len(list) != 1) {
				err = fmt.Errorf("%v is left, %v", list, e)
			}
			return err
		})
}
