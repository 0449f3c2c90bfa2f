// Package sim runs whole clusters in one goroutine: the coordinator's real state machine and
// journal format, and workers and store shards as state machines, on a simulated network, clock and
// disk. All randomness comes from one seed, which a failure prints and SIM_SEED reproduces.
//
// The faults are: messages that are lost, duplicated, late and out of order; processes that are
// partitioned, killed and restarted without unsynced data, or stopped for longer than a lease; slow
// disks; clocks that run fast, slow and jump at a restart; values that rot on disk; a shard that
// returns empty.
//
// The invariants, checked at every moment (check.go), are: one attempt of a task is committed, and
// its report was accepted; no epoch is granted twice; no value is ever written with other bytes;
// only faults lose data; the progress that users see never decreases; a machine rebuilt from its
// journal equals the machine. In the end every job is done, with the weights and the certificate of
// an undisturbed run.
//
// Tasks are toys whose output is a hash of everything that they read: a value of another attempt or
// step, or a missing value, gives other weights.
//
// mutants_test.go plants bugs, by the patches in mutants, to show that the simulation finds them.
package sim
