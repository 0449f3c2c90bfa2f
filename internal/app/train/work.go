package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"taxon/coordinator/machine"
	"taxon/internal/app/engine"
	"taxon/internal/cluster/jobs"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/model"
	"taxon/internal/ui/option"
)

// Work is the folder next to the model's place that holds the ingested data and the checkpoint,
// while a training runs and after it was interrupted. One process owns it.
type Work struct {
	out string
	// Path is on this machine, even for a model that goes to HDFS, as data are mapped into memory.
	Path string
	// folder of the checkpoint: Path, or next to a model in a Hadoop file system
	Keep string
	lock vfs.File
	// begun says that sweeps have begun, so that a failure may lose some.
	begun bool
	// state is the folder of a training by MapReduce, which also holds its checkpoint.
	state string
	// removeParents removes the model's parent folders that this run has made, if they are empty.
	removeParents func()
}

// OpenWork makes or takes over a model's working folder. A folder that taxon did not make, and
// that is no unfinished training, is refused and left as it is.
func OpenWork(out string, force bool) (*Work, error) {
	w := &Work{out: out, Keep: model.Unfinished(out)}
	err := fs.CheckFolder(out)
	if err != nil {
		return nil, err
	}
	if w.Path, err = fs.Beside(out, model.WorkExt); err != nil {
		return nil, fs.Explain(out, err)
	}
	if err := fs.Claimable(w.Path); err != nil {
		return nil, err
	}
	if err := w.keepClaimable(); err != nil {
		return nil, err
	}
	if w.removeParents, err = fs.MakeParents(w.Path); err != nil {
		return nil, fs.Explain(out, err)
	}
	if err := fs.MkdirAll(w.Path); err != nil {
		w.removeParents()
		return nil, fs.Explain(out, err)
	}
	if w.lock, err = vfs.OS.Open(w.Path); err != nil {
		return nil, fs.Explain(w.Path, err)
	}
	if vfs.Busy(w.lock) {
		w.Close()
		return nil, option.Errorf("%s: another process is training it (%s): wait for it or choose another ‹out›", out, w.Path)
	}
	if !vfs.Stands(vfs.OS, w.lock, w.Path) {
		// between our open and our lock, its owner ended and removed it
		w.Close()
		return OpenWork(out, force)
	}
	if err = fs.Claimable(w.Path); err == nil {
		err = fs.Explain(w.Path, fs.Mark(w.Path))
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	if force {
		w.clean()
	}
	return w, nil
}

// keepClaimable refuses a place in a Hadoop file system that holds anything but a checkpoint.
func (w *Work) keepClaimable() error {
	if w.Keep == w.Path {
		return nil
	}
	other, err := otherThan(w.Keep, "job.json", "checkpoint", "mapreduce")
	if err == nil && other != "" {
		err = option.Errorf("%s: holds %q, which is no part of a training's checkpoint, and would be in the way: choose "+
			"another ‹out›, or move it away", w.Keep, other)
	}
	return err
}

// otherThan returns the first name in a folder that is neither one of names nor that of a half-written
// file. A missing folder has none.
func otherThan(dir string, names ...string) (string, error) {
	have, err := fs.ReadDirNames(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fs.Explain(dir, err)
	}
	for _, name := range have {
		half, ok := strings.CutSuffix(name, ".part")
		if slices.Contains(names, half) || ok && strings.HasPrefix(half, ".") {
			continue
		}
		return name, nil
	}
	return "", nil
}

// Join returns a path within the folder.
func (w *Work) Join(name string) string { return filepath.Join(w.Path, name) }

// checkpoint returns the folder of the checkpoint; note is the file that says what it is a checkpoint
// of.
func (w *Work) checkpoint() string {
	if w.state != "" {
		return w.state
	}
	return fs.Join(w.Keep, "checkpoint")
}
func (w *Work) note() string { return fs.Join(w.Keep, "job.json") }

// HasCheckpoint reports whether there is a checkpoint to continue from.
func (w *Work) HasCheckpoint() bool {
	if w.state != "" {
		return fs.Exists(fs.Join(w.state, "state"))
	}
	return fs.Exists(w.checkpoint())
}

// keepState puts the checkpoint of a training that runs elsewhere into its state folder. A folder
// given with --state that holds something else belongs to the user, and is refused.
func (w *Work) keepState(there RemoteRunner, force bool) error {
	dir, err := there.State(w.Keep)
	if err != nil {
		return err
	}
	other, err := otherThan(dir, "job", "state", "steps", "runs", "data", "taxon")
	if err == nil && other != "" {
		err = option.Errorf("train: ‹state=%s›: holds %q, which is no part of a training's state: give a folder of its own",
			dir, other)
	}
	if err == nil && force {
		err = fs.RemoveAll(dir)
	}
	if err == nil {
		w.state = dir
	}
	return err
}

// begin records what is trained here, and returns the checkpoint to continue from, if there is
// one. Its caps may differ. A checkpoint of another training is an error, as the user must decide
// about it.
func (w *Work) begin(id Identity) (*engine.Checkpoint, error) {
	if w.HasCheckpoint() {
		var old Identity
		data, err := fs.ReadFile(context.Background(), w.note())
		if err != nil || json.Unmarshal(data, &old) != nil {
			return nil, option.Errorf("%s: holds a damaged checkpoint: use ‹force› to train anew", w.Keep)
		}
		if diff := optionsDiffer(old.Options, id.Options, false); diff != "" {
			return nil, option.Errorf("%s: holds the checkpoint of a training with other options (%s): use the same, another "+
				"‹out›, or ‹force› to train anew", w.Keep, diff)
		}
		if old.Data != id.Data || old.Structure != id.Structure {
			return nil, option.Errorf("%s: holds the checkpoint of a training on other data: use the same, another ‹out›, or "+
				"‹force› to train anew", w.Keep)
		}
		if err := w.describe(id); err != nil {
			return nil, err
		}
		return engine.LoadCheckpoint(w.checkpoint())
	}
	return nil, w.describe(id)
}

// describe records what is trained.
func (w *Work) describe(id Identity) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("job description: %w", err)
	}
	if err := fs.MkdirAll(w.Keep); err != nil {
		return err
	}
	return fs.WriteFile(w.note(), append(data, '\n'))
}

