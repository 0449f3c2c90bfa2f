package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"taxon/internal/dataset"
	"taxon/internal/fs"
	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/backup"
)

// Saved is a job's snapshot in a folder of snapshots.
type Saved struct {
	Job   string
	State []byte // the coordinator's, of the job
	root  string // the folder of snapshots
	back  *backup.Snapshot
}

// Bytes is the size of the values.
func (s *Saved) Bytes() uint64 { return s.back.Manifest.Bytes }

// OpenSaved opens the snapshot of a job in a folder of snapshots, or the one that the
// folder is; job "": the only one there is.
func OpenSaved(ctx context.Context, dir, job string) (*Saved, error) {
	dir = strings.TrimRight(dir, "/")
	if job != "" {
		if err := store.ValidateJob(job); err != nil {
			return nil, err
		}
		return openSaved(ctx, dir, job)
	}
	if f, _, err := (fs.Local{}).Open(ctx, inFolder(dir, "manifest")); err == nil {
		_ = f.Close()
		root, name := ".", dir
		if i := strings.LastIndexByte(dir, '/'); i >= 0 {
			root, name = dir[:i], dir[i+1:]
		}
		return openSaved(ctx, root, name)
	}
	jobs, _, err := listSaved(dir)
	switch {
	case err != nil:
		return nil, err
	case len(jobs) == 0:
		return nil, fs.Inputf(dir, 0, "holds no snapshot: give the folder of `taxon coordinator --snapshots`")
	case len(jobs) > 1:
		return nil, fs.Inputf(dir, 0, "holds snapshots of several jobs, name one: %s", strings.Join(jobs, ", "))
	}
	return openSaved(ctx, dir, jobs[0])
}

// steadyTries bounds how often a snapshot is read that is replaced again and again, and
// steadyPause is what its replacement may take.
const (
	steadyTries = 8
	steadyPause = 100 * time.Millisecond
)

// Steadily calls use with the snapshot that OpenSaved opens. One that is replaced by the next
// one while it is read is read anew, from the beginning.
func Steadily(ctx context.Context, dir, job string, use func(*Saved) error) error {
	var before []byte
	for try := 1; ; try++ {
		saved, err := OpenSaved(ctx, dir, job)
		if err == nil {
			if try > 1 && bytes.Equal(saved.State, before) { // it is the same, and damaged
				try = steadyTries
			}
			before = saved.State
			err = use(saved)
		}
		torn := errors.Is(err, store.ErrSnapshot) || before != nil && errors.Is(err, os.ErrNotExist)
		if !torn || try >= steadyTries || pause.For(ctx, steadyPause) != nil {
			return err
		}
	}
}

// openSaved opens the snapshot of the folder name in root; os.ErrNotExist if there is none.
func openSaved(ctx context.Context, root, name string) (*Saved, error) {
	path := inFolder(root, name)
	back, err := backup.Open(ctx, fs.Local{}, path)
	if err != nil {
		return nil, err
	}
	state, err := back.ReadExtra(ctx, stateFile)
	if err != nil {
		return nil, err
	}
	return &Saved{Job: back.Job, State: state, root: root, back: back}, nil
}

// PutValues puts the job's values into a store, of any number of shards, after all of
// them were checked.
func (s *Saved) PutValues(ctx context.Context, dst store.Store) error {
	return s.back.Restore(ctx, dst)
}

// PutData uploads the job's data set d, as far as it is not there. progress is Upload's.
func (s *Saved) PutData(ctx context.Context, st Writer, d *taxonv1.Data, progress func(done, total int64)) error {
	name, held, namesOnly := savedData(d)
	if name == "" {
		return nil
	}
	dir := inFolder(s.root, name)
	if fs.IsRemote(dir) {
		temp, err := os.MkdirTemp("", "taxon-restore-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		if err := copyData(ctx, dir, temp, namesOnly); err != nil {
			return err
		}
		dir = temp
	}
	path, err := Upload(ctx, st, dir, namesOnly, progress)
	if err != nil {
		return fmt.Errorf("the data of job %s: %w", s.Job, err)
	}
	if path != held.GetPath() {
		return fs.Inputf(dir, 0, "is not the data of job %s", s.Job)
	}
	return nil
}

// copyData copies a data set of another file system to this machine.
func copyData(ctx context.Context, from, to string, namesOnly bool) error {
	if err := copyFile(ctx, from, to, dataset.ManifestName); err != nil {
		return err
	}
	l, err := dataset.List(to)
	if err != nil {
		return err
	}
	for _, f := range l.Files {
		if namesOnly && !dataset.HoldsNames(f.Name) {
			continue
		}
		if err := copyFile(ctx, from, to, f.Name); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(ctx context.Context, from, to, name string) error {
	in, _, err := fs.Local{}.Open(ctx, inFolder(from, name))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(to, name))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
