package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"taxon/internal/engine"
	"taxon/internal/fs"
)

// workDir is the folder beside the model's place that holds the ingested data and the
// checkpoint while a training runs, and after it was interrupted. One process owns it.
type workDir struct {
	out  string
	path string
	lock *os.File
	// unmake removes the parents of the model that this run has made, where they are empty.
	unmake func()
}

// openWork makes or takes over the working folder of a model.
func openWork(out string, force bool) (*workDir, error) {
	w := &workDir{out: out, path: filepath.Clean(out) + ".train"}
	var err error
	if w.unmake, err = fs.MakeParents(w.path); err != nil {
		return nil, fs.Explain(out, err)
	}
	if err := os.Mkdir(w.path, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		w.unmake()
		return nil, fs.Explain(out, err)
	}
	if w.lock, err = os.Open(w.path); err != nil {
		return nil, fs.Explain(w.path, err)
	}
	if err := unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		w.lock.Close()
		return nil, usagef("%s: another process is training it (%s): wait for it or choose another --out", out, w.path)
	}
	if !w.stillThere() { // its owner ended, and removed it, between our open and our lock
		w.lock.Close()
		return openWork(out, force)
	}
	if force {
		w.clean()
	}
	return w, nil
}

// stillThere says whether the folder locked is the one that stands under its name.
func (w *workDir) stillThere() bool {
	mine, err := w.lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(w.path)
	return err == nil && os.SameFile(mine, named)
}

func (w *workDir) join(name string) string { return filepath.Join(w.path, name) }

func (w *workDir) hasCheckpoint() bool {
	_, err := os.Stat(w.join("checkpoint"))
	return err == nil
}

// begin notes what is trained here and returns the checkpoint to go on from, if there
// is one. A checkpoint of something else is the user's to decide about.
func (w *workDir) begin(id identity) (*engine.Checkpoint, error) {
	if w.hasCheckpoint() {
		var old identity
		data, err := os.ReadFile(w.join("job.json"))
		if err != nil || json.Unmarshal(data, &old) != nil {
			return nil, usagef("%s: holds a damaged checkpoint: use --force to train anew", w.path)
		}
		if diff := optionsDiffer(old.Options, id.Options); diff != "" {
			return nil, usagef("%s: holds the checkpoint of a training with other options (%s): use the same, another --out, or --force to train anew", w.path, diff)
		}
		if old.Data != id.Data || old.Structure != id.Structure {
			return nil, usagef("%s: holds the checkpoint of a training on other data: use the same, another --out, or --force to train anew", w.path)
		}
		return engine.LoadCheckpoint(w.join("checkpoint"))
	}
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("job description: %w", err)
	}
	return nil, fs.WriteFile(w.join("job.json"), append(data, '\n'))
}

// abandon ends a run that failed: without a checkpoint nothing is left behind.
func (w *workDir) abandon() {
	if !w.hasCheckpoint() {
		w.remove()
		w.unmake()
		return
	}
	// The same command makes these again.
	_ = os.RemoveAll(w.join("data"))
	_ = os.RemoveAll(w.join("store"))
}

// remove deletes the folder: the model is there, or nothing is worth keeping.
func (w *workDir) remove() { _ = os.RemoveAll(w.path) }

func (w *workDir) clean() {
	entries, err := os.ReadDir(w.path)
	if err != nil {
		return
	}
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(w.path, e.Name()))
	}
}

func (w *workDir) close() { w.lock.Close() }
