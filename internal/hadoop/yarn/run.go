package yarn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/ui/format"
)

// Run is the configuration of the containers' processes. It is a file next to the program, written
// when the service is launched. In arguments {host} stands for the host's name in YARN, {instance}
// for the instance (store-0), {local} for a folder of the instance's own, and {shared} for one that
// all of the service's containers on a host share. Both folders exist as long as the service does
// on that host, unless Local is a place that exists longer.
type Run struct {
	// Version is 1.
	Version int `json:"version"`
	// Args are the arguments after the verb, by role.
	Args map[string][]string `json:"args"`
	// Local is a folder on every host that the containers' user can write to. If it is empty, it is
	// YARN's folder for the service.
	Local string `json:"local,omitempty"`
	// Name is the name of the service.
	Name string `json:"name"`
	// Dir is the cluster's folder, where a process writes the reason if it cannot start. If it is
	// empty, nothing is written.
	Dir string `json:"dir,omitempty"`
	// Stores is the number of shards, on which the placement of jobs depends.
	Stores int `json:"stores"`
	// Metrics is the port of the coordinator's metrics, probes and page. Those of stores and
	// workers follow, by their numbers. Zero means that there are none.
	Metrics int `json:"metrics,omitempty"`
}

const runVersion = 1

// Encode returns the file's content.
func (r Run) Encode() ([]byte, error) {
	r.Version = runVersion
	return json.MarshalIndent(r, "", "  ")
}

// ReadRun reads the file.
func ReadRun(file string) (*Run, error) {
	data, err := vfs.ReadFile(vfs.OS, file)
	if err != nil {
		return nil, err
	}
	return DecodeRun(file, data)
}

// DecodeRun does what ReadRun does, for the file's content.
func DecodeRun(file string, data []byte) (*Run, error) {
	var r Run
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if r.Version != runVersion {
		return nil, fmt.Errorf("%s: version %d, this taxon knows %d: `taxon yarn up` writes it", file, r.Version, runVersion)
	}
	return &r, nil
}

// Command returns the arguments of a role's process in this container, with the container's
// environment env, and an empty folder for its temporary files. It makes the process's folders.
func (r *Run) Command(role, instance string, env func(string) string) (args []string, temp string, err error) {
	args, ok := r.Args[role]
	if !ok {
		return nil, "", fmt.Errorf("no role %q: one of %s", role, strings.Join(Roles(), ", "))
	}
	host := env("NM_HOST")
	roots := []string{r.Local}
	if r.Local == "" {
		roots = strings.FieldsFunc(env("LOCAL_DIRS"), func(c rune) bool { return c == ',' })
	}
	if host == "" || len(roots) == 0 {
		return nil, "", errors.New("NM_HOST and LOCAL_DIRS are not set: YARN starts this in its containers")
	}
	name := "taxon-" + r.Name + "-"
	own, shared := filepath.Join(place(roots, name, instance), name+instance), filepath.Join(roots[0], name+"shared")
	temp = filepath.Join(own, "tmp")
	if err := fs.RemoveAll(temp); err != nil { // left by a killed process
		return nil, "", err
	}
	for _, dir := range []string{temp, shared} {
		if err := fs.MkdirMode(dir, 0o700); err != nil {
			return nil, "", err
		}
	}
	fill := strings.NewReplacer("{host}", host, "{instance}", instance, "{local}", own, "{shared}", shared)
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = fill.Replace(a)
	}
	if port := r.metricsPort(role, instance); port > 0 {
		out = append(out, "--metrics", net.JoinHostPort(host, strconv.Itoa(port)))
	}
	return out, temp, nil
}

// metricsPort returns the port of an instance's metrics, or 0 if there are none. It differs between
// all instances, which may be on one host.
func (r *Run) metricsPort(role, instance string) int {
	switch n := number(instance); {
	case r.Metrics == 0:
		return 0
	case role == Store:
		return r.Metrics + 1 + n
	case role == Worker:
		return r.Metrics + 1 + r.Stores + n
	}
	return r.Metrics
}

// number returns the number of an instance, as in store-0. It is 0 for a name without a number.
func number(instance string) int {
	n, _ := strconv.Atoi(instance[strings.LastIndexByte(instance, '-')+1:])
	return max(n, 0)
}

// place returns the path of an instance's folder. Instances are spread over a host's disks by
// number. An instance that already has a folder finds it, even if YARN no longer uses that disk.
func place(roots []string, name, instance string) string {
	for _, r := range roots {
		if fs.Exists(filepath.Join(r, name+instance)) {
			return r
		}
	}
	return roots[number(instance)%len(roots)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// failuresName is a folder in a cluster's folder in which processes leave their errors.
const failuresName = "failures"

// ContainerFailure is the last error with which an instance's process ended.
type ContainerFailure struct {
	// Instance is a name such as worker-0.
	Instance string `json:"instance"`
	Host     string `json:"host"`
	// Error is one line.
	Error string `json:"error"`
	// Times counts the failures since the cluster was started.
	Times int `json:"times"`
	// Permanent reports that the cause is an option or a path, so that retrying does not help.
	Permanent bool `json:"lasting"`
}

// failuresDir returns the folder of failures in a cluster's folder.
func failuresDir(dir string) string { return fs.Join(dir, failuresName) }

// Leave writes a failure into a cluster's folder, for commands that wait for the cluster. Times
// continues from the failure that is there.
func (f ContainerFailure) Leave(ctx context.Context, dir string) error {
	if _, err := fs.Stat(fs.Join(dir, runName)); err != nil {
		return err // the folder was purged, and must not be recreated
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

// readFailures reads the instances' failures, by name. Unreadable ones are skipped.
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

// permanentFailures is the number of failures of an instance from a permanent cause after which
// waiting is given up.
const permanentFailures = 3

// failures watches the cluster's processes. It returns a function that describes a process that has
// failed since then. That function returns an error for the user if retrying does not help.
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
			if f.Permanent && times >= permanentFailures {
				return "", refuse("%s does not start%s: %s", f.Instance, at, format.OneLine(f.Error))
			}
			if why == "" {
				why = fmt.Sprintf("%s failed %s%s, the last time with: %s", f.Instance, format.Counted(int64(times), "time",
					"times"), at, format.OneLine(f.Error))
			}
		}
		return why, nil
	}
}
