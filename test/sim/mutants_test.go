//go:build mutant

package sim

import (
	"testing"

	"taxon/coordinator/machine"
)

// bugs are planted one at a time: in the coordinator's machine (files with planted(...)),
// or in the simulated shell and store.
var bugs = []struct {
	name    string
	machine bool
	what    string
}{
	{"skip fencing", true, "a report counts whatever lease it is under"},
	{"keep lost leases", true, "a lease that ran out can still be reported under"},
	{"commit twice", true, "a second report of a task that is done replaces the first"},
	{"commit the last attempt", true, "the store is told the last attempt that was handed out, not the one that counts"},
	{"read the last attempt", true, "tasks read the last attempt that was handed out, not the one that counts"},
	{"forget the record of a loss", true, "a lost task is handed out again, but the journal does not know"},
	{"forget the epoch in a snapshot", true, "after a restart epochs are used again"},
	{"drop too early", true, "values that are still read are dropped"},
	{"number steps anew after a rollback", true, "keys are used again for other values"},
	{"standing still is silence", true, "workers are lost as the coordinator was stopped"},
	{"waiting for the journal is silence", true, "workers are lost that wait for the journal"},
	{"nobody is silent while the journal is written", true, "a dead worker is not missed"},
	{"coordinator acknowledges before sync", false, "answers go out before the journal is durable"},
	{"store acknowledges without a sync", false, "a shard acknowledges what a crash takes"},
	{"read without checksum", false, "a shard gives out values that went bad on its disk"},
}

// TestMutants shows that the simulation finds bugs: each planted one within 100 seeds.
func TestMutants(t *testing.T) {
	const most = 100
	for seed := range uint64(most) { // before any bug is planted
		specs, names := jobsOf(seed)
		for i, name := range names {
			if out := undisturbed(name, specs[i]); len(out.Broken) > 0 {
				t.Fatal(out.Broken)
			}
		}
	}
	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			shell := bug.name
			if bug.machine {
				machine.Plant(bug.name)
				defer machine.Plant("")
				shell = ""
			}
			found := false
			run := func(seed uint64) []string {
				_, broken := play(seed, shell)
				return broken
			}
			inParallel(0, most, run, func(seed uint64, broken []string) bool {
				if found = len(broken) > 0; found {
					t.Logf("%s: found at seed %d: %.150s", bug.what, seed, broken[0])
				}
				return !found
			})
			if !found {
				t.Errorf("%s: not found in %d seeds", bug.what, most)
			}
		})
	}
}
