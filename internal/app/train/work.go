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

// Work is the working folder next to the model's place. It holds the ingested data and the
// checkpoint while a training runs and after an interrupt. One process owns it.
type Work struct {
	// out is the folder of the model.
	out string
	// Path is the working folder, on this machine.
	Path string
	// Keep is the folder of the checkpoint: Path, or a folder next to the model if that is in a
	// Hadoop file system.
	Keep string
	lock vfs.File
	// begun says that sweeps have begun, so that a failure may lose some.
	begun bool
	// state is the state folder of a training by MapReduce, which also holds its checkpoint. It is
	// empty otherwise.
	state string
	// removeParents removes the parent folders of the model that this run has made, if they are
	// empty.
	removeParents func()
}

// OpenWork makes a model's working folder, or takes over an existing one. A folder that taxon did
// not make and that is no unfinished training is refused and left unchanged.
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

// keepClaimable returns an error if the place in a Hadoop file system holds anything but a
// checkpoint.
func (w *Work) keepClaimable() error {
	if w.Keep == w.Path {
		return nil
	}
	other, err := otherThan(w.Keep, "job.json", "checkpoint", "mapreduce")
	if err == nil && other != "" {
		err = option.Errorf("%s: holds %q, which is not part of a training's checkpoint, and would be in the way: choose "+
			"another ‹out›, or move it away", w.Keep, other)
	}
	return err
}

// otherThan returns the first entry of dir that is not in names and is not an incomplete temporary
// file. It is empty if there is none, or if the folder does not exist.
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

// checkpoint returns the place of the checkpoint: a folder, or the file with the state of a training by
// MapReduce.
func (w *Work) checkpoint() string {
	if w.state != "" {
		return fs.Join(w.state, "state")
	}
	return fs.Join(w.Keep, "checkpoint")
}

// note returns the path of the file that describes the checkpoint's training.
func (w *Work) note() string { return fs.Join(w.Keep, "job.json") }

// HasCheckpoint reports whether there is a checkpoint to continue from.
func (w *Work) HasCheckpoint() bool { return fs.Exists(w.checkpoint()) }

// load reads the checkpoint. It returns nil if there is none.
func (w *Work) load() (*engine.Checkpoint, error) {
	if w.state != "" {
		return engine.LoadState(w.checkpoint())
	}
	return engine.LoadCheckpoint(w.checkpoint())
}

// keepState puts the checkpoint of a training that runs remotely into its state folder. A state
// folder that the user gave and that holds something else is refused.
func (w *Work) keepState(there RemoteRunner, force bool) error {
	dir, err := there.State(w.Keep)
	if err != nil {
		return err
	}
	other, err := otherThan(dir, "job", "state", "steps", "runs", "data", "taxon")
	if err == nil && other != "" {
		err = option.Errorf("train: state folder %s: holds %q, which is not part of a training's state: give a folder "+
			"of its own", dir, other)
	}
	if err == nil && force {
		err = fs.RemoveAll(dir)
	}
	if err == nil {
		w.state = dir
	}
	return err
}

// begin records the identity of the training and returns the checkpoint to resume from, or nil. The
// checkpoint's stopping criteria may differ. A checkpoint of another training is an error, because
// the user must decide what to do with it.
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
		return w.load()
	}
	return nil, w.describe(id)
}

// describe writes the identity to the working folder.
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

// finished returns the folder of a model that lacks only the parts fitted on held-out rows.
func (w *Work) finished() string { return w.Join("finished") }

// kept extends the error of a failed training with a description of the checkpoint that is left. The error of an
// interrupted job already says so, and a job with wrong input or options has not begun.
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

// left describes the checkpoint that a failed training leaves. It is empty if it cannot be read.
func (w *Work) left() string {
	switch {
	case model.IsModel(w.finished()):
		return "the trained weights are kept: the same command does what is missing"
	case !w.HasCheckpoint():
		return "nothing is kept: the same command begins anew"
	}
	c, err := w.load()
	if err != nil {
		return ""
	}
	state, err := machine.ReadState(c.State)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("the checkpoint after sweep %d is kept: the same command continues from there", state.Sweep)
}

// abandon ends a failed run. It leaves nothing but a checkpoint or a finished training.
func (w *Work) abandon() {
	if !w.HasCheckpoint() && !model.IsModel(w.finished()) {
		w.Remove()
		w.removeParents()
		return
	}
	// The same command recreates these.
	_ = fs.Discard(w.Join("data"))
	_ = fs.Discard(w.Join("store"))
}

// Remove deletes the folder. It is called when the model is in place, or if nothing is worth
// keeping.
func (w *Work) Remove() {
	_ = fs.RemoveOwn(w.Path)
	if w.state != "" {
		_ = fs.RemoveAll(w.state)
	}
	w.forget()
}

// forget removes the folder next to a model in a Hadoop file system.
func (w *Work) forget() {
	if w.Keep != w.Path {
		_ = fs.RemoveAll(w.Keep)
	}
}

// clean empties the working folder, and removes the folder next to a model in Hadoop.
func (w *Work) clean() {
	_ = fs.EmptyOwn(w.Path)
	w.forget()
}

// Close releases the folder to other processes.
func (w *Work) Close() { w.lock.Close() }
