package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/store"
)

// A checkpoint is a folder that is published atomically. It holds the coordinator's state of the
// job, and a snapshot of the store's values that the state refers to. It does not record which
// shard held a value, so it can be restored to any number of shards.
const (
	stateFile  = "state"
	valuesFile = "values"
)

// checkpointer writes checkpoints for the coordinator. A job's newest one replaces the last.
type checkpointer struct {
	dir   func(job string) string
	store store.Store
	// spent returns the CPU seconds so far. If it is nil, they are not recorded.
	spent func() float64
}

// Checkpoint implements coordinator.Checkpointer. If the disk is full, the last checkpoint is kept.
func (c *checkpointer) Checkpoint(ctx context.Context, job string, _ uint32, state []byte, keep []uint32) error {
	err := c.write(ctx, job, state, keep)
	if dir := c.dir(job); fs.IsDiskFull(err) && fs.Exists(dir) {
		return fmt.Errorf("%s: the disk is full: free some space; %w", dir, coordinator.ErrOlderKept)
	}
	return err
}

// write writes a checkpoint of the state and of the values of the steps in keep.
func (c *checkpointer) write(ctx context.Context, job string, state []byte, keep []uint32) (err error) {
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
	dir := c.dir(job)
	out, err := fs.CreateDir(dir, true)
	if err != nil {
		return err
	}
	spent := 0.0
	if c.spent != nil {
		spent = c.spent()
	}
	return writeCheckpoint(out, state, spent, func(w io.Writer) error { return store.Snapshot(ctx, w, c.store, keys) })
}

// writeCheckpoint fills the folder of a checkpoint and publishes it.
func writeCheckpoint(out *fs.OutDir, state []byte, spent float64, values func(w io.Writer) error) error {
	defer out.Abort()
	if err := out.Write(stateFile, stateBytes(state, spent)); err != nil {
		return err
	}
	f, err := out.Create(valuesFile)
	if err != nil {
		return err
	}
	if err := vfs.CloseSynced(f, values(f)); err != nil {
		return fs.Explain(out.Name(), err)
	}
	return out.Commit()
}

// WriteState writes a coordinator's state of a job as a checkpoint whose values are stored
// elsewhere. If the file is named "state", LoadCheckpoint reads its folder.
func WriteState(path string, state []byte) error {
	return fs.WriteFile(path, stateBytes(state, 0))
}

// stateBytes returns the checksum, the CPU seconds if they are known, and the state. The seconds
// serve the report only.
func stateBytes(state []byte, spent float64) []byte {
	head := fmt.Appendf(nil, "taxon checkpoint 2 %08x %d", store.Checksum(state), len(state))
	if spent > 0 {
		head = fmt.Appendf(head, " %.3f", spent)
	}
	return slices.Concat(head, []byte("\n"), state)
}

// stateOf is the inverse of stateBytes. ok is false if data were not made by stateBytes.
func stateOf(data []byte) (state []byte, spent float64, ok bool) {
	head, state, ok := bytes.Cut(data, []byte("\n"))
	var sum uint32
	var size int
	if n, err := fmt.Sscanf(string(head), "taxon checkpoint 2 %08x %d", &sum, &size); !ok || err != nil || n != 2 ||
		size != len(state) || store.Checksum(state) != sum {
		return nil, 0, false
	}
	if words := strings.Fields(string(head)); len(words) == 6 {
		x, err := strconv.ParseFloat(words[5], 64)
		return state, x, err == nil && x >= 0 && x <= maxSpent
	}
	return state, 0, true
}

// maxSpent bounds the CPU seconds in a checkpoint.
const maxSpent = 1e12

// Checkpoint is the stored state of a job.
type Checkpoint struct {
	State []byte
	// Spent is the CPU time of all processes so far, in seconds (see Config.Spent). Zero means
	// unknown.
	Spent float64
	dir   string
}

// LoadCheckpoint reads the checkpoint in dir. It returns nil if there is none. If it is damaged,
// the error names the file.
func LoadCheckpoint(dir string) (*Checkpoint, error) {
	path := fs.Join(dir, stateFile)
	data, err := fs.ReadFile(context.Background(), path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := fs.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return nil, damaged(path) // it was complete once, so somebody removed the file
	}
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	state, spent, ok := stateOf(data)
	if !ok {
		return nil, damaged(path)
	}
	return &Checkpoint{State: state, Spent: spent, dir: dir}, nil
}

// UpdateStopCriteria replaces the stopping criteria of the checkpoint's job (see
// machine.UpdateStopCriteria). It returns the progress of the job.
func (c *Checkpoint) UpdateStopCriteria(caps machine.StopCriteria) (machine.Checkpoint, error) {
	r, err := machine.UpdateStopCriteria(c.State, caps)
	if err == nil {
		c.State = r.State
	}
	return r, err
}

// restore puts the snapshot's values into the store.
func (c *Checkpoint) restore(ctx context.Context, dst store.Store) error {
	local, done, err := fs.Fetch(ctx, c.dir)
	if err != nil {
		return err
	}
	defer done()
	path := fs.Join(c.dir, valuesFile)
	f, err := fs.OpenRegular(fs.Join(local, valuesFile))
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

// damaged returns the error of a damaged checkpoint file.
func damaged(path string) error {
	return fs.Inputf(path, 0, "the checkpoint is damaged: use ‹force› to train anew")
}
