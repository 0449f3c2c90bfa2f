package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/retry"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// These are the roles of processes.
const (
	Coordinator = "coordinator"
	Store       = "store"
	Worker      = "worker"
)

// Process describes a process as seen from outside.
type Process struct {
	Role string `json:"role"`
	ID   string `json:"id"`
	// PID is the process id. It is zero while the process is being started.
	PID      int    `json:"pid"`
	Addr     string `json:"addr"`
	Restarts int    `json:"restarts"`
	Ready    bool   `json:"ready"`
	// Started is when the process began, in the system's clock ticks, to recognise a pid that is
	// reused.
	Started int64 `json:"started"`
}

// State says which processes run.
type State struct {
	// Supervisor is the pid of the supervisor.
	Supervisor  int       `json:"supervisor"`
	Coordinator string    `json:"coordinator"`
	Processes   []Process `json:"processes"`
	// Version is the version of the Wanted that has been reached.
	Version int `json:"version"`
	// Dir is the folder from which the state was read.
	Dir string `json:"-"`
}

// Ready reports whether the state has reached a version of Wanted, and all processes are ready.
func (s *State) Ready(version int) bool {
	for _, p := range s.Processes {
		if !p.Ready {
			return false
		}
	}
	return s.Version >= version && len(s.Processes) > 0
}

// Wanted says what the supervisor keeps running.
type Wanted struct {
	// Version is a number that rises with each change.
	Version int `json:"version"`
	// Program is the path of the executable.
	Program string `json:"program"`
	Stores  int    `json:"stores"`
	Workers int    `json:"workers"`
	// Coordinator, Store and Worker hold further command-line arguments for the processes of each
	// role.
	Coordinator []string `json:"coordinator_args,omitempty"`
	Store       []string `json:"store_args,omitempty"`
	Worker      []string `json:"worker_args,omitempty"`
}

func wantedPath(dir string) string { return filepath.Join(dir, "cluster.json") }
func statePath(dir string) string  { return filepath.Join(dir, "state.json") }
func lockPath(dir string) string   { return filepath.Join(dir, "supervisor.lock") }

// LogDir returns the folder of the processes' logs.
func LogDir(dir string) string { return filepath.Join(dir, "logs") }

// ReadWanted reads the Wanted of the cluster in dir. If there never was a cluster, the error wraps
// fs.ErrNotExist.
func ReadWanted(dir string) (*Wanted, error) {
	w := &Wanted{}
	return w, readJSON(wantedPath(dir), w)
}

// WriteWanted changes the Wanted. Reload informs the supervisor.
func WriteWanted(dir string, w *Wanted) error { return writeJSON(wantedPath(dir), w) }

// ReadState reads the state that the supervisor wrote last.
func ReadState(dir string) (*State, error) {
	s := &State{Dir: dir}
	return s, readJSON(statePath(dir), s)
}

