package main

import (
	"errors"
	"os"
	"strconv"
	"time"

	"taxon/internal/cluster/supervise"
)

// keepSettings takes what the command line does not give from what the folder's cluster was
// last started with: a cluster that is started again is the one that it was.
func (o *clusterOptions) keepSettings(given func(flag string) bool) error {
	w, err := supervise.ReadWanted(o.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !given("workers") {
		o.workers = w.Workers
	}
	switch {
	case !given("stores"):
		o.stores = w.Stores
	case o.stores < w.Stores:
		return usagef("cluster up: --stores %d: the cluster in %s has %d, and what its jobs have lies on all of them: leave --stores out, or start a new cluster in another folder", o.stores, o.dir, w.Stores)
	}
	if !given("memory-stores") {
		o.memory = len(w.Store) > 0
	}
	if !given("data-root") {
		o.roots = argument(w.Coordinator, "--data-root")
	}
	if !given("snapshots") {
		o.snapshots = lastOf(w.Coordinator, "--snapshots", o.snapshots)
	}
	if !given("slots") {
		o.slots, err = strconv.Atoi(lastOf(w.Worker, "--slots", strconv.Itoa(o.slots)))
	}
	if !given("snapshot-every") && err == nil {
		o.every, err = strconv.Atoi(lastOf(w.Coordinator, "--snapshot-every", strconv.Itoa(o.every)))
	}
	for flag, at := range map[string]*time.Duration{"lease": &o.lease, "snapshot-pause": &o.pause} {
		if !given(flag) && err == nil {
			*at, err = time.ParseDuration(lastOf(w.Coordinator, "--"+flag, at.String()))
		}
	}
	if err != nil {
		return usagef("cluster up: %s: cluster.json is damaged: %w: remove it, and give the flags that the cluster had", o.dir, err)
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
