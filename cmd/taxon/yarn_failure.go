package main

import (
	"context"
	"encoding/json"

	"taxon/internal/fs"
)

// failuresName is the folder, in a cluster's, of what its processes say when they fail.
const failuresName = "failures"

// containerFailure is why an instance's process has ended, the last time that it did with an error.
type containerFailure struct {
	Instance string `json:"instance"` // worker-0
	Host     string `json:"host"`
	Error    string `json:"error"` // one line
	Times    int    `json:"times"` // that it failed since the cluster was started
	// Lasting says that the cause is an option or a path, which trying again does not mend.
	Lasting bool `json:"lasting"`
}

// failuresDir is where processes of the cluster in a folder leave why they failed.
func failuresDir(dir string) string { return fs.Join(dir, failuresName) }

// tell leaves a failure where readFailures finds it; Times is counted on from what is there.
func (f containerFailure) tell(ctx context.Context, dir string) error {
	if _, err := fs.Stat(fs.Join(dir, "run.json")); err != nil {
		return err // the folder has been purged: it must not come back
	}
	path := fs.Join(failuresDir(dir), f.Instance)
	f.Times = 1
	if data, err := fs.ReadFile(ctx, path); err == nil {
		var last containerFailure
		if json.Unmarshal(data, &last) == nil {
			f.Times = last.Times + 1
		}
	} else if err := fs.MkdirAll(failuresDir(dir)); err != nil {
		return err
	}
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return fs.WriteFile(path, append(data, '\n'))
}

// readFailures are what instances left, in order of their names. What can't be read is not told.
func readFailures(ctx context.Context, dir string) (out []containerFailure) {
	names, err := fs.ReadDirNames(failuresDir(dir))
	if err != nil {
		return nil
	}
	for _, name := range names {
		data, err := fs.ReadFile(ctx, fs.Join(failuresDir(dir), name))
		var f containerFailure
		if err == nil && json.Unmarshal(data, &f) == nil && f.Instance == name {
			out = append(out, f)
		}
	}
	return out
}
