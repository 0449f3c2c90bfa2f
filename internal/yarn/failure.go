package yarn

import (
	"context"
	"encoding/json"
	"fmt"

	"taxon/internal/fs"
	"taxon/internal/human"
)

// failuresName is the folder, in a cluster's, of what its processes say when they fail.
const failuresName = "failures"

// ContainerFailure is why an instance's process has ended, the last time that it did with an error.
type ContainerFailure struct {
	Instance string `json:"instance"` // worker-0
	Host     string `json:"host"`
	Error    string `json:"error"` // one line
	Times    int    `json:"times"` // that it failed since the cluster was started
	// Lasting says that the cause is an option or a path, which trying again does not mend.
	Lasting bool `json:"lasting"`
}

// failuresDir is where processes of the cluster in a folder leave why they failed.
func failuresDir(dir string) string { return fs.Join(dir, failuresName) }

// Leave writes a failure into a cluster's folder, where those who wait for the cluster find it;
// Times is counted on from what is there.
func (f ContainerFailure) Leave(ctx context.Context, dir string) error {
	if _, err := fs.Stat(fs.Join(dir, runName)); err != nil {
		return err // the folder has been purged: it must not come back
	}
	path := fs.Join(failuresDir(dir), f.Instance)
	f.Times = 1
	if data, err := fs.ReadFile(ctx, path); err == nil {
		var last ContainerFailure
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
func readFailures(ctx context.Context, dir string) (out []ContainerFailure) {
	names, err := fs.ReadDirNames(failuresDir(dir))
	if err != nil {
		return nil
	}
	for _, name := range names {
		data, err := fs.ReadFile(ctx, fs.Join(failuresDir(dir), name))
		var f ContainerFailure
		if err == nil && json.Unmarshal(data, &f) == nil && f.Instance == name {
			out = append(out, f)
		}
	}
	return out
}

// lastingFailures is how often an instance must have failed, from a cause that lasts, until
// no more is hoped for.
const lastingFailures = 3

// failures watches the cluster's processes: what it returns says which one has failed since,
// and why, and is an error of the user's when trying again won't help.
func (d *Deployment) failures(ctx context.Context) func(context.Context) (string, error) {
	before := map[string]int{}
	for _, f := range readFailures(ctx, d.Dir) {
		before[f.Instance] = f.Times
	}
	return func(ctx context.Context) (why string, err error) {
		for _, f := range readFailures(ctx, d.Dir) {
			times := f.Times - before[f.Instance]
			if times <= 0 {
				continue
			}
			at := ""
			if f.Host != "" {
				at = " on host " + f.Host
			}
			if f.Lasting && times >= lastingFailures {
				return "", refuse("%s does not start%s: %s", f.Instance, at, human.OneLine(f.Error))
			}
			if why == "" {
				why = fmt.Sprintf("%s failed %s%s, the last time with: %s", f.Instance, human.Counted(int64(times), "time", "times"), at, human.OneLine(f.Error))
			}
		}
		return why, nil
	}
}
