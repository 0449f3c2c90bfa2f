package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/backup"
)

// stateFile is the name of the coordinator's state in a snapshot.
const stateFile = "state"

// restorePatience is how long a shard may be away while a job is rolled back.
const restorePatience = 10 * time.Minute

// Snapshots keeps what the jobs of a coordinator can continue from if the store has lost their
// values. The folder Dir has a snapshot for each job (package backup), in which the newest replaces
// the previous one, and the data sets of these jobs, each once. It implements
// coordinator.Checkpointer and coordinator.Restorer.
type Snapshots struct {
	// Dir is the folder of the snapshots.
	Dir string
	// Cluster is the id of this cluster (see Identity).
	Cluster string
	// Store returns the store of a job.
	Store func(job string) (backup.Placed, error)
	// Data holds the data sets of the cluster.
	Data Uploads
	// DataOf returns the job and the data of a state.
	DataOf func(state []byte) (job string, d *taxonv1.Data, err error)

	// mu is held while data sets are written or removed.
	mu sync.Mutex
}

// Uploads is a store of data sets (see DataStore).
type Uploads interface {
	Reader
	Writer
}

// Checkpoint implements coordinator.Checkpointer. It writes a snapshot: the state, and the job's
// values of the given steps.
func (s *Snapshots) Checkpoint(ctx context.Context, job string, _ uint32, state []byte, keep []uint32) error {
	src, err := s.Store(job)
	if err != nil {
		return err
	}
	dir, err := backup.Local(inFolder(s.Dir, job))
	if err != nil {
		return err
	}
	defer dir.Abort()
	if err := s.check(ctx, job); err != nil { // now that nobody else writes it
		return err
	}
	if err := s.sign(dir); err != nil {
		return err
	}
	_, err = backup.Write(ctx, dir, src, backup.Spec{Job: job,
		Keep:  func(k store.Key) bool { return slices.Contains(keep, k.Step) },
		Extra: []backup.Extra{{Name: stateFile, Data: state}}})
	if err != nil {
		return err
	}
	_, d, err := s.DataOf(state)
	if err != nil {
		return err
	}
	return s.keepData(ctx, d)
}

