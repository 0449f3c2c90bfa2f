// Package sim runs whole clusters inside one goroutine: the coordinator's real state
// machine and journal format, and workers and store shards as state machines, on a
// simulated network, clock and disk. Everything random comes from one seed, which a
// failure prints and SIM_SEED plays again.
//
// What goes wrong: messages are lost, doubled, late and out of order; processes are cut
// off from each other, killed and started again without what was not synced, or stopped
// for longer than a lease; disks are slow; clocks run fast, slow and jump at a restart;
// values rot on disk; a shard comes back empty.
//
// What must hold, at every moment (check.go): one attempt of a task is committed, and it
// is one whose report was accepted; no epoch is granted twice; no value is ever written
// with other bytes; nothing is lost that no fault took; what users are told never goes
// back; a machine rebuilt from its journal is the machine. And in the end: every job is
// done, with the weights and the certificate of the run in which nothing went wrong.
//
// Tasks are toys whose output is a hash of everything that they read: a value of another
// attempt, another step or no value at all ends in other weights.
//
// That the simulation finds bugs is shown by planting some: mutants_test.go and
// the patches in mutants.
package sim