// finished returns the folder of a model that only lacks what is fitted on held-out rows.
func (w *Work) finished() string { return w.Join("finished") }

// kept adds to the error of a failed training what is left of it. A job that was interrupted has said
// it, and one with wrong input or options has not begun.
func (w *Work) kept(ctx context.Context, err error) error {
	if errors.Is(err, jobs.ErrInterrupted) || option.Is(err) || fs.IsInput(err) {
		return err
	}
	if jobs.IsCancelled(err) && errors.Is(context.Cause(ctx), jobs.ErrInterrupted) {
		if left := w.left(); left != "" {
			return jobs.Interruptedf("interrupted; %s", left)
		}
		return err
	}
	if left := w.left(); w.begun && left != "" {
		return fmt.Errorf("%w; %s", err, left)
	}
	return err
}

// left says what a training leaves if it ends before its end. It is empty if that can't be read.
func (w *Work) left() string {
	switch {
	case model.IsModel(w.finished()):
		return "the trained weights are kept: the same command does what is missing"
	case !w.HasCheckpoint():
		return "nothing is kept: the same command begins anew"
	}
	c, err := engine.LoadCheckpoint(w.checkpoint())
	if err != nil {
		return ""
	}
	state, err := machine.ReadState(c.State)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("the checkpoint after sweep %d is kept: the same command goes on from there", state.Sweep)
}

// abandon ends a failed run. It leaves nothing behind, except a checkpoint or a finished
// training.
func (w *Work) abandon() {
	if !w.HasCheckpoint() && !model.IsModel(w.finished()) {
		w.Remove()
		w.removeParents()
		return
	}
	// The same command makes these again.
	_ = fs.Discard(w.Join("data"))
	_ = fs.Discard(w.Join("store"))
}

// Remove deletes the folder: the model is in place, or nothing is worth keeping.
func (w *Work) Remove() {
	_ = fs.RemoveOwn(w.Path)
	if w.state != "" {
		_ = fs.RemoveAll(w.state)
	}
	w.forget()
}

// forget removes what is next to a model in a Hadoop file system.
func (w *Work) forget() {
	if w.Keep != w.Path {
		_ = fs.RemoveAll(w.Keep)
	}
}

func (w *Work) clean() {
	_ = fs.EmptyOwn(w.Path)
	w.forget()
}

// Close releases the folder to other processes.
func (w *Work) Close() { w.lock.Close() }
