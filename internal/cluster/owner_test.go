package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/backup"
	"taxon/store/memory"
)

// oneShard is a store of one shard.
type oneShard struct{ store.Store }

func (oneShard) Shards() []string      { return []string{"s"} }
func (oneShard) ShardOf(store.Key) int { return 0 }

// saver keeps the snapshots of a cluster in dir.
func saver(t *testing.T, dir, cluster string) *Snapshots {
	t.Helper()
	st := memory.New(memory.Options{})
	for _, job := range []string{"f1", "nightly"} {
		if err := st.Put(t.Context(), []store.Value{{Key: store.Key{Job: job, Step: 1, Task: 0, Attempt: 1, Name: "v"},
			Data: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	return &Snapshots{Dir: dir, Cluster: cluster, Store: func(string) (backup.Placed, error) { return oneShard{st}, nil },
		DataOf: func(state []byte) (string, *taxonv1.Data, error) { return "", &taxonv1.Data{Path: "/in/place"}, nil }}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, path, text string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("%s: %q, %v: want %q", path, b, err, text)
	}
}

const clusterA, clusterB = "aaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbb"

// What a cluster did not write it neither replaces nor removes, whatever a job is called.
func TestSnapshotsLeaveOthersAlone(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	a, b := saver(t, dir, clusterA), saver(t, dir, clusterB)
	thesis := filepath.Join(dir, "f1", "thesis.txt")
	write(t, thesis, "years of work")
	if _, err := a.Reserve(ctx, "f1", nil); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("claim of a user's folder: %v", err)
	}
	if err := a.Checkpoint(ctx, "f1", 1, []byte("1"), []uint32{1}); !errors.Is(err, ErrForeign) {
		t.Errorf("checkpoint over a user's folder: %v", err)
	}
	if err := a.Forget(ctx, "f1"); err != nil {
		t.Error(err)
	}
	holds(t, thesis, "years of work")

	if err := a.Checkpoint(ctx, "nightly", 1, []byte("1 of A"), []uint32{1}); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "nightly", "state")
	if _, err := b.Reserve(ctx, "nightly", nil); !errors.Is(err, ErrForeign) {
		t.Errorf("claim of another cluster's snapshot: %v", err)
	}
	if err := b.Checkpoint(ctx, "nightly", 1, []byte("1 of B"), []uint32{1}); !errors.Is(err, ErrForeign) {
		t.Errorf("checkpoint over another cluster's: %v", err)
	}
	if got, err := b.RestoreCheckpoint(ctx, "nightly"); got != nil || err != nil {
		t.Errorf("rolls back to another cluster's snapshot: %q, %v", got, err)
	}
	if err := b.Forget(ctx, "nightly"); err != nil {
		t.Error(err)
	}
	holds(t, state, "1 of A")

	// Restored from it on purpose, B takes it over, and A leaves it alone.
	if _, err := b.Reserve(ctx, "nightly", []byte("1 of somewhere")); !errors.Is(err, ErrForeign) {
		t.Errorf("taken over by a job restored from elsewhere: %v", err)
	}
	confirm, err := b.Reserve(ctx, "nightly", []byte("1 of A"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Reserve(ctx, "nightly", nil); err != nil {
		t.Errorf("taken over before the job was: %v", err)
	}
	if err := errors.Join(confirm(), b.Checkpoint(ctx, "nightly", 2, []byte("1 of B"), []uint32{1})); err != nil {
		t.Fatal(err)
	}
	if err := a.Checkpoint(ctx, "nightly", 2, []byte("1 of A"), []uint32{1}); !errors.Is(err, ErrForeign) {
		t.Errorf("the cluster before goes on: %v", err)
	}
	holds(t, state, "1 of B")

	// A file beside the snapshot stays, and keeps it from being replaced.
	notes := filepath.Join(dir, "nightly", "notes.txt")
	write(t, notes, "mine")
	if err := b.Checkpoint(ctx, "nightly", 3, []byte("1 of B"), []uint32{1}); !errors.Is(err, ErrForeign) {
		t.Errorf("replaced with a user's file in it: %v", err)
	}
	if err := b.Forget(ctx, "nightly"); err != nil {
		t.Error(err)
	}
	holds(t, notes, "mine")
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the snapshot was not dropped: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	one, err := Identity(t.Context(), dir)
	if again, errAgain := Identity(t.Context(), dir); err != nil || errAgain != nil || one != again ||
		!plainID.MatchString(one) {
		t.Errorf("%q, %v, then %q, %v", one, err, again, errAgain)
	}
	if other, err := Identity(t.Context(), t.TempDir()); err != nil || other == one {
		t.Errorf("of another folder: %q, %v", other, err)
	}
	write(t, filepath.Join(dir, identityName), "garbage")
	if _, err := Identity(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("damaged: %v", err)
	}
}

// A snapshot that is replaced while it is read is read anew; one that is damaged is refused.
func TestSteadily(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	a := saver(t, dir, clusterA)
	take := func(state string) {
		t.Helper()
		if err := a.Checkpoint(ctx, "nightly", 1, []byte(state), []uint32{1}); err != nil {
			t.Fatal(err)
		}
	}
	take("1")
	var read []string
	err := WithSnapshot(ctx, dir, "nightly", func(s *Saved) error {
		read = append(read, string(s.State))
		if len(read) < 3 {
			take("1" + strings.Repeat("x", len(read)))
			return store.ErrSnapshot
		}
		return nil
	})
	if err != nil || strings.Join(read, " ") != "1 1x 1xx" {
		t.Errorf("read %v, %v", read, err)
	}
	tries := 0
	err = WithSnapshot(ctx, dir, "nightly", func(*Saved) error { tries++; return store.ErrSnapshot })
	if !errors.Is(err, store.ErrSnapshot) || tries != 2 {
		t.Errorf("a damaged one: %v after %d tries", err, tries)
	}
}
