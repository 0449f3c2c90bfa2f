// Package worker runs the tasks of training jobs: it leases them (Agent), has the program of
// the job's method run them (Trainer, worker/program), and sees that what they write is in the
// store before it is reported. It knows tasks, values and stores, and no method.
//
// What a task writes depends on the lease alone, never on which worker ran it or what it ran
// before.
package worker
