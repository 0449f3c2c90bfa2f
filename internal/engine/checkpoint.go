package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"taxon/coordinator"
	"taxon/internal/fs"
	"taxon/store"
)

// A checkpoint is a folder that appears whole: the coordinator's state of the job and
// a snapshot of the store's values that the state refers to. Placement is not part of
// it, so it can be brought back over any number of shards.
const (
	stateFile  = "state"
	valuesFile = "values"
)

// checkpointer writes checkpoints for the coordinator, the newest in place of the last.
type checkpointer struct {
	dir   string
	store store.Store
}

// Checkpoint implements coordinator.Checkpointer.
func (c *checkpointer) Checkpoint(ctx context.Context, job string, _ uint32, state []byte, keep []uint32) (err error) {
	var keys []store.Key
	err = c.store.List(ctx, job, func(i store.Info) error {
		if slices.Contains(keep, i.Key.Step) {
			keys = append(keys, i.Key)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	out, err := fs.CreateDir(c.dir, true)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			out.Abort()
		}
	}()
	if err := writeState(out.Join(stateFile), state); err != nil {
		return fs.Explain(c.dir, err)
	}
	if err := c.writeValues(ctx, out.Join(valuesFile), keys); err != nil {
		return fs.Explain(c.dir, err)
	}
	return out.Commit()
}

func (c *checkpointer) writeValues(ctx context.Context, path string, keys []store.Key) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(store.Snapshot(ctx, f, c.store, keys), f.Sync(), f.Close())
}

// writeState writes the state behind its checksum.
func writeState(path string, state []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(stateBytes(state))
	return errors.Join(err, f.Sync(), f.Close())
}

// WriteState writes a coordinator's state of a job as a checkpoint whose values lie
// elsewhere: LoadCheckpoint of its folder reads it, if it is named "state".
func WriteState(path string, state []byte) error {
	return fs.WriteFile(path, stateBytes(state))
}

// stateBytes is the state behind its checksum.
func stateBytes(state []byte) []byte {
	return append(fmt.Appendf(nil, "taxon checkpoint 1 %08x %d\n", store.Checksum(state), len(state)), state...)
}

// Checkpoint is a stored state of a job.
type Checkpoint struct {
	State []byte
	dir   string
}

// LoadCheckpoint reads the checkpoint in dir; nil if there is none. A damaged one is
// an error that names the file.
func LoadCheckpoint(dir string) (*Checkpoint, error) {
	path := fs.Join(dir, stateFile)
	data, err := fs.ReadFile(context.Background(), path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := fs.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, damaged(path) // the folder appeared whole, so somebody took the file away
	}
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	head, state, ok := bytes.Cut(data, []byte("\n"))
	var sum uint32
	var size int
	if n, err := fmt.Sscanf(string(head), "taxon checkpoint 1 %08x %d", &sum, &size); !ok || err != nil || n != 2 ||
		size != len(state) || store.Checksum(state) != sum {
		return nil, damaged(path)
	}
	return &Checkpoint{State: state, dir: dir}, nil
}

// Recap gives the checkpoint's job other caps to go on with: see coordinator.Recap.
func (c *Checkpoint) Recap(caps coordinator.Caps) (err error) {
	c.State, err = coordinator.Recap(c.State, caps)
	return err
}

// restore puts the snapshot's values into the store.
func (c *Checkpoint) restore(ctx context.Context, dst store.Store) error {
	local, done, err := fs.Fetch(ctx, c.dir)
	if err != nil {
		return err
	}
	defer done()
	path := fs.Join(c.dir, valuesFile)
	f, err := os.Open(fs.Join(local, valuesFile))
	if errors.Is(err, os.ErrNotExist) {
		return damaged(path)
	}
	if err != nil {
		return fs.Explain(path, err)
	}
	defer f.Close()
	if err := store.Restore(ctx, f, dst, store.Limits{}); err != nil {
		if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrSnapshot) {
			return damaged(path)
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func damaged(path string) error {
	return fs.Inputf(path, 0, "the checkpoint is damaged: use --force to train anew")
}