func readJSON(path string, v any) error {
	data, err := vfs.ReadFile(vfs.OS, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: damaged: %w; remove it", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return fs.WriteFile(path, append(data, '\n'))
}

// Sweep ends the processes that a killed supervisor left in dir, and returns their number. The
// supervisor must be dead (see Running).
func Sweep(ctx context.Context, dir string) (int, error) {
	s, err := ReadState(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	left := 0
	for _, p := range s.Processes {
		if same(p.PID, p.Started) {
			left++
			kill(p.PID)
		}
	}
	for deadline := time.Now().Add(killWait); time.Now().Before(deadline); {
		alive := false
		for _, p := range s.Processes {
			alive = alive || same(p.PID, p.Started)
		}
		if !alive {
			return left, fs.RemoveAll(statePath(dir))
		}
		if err := retry.For(ctx, killEvery); err != nil {
			return left, err
		}
	}
	return left, fmt.Errorf("%s: processes of a cluster that was killed do not end", dir)
}

const (
	killWait  = 5 * time.Second       // how long a killed process may take to disappear
	killEvery = 10 * time.Millisecond // how often that is looked at
)

// LastLine returns the last line of a log, for an error message.
func LastLine(path string) string {
	data, err := vfs.ReadFile(vfs.OS, path)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err != nil || lines[len(lines)-1] == "" {
		return "see " + path
	}
	return format.OneLine(lines[len(lines)-1])
}

// Settings describe a cluster on one machine.
type Settings struct {
	// Workers is the number of workers.
	Workers int

	// Stores is the number of store shards.
	Stores int

	// Slots is the number of tasks that each worker runs at a time.
	Slots int

	// MemoryStores keeps the values of stores in memory instead of on disk.
	MemoryStores bool

	// Lease is how long a process may be silent before it counts as lost.
	Lease time.Duration

	// Metrics is the address of the coordinator's page and figures. If it is empty, there are none.
	Metrics string

	// Roots are the folders in which jobs may name data.
	Roots []string

	// Snapshots is the folder of snapshots. If it is empty, none are taken.
	Snapshots string

	// SnapshotEvery is the number of sweeps between two snapshots. Zero leaves it to each job.
	SnapshotEvery int

	// SnapshotPause is the least time between two snapshots of a job.
	SnapshotPause time.Duration
}

// memoryStoreSize is the size of a store in memory.
const memoryStoreSize = "16GiB"

// wanted turns the settings into a Wanted.
func (o *Settings) wanted() (*Wanted, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cluster: where is this program? %w", err)
	}
	w := &Wanted{Version: 1, Program: program, Stores: o.Stores, Workers: o.Workers,
		Coordinator: []string{"--lease", o.Lease.String()}, Worker: []string{"--slots", fmt.Sprint(o.Slots)}}
	if o.Snapshots != "" {
		at := o.Snapshots
		if !strings.Contains(at, "://") {
			if at, err = filepath.Abs(at); err != nil {
				return nil, err
			}
		}
		w.Coordinator = append(w.Coordinator, "--snapshots", at, "--snapshot-every", fmt.Sprint(o.SnapshotEvery),
			"--snapshot-pause", o.SnapshotPause.String())
	}
	if o.Metrics != "" {
		w.Coordinator = append(w.Coordinator, "--metrics", o.Metrics)
	}
	if o.MemoryStores {
		w.Store = []string{"--memory", memoryStoreSize}
	}
	for _, r := range o.Roots {
		abs, err := fs.Abs(r)
		if err != nil {
			return nil, err
		}
		w.Coordinator = append(w.Coordinator, "--data-root", abs)
		w.Worker = append(w.Worker, "--data-root", abs)
	}
	return w, nil
}

// keep takes settings that are not on the command line from the folder's last cluster, so that a
// restarted cluster is the same as before.
func (o *Settings) keep(dir string, given func(flag string) bool) error {
	w, err := ReadWanted(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !given("workers") {
		o.Workers = w.Workers
	}
	switch {
	case !given("stores"):
		o.Stores = w.Stores
	case o.Stores < w.Stores:
		return option.Errorf("cluster up: ‹stores=%d›: the cluster in %s has %d, and what its jobs have lies on all of "+
			"them: leave ‹stores› out, or start a new cluster in another folder", o.Stores, dir, w.Stores)
	}
	if !given("memory-stores") {
		o.MemoryStores = len(w.Store) > 0
	}
	if !given("data-root") {
		o.Roots = argument(w.Coordinator, "--data-root")
	}
	if !given("snapshots") {
		o.Snapshots = lastOf(w.Coordinator, "--snapshots", o.Snapshots)
	}
	if !given("metrics") {
		o.Metrics = lastOf(w.Coordinator, "--metrics", o.Metrics)
	}
	if !given("slots") {
		o.Slots, err = strconv.Atoi(lastOf(w.Worker, "--slots", strconv.Itoa(o.Slots)))
	}
	if !given("snapshot-every") && err == nil {
		o.SnapshotEvery, err = strconv.Atoi(lastOf(w.Coordinator, "--snapshot-every", strconv.Itoa(o.SnapshotEvery)))
	}
	for flag, at := range map[string]*time.Duration{"lease": &o.Lease, "snapshot-pause": &o.SnapshotPause} {
		if !given(flag) && err == nil {
			*at, err = time.ParseDuration(lastOf(w.Coordinator, "--"+flag, at.String()))
		}
	}
	if err != nil {
		return option.Errorf("cluster up: %s: cluster.json is damaged: %w: remove it, and give the flags "+
			"that the cluster had", dir, err)
	}
	return nil
}

// argument returns the values of a flag in a list of arguments.
func argument(args []string, flag string) (values []string) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == flag {
			values = append(values, args[i+1])
		}
	}
	return values
}

// lastOf returns the last value of a flag, or a default.
func lastOf(args []string, flag, otherwise string) string {
	if values := argument(args, flag); len(values) > 0 {
		return values[len(values)-1]
	}
	return otherwise
}
