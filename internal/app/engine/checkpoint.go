package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	"taxon/internal/fs"
	"taxon/store"
	"taxon/store/backup"
)

// A checkpoint is a snapshot (package backup) of the values that the coordinator's state of a job
// refers to, with these files beside them. It can be restored to any number of shards.
const (
	stateFile = "state"
	// spentFile holds the CPU seconds of all processes so far, as a decimal number. Only the report
	// uses it.
	spentFile = "cpu-seconds"
)

// maxSpent bounds the CPU seconds in a checkpoint.
const maxSpent = 1e12

// checkpointer writes checkpoints for the coordinator. A job's newest one replaces the last.
type checkpointer struct {
	dir   func(job string) string
	store backup.Placed
	// spent returns the CPU seconds so far. If it is nil, they are not recorded.
	spent func() float64
}

// Checkpoint implements coordinator.Checkpointer. If the disk is full, the last checkpoint is kept.
func (c *checkpointer) Checkpoint(ctx context.Context, job string, _ uint32, state []byte, keep []uint32) error {
	extra := []backup.Extra{{Name: stateFile, Data: state}}
	if c.spent != nil {
		extra = append(extra, backup.Extra{Name: spentFile, Data: fmt.Appendf(nil, "%.3f", c.spent())})
	}
	dir := c.dir(job)
	err := writeCheckpoint(ctx, dir, c.store, backup.Spec{Job: job, Extra: extra,
		Keep: func(k store.Key) bool { return slices.Contains(keep, k.Step) }})
	if fs.IsDiskFull(err) && fs.Exists(dir) {
		return fmt.Errorf("%s: the disk is full: free some space; %w", dir, coordinator.ErrOlderKept)
	}
	return err
}

// writeCheckpoint writes a checkpoint's folder, which appears whole.
func writeCheckpoint(ctx context.Context, dir string, src backup.Placed, spec backup.Spec) error {
	out, err := backup.Local(dir)
	if err == nil {
		_, err = backup.Write(ctx, out, src, spec)
	}
	return err
}

// Checkpoint is the stored state of a job.
type Checkpoint struct {
	State []byte
	// Spent is the CPU time of all processes so far, in seconds (see Config.Spent). Zero means
	// unknown.
	Spent float64
	// dir is the folder, for errors, and back the snapshot in it. Nil means that a Backend has the
	// values.
	dir  string
	back *backup.Snapshot
}

// LoadCheckpoint reads the checkpoint in dir. It returns nil if there is none. If it is damaged,
// the error names the folder.
func LoadCheckpoint(dir string) (*Checkpoint, error) {
	if _, err := fs.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	c := &Checkpoint{dir: dir}
	if err := c.load(context.Background()); err != nil {
		return nil, c.damage(err)
	}
	return c, nil
}

// load reads everything in a checkpoint except the values.
func (c *Checkpoint) load(ctx context.Context) (err error) {
	if c.back, err = backup.Open(ctx, fs.Local{}, c.dir); err != nil {
		return err
	}
	if c.State, err = c.back.ReadExtra(ctx, stateFile); err != nil {
		return err
	}
	if !slices.ContainsFunc(c.back.Extra, func(f backup.File) bool { return f.Name == spentFile }) {
		return nil
	}
	b, err := c.back.ReadExtra(ctx, spentFile)
	if err != nil {
		return err
	}
	if c.Spent, err = strconv.ParseFloat(string(b), 64); err != nil || !(c.Spent >= 0 && c.Spent <= maxSpent) {
		return store.ErrSnapshot
	}
	return nil
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

// damage turns an error about a damaged snapshot into the error of a damaged checkpoint. It returns
// other errors as they are.
func (c *Checkpoint) damage(err error) error {
	if errors.Is(err, store.ErrSnapshot) || errors.Is(err, store.ErrCorrupt) || errors.Is(err, os.ErrNotExist) {
		return damaged(c.dir) // it appeared whole, so what is missing was removed
	}
	return err
}

// damaged returns the error of a damaged checkpoint file.
func damaged(path string) error {
	return fs.Inputf(path, 0, "the checkpoint is damaged: use ‹force› to train anew")
}

// WriteState writes the state of a job to a file, which it replaces if it exists. A Backend holds
// the values of such a job. The file begins with a line that has the state's checksum and size.
func WriteState(path string, state []byte) error {
	head := fmt.Appendf(nil, "taxon state 1 %08x %d\n", store.Checksum(state), len(state))
	return fs.WriteFile(path, append(head, state...))
}

// LoadState reads a file that WriteState wrote. It returns nil if there is none. If it is damaged,
// the error names it.
func LoadState(path string) (*Checkpoint, error) {
	b, err := fs.ReadFile(context.Background(), path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	head, state, _ := bytes.Cut(b, []byte("\n"))
	if string(head) != fmt.Sprintf("taxon state 1 %08x %d", store.Checksum(state), len(state)) {
		return nil, damaged(path)
	}
	return &Checkpoint{State: state}, nil
}