// Taken returns when the last snapshot of a job was taken. It is the zero time if there is none.
func (s *Snapshots) Taken(job string) time.Time {
	info, err := fs.Stat(inFolder(inFolder(s.Dir, job), stateFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// RestoreCheckpoint implements coordinator.Restorer. It puts the missing values of the job's
// snapshot, and of its data set, back into the store. It returns nil if this cluster has no
// snapshot of the job.
func (s *Snapshots) RestoreCheckpoint(ctx context.Context, job string) ([]byte, error) {
	if owner, err := ownerOf(ctx, inFolder(s.Dir, job)); err != nil || owner != "" && owner != s.Cluster {
		return nil, err
	}
	saved, err := openSaved(ctx, s.Dir, job)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	dst, err := s.Store(job)
	if err != nil {
		return nil, err
	}
	_, d, err := s.DataOf(saved.State)
	if err != nil {
		return nil, err
	}
	return saved.State, retry.Retry(ctx, restorePatience, func() error {
		if err := saved.PutData(ctx, s.Data, 1, d, nil); err != nil {
			return err
		}
		return saved.PutValues(ctx, dst)
	}, Away)
}

// Forget removes the snapshot of a job whose values are dropped, and data sets that no other
// snapshot needs. It leaves what is not this cluster's.
func (s *Snapshots) Forget(ctx context.Context, job string) error {
	if err := s.remove(ctx, job); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs, sets, err := listSaved(s.Dir)
	if err != nil || len(sets) == 0 {
		return err
	}
	needed := map[string]bool{}
	for _, job := range jobs {
		saved, err := openSaved(ctx, s.Dir, job)
		if err != nil {
			return nil // its needs are unknown, so remove nothing
		}
		_, d, err := s.DataOf(saved.State)
		if err != nil {
			return nil
		}
		name, _, _ := savedData(d)
		needed[name] = true
	}
	for _, set := range sets {
		if owner, err := ownerOf(ctx, inFolder(s.Dir, set)); err == nil && owner == s.Cluster && !needed[set] {
			if err := fs.RemoveAll(inFolder(s.Dir, set)); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepData writes a job's data set beside the snapshots, unless it is there.
func (s *Snapshots) keepData(ctx context.Context, d *taxonv1.Data) error {
	name, held, namesOnly := savedData(d)
	if name == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	path := inFolder(s.Dir, name)
	if f, _, err := (fs.Local{}).Open(ctx, inFolder(path, dataset.ManifestName)); err == nil {
		return f.Close()
	}
	if names, err := contents(path); err != nil || len(names) > 0 {
		return errors.Join(err, fmt.Errorf("snapshot: %s holds no data set and %w: move it away", path, ErrForeign))
	}
	l, err := listing(ctx, s.Data, held)
	if err != nil {
		return err
	}
	dir, err := backup.Local(path)
	if err != nil {
		return err
	}
	defer dir.Abort()
	if err := s.sign(dir); err != nil {
		return err
	}
	for n, f := range l.Files {
		if namesOnly && !dataset.HoldsNames(f.Name) {
			continue
		}
		out, err := dir.Create(f.Name)
		if err == nil {
			err = fetchFile(ctx, s.Data, l, n, out)
		}
		if err != nil {
			return fmt.Errorf("snapshot: %s of data %.12s: %w", f.Name, l.Fingerprint, err)
		}
	}
	out, err := dir.Create(dataset.ManifestName)
	if err != nil {
		return err
	}
	_, err = out.Write(l.Manifest)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return dir.Commit()
}

// savedData returns the name of the folder for a job's data set, the data as the store knows them,
// and whether only their names are kept. The name is empty if the store holds nothing of them.
func savedData(d *taxonv1.Data) (name string, held *taxonv1.Data, namesOnly bool) {
	path := d.GetPath()
	if !Uploaded(path) {
		path, namesOnly = d.GetNames(), true
	}
	sum, ok := indexOf(path)
	if !ok {
		return "", nil, false
	}
	return dataPrefix + sum, &taxonv1.Data{Path: path, Fingerprint: d.GetFingerprint()}, namesOnly
}

// inFolder joins a folder, local or remote, and a name in it.
func inFolder(dir, name string) string { return strings.TrimRight(dir, "/") + "/" + name }

// listSaved lists the snapshots and the data sets in a folder.
func listSaved(dir string) (jobs, sets []string, err error) {
	names, err := fs.ReadDirNames(dir)
	if err != nil {
		return nil, nil, fs.Explain(dir, err)
	}
	for _, name := range names {
		sum, isSet := strings.CutPrefix(name, dataPrefix)
		switch {
		case isSet && isSum(sum):
			sets = append(sets, name)
		case isSet || strings.HasSuffix(name, ".part") || store.ValidateJob(name) != nil:
		case fs.Exists(inFolder(inFolder(dir, name), "manifest")):
			jobs = append(jobs, name)
		}
	}
	return jobs, sets, nil
}

// Saved is a job's snapshot in a folder of snapshots.
type Saved struct {
	Job string
	// State is the coordinator's state of the job.
	State []byte
	// root is the folder of snapshots.
	root string
	back *backup.Snapshot
}

// Bytes returns the size of the values.
func (s *Saved) Bytes() uint64 { return s.back.Manifest.Bytes }

// OpenSaved opens a job's snapshot in a folder of snapshots, or the snapshot that the folder is. An
// empty job means the only one.
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
		return nil, fs.Inputf(dir, 0, "holds no snapshot: give the folder of `taxon coordinator ‹snapshots›`")
	case len(jobs) > 1:
		return nil, fs.Inputf(dir, 0, "holds snapshots of several jobs, name one: %s", strings.Join(jobs, ", "))
	}
	return openSaved(ctx, dir, jobs[0])
}

const (
	// snapshotTries is how often a snapshot that is replaced while it is read is read again, each
	// time after snapshotPause.
	snapshotTries = 8
	snapshotPause = 100 * time.Millisecond
)

// WithSnapshot calls use with the snapshot that OpenSaved opens. If the next snapshot replaces it
// during the call, it calls use again with that one.
func WithSnapshot(ctx context.Context, dir, job string, use func(*Saved) error) error {
	var before []byte
	for try := 1; ; try++ {
		saved, err := OpenSaved(ctx, dir, job)
		if err == nil {
			if try > 1 && bytes.Equal(saved.State, before) { // still the same one, so it is damaged
				try = snapshotTries
			}
			before = saved.State
			err = use(saved)
		}
		torn := errors.Is(err, store.ErrSnapshot) || before != nil && errors.Is(err, os.ErrNotExist)
		if !torn || try >= snapshotTries || retry.For(ctx, snapshotPause) != nil {
			return err
		}
	}
}

// openSaved opens the snapshot in the folder name below root. It returns os.ErrNotExist if there is
// none.
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

// PutValues checks all of the job's values, and then puts them into a store with any number of
// shards.
func (s *Saved) PutValues(ctx context.Context, dst store.Store) error {
	return s.back.Restore(ctx, dst)
}

// PutData uploads the missing parts of the job's data set d. copies and progress are as in Upload.
func (s *Saved) PutData(ctx context.Context, st Writer, copies int, d *taxonv1.Data,
	progress func(done, total int64)) error {
	name, held, namesOnly := savedData(d)
	if name == "" {
		return nil
	}
	dir := inFolder(s.root, name)
	if fs.Shared(dir) {
		temp, done, err := fs.TempDir("restore")
		if err != nil {
			return err
		}
		defer done()
		if err := copyData(ctx, dir, temp, namesOnly); err != nil {
			return err
		}
		dir = temp
	}
	path, err := Upload(ctx, st, copies, dir, namesOnly, progress)
	if err != nil {
		return fmt.Errorf("the data of job %s: %w", s.Job, err)
	}
	if path != held.GetPath() {
		return fs.Inputf(dir, 0, "is not the data of job %s", s.Job)
	}
	return nil
}

// copyData copies a data set from another file system to this machine.
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
	out, err := vfs.OS.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
