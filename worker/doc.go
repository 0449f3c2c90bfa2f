// Package worker runs the tasks of training jobs: it leases them (Agent), reads what
// they refer to from the parameter store, lets mapper and reducer compute, and writes
// the results under the lease's attempt (Trainer).
//
// It is the only package that ties data, store and maths together. What it writes
// depends on the lease alone, never on which worker ran it or what it ran before:
// caches hold only values that the store would give again.
package worker
