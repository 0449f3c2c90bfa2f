package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"taxon/internal/exit"
	"taxon/internal/fs"
)

// Settings say what a cluster consists of.
type Settings struct {
	Workers       int
	Stores        int
	Slots         int // tasks at a time of each worker
	MemoryStores  bool
	Lease         time.Duration // a process that is silent for so long is taken for lost
	Roots         []string      // below which jobs may name data in place
	Snapshots     string        // a folder; "": none
	SnapshotEvery int           // sweeps; 0: as each job asks for
	SnapshotPause time.Duration // no two of a job within it
}

// memoryStoreSize bounds a store of --memory-stores.
const memoryStoreSize = "16GiB"

// wanted describes the cluster for its supervisor.
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
		w.Coordinator = append(w.Coordinator, "--snapshots", at, "--snapshot-every", fmt.Sprint(o.SnapshotEvery), "--snapshot-pause", o.SnapshotPause.String())
	}
	if o.MemoryStores {
		w.Store = []string{"--memory", memoryStoreSize}
	}
	for _, r := range o.Roots {
		abs := r
		if !fs.IsRemote(r) {
			if abs, err = filepath.Abs(r); err != nil {
				return nil, err
			}
		}
		w.Coordinator = append(w.Coordinator, "--data-root", abs)
		w.Worker = append(w.Worker, "--data-root", abs)
	}
	return w, nil
}

// keep takes what the command line does not give from what the folder's cluster was
// last started with: a cluster that is started again is the one that it was.
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
		return exit.Usagef("cluster up: --stores %d: the cluster in %s has %d, and what its jobs have lies on all of them: leave --stores out, or start a new cluster in another folder", o.Stores, dir, w.Stores)
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
		return exit.Usagef("cluster up: %s: cluster.json is damaged: %w: remove it, and give the flags that the cluster had", dir, err)
	}
	return nil
}

// argument lists what a flag is given in a list of flags and values.
func argument(args []string, flag string) (values []string) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == flag {
			values = append(values, args[i+1])
		}
	}
	return values
}

// lastOf is the last value of a flag, or otherwise.
func lastOf(args []string, flag, otherwise string) string {
	if values := argument(args, flag); len(values) > 0 {
		return values[len(values)-1]
	}
	return otherwise
}
