// Package worker runs the tasks of training jobs. It leases them (Agent), runs them by the
// program of the job's method (Trainer, worker/program), and reports them when what they wrote is
// in the store. It knows tasks, values and stores, and no method.
//
// What a task writes depends on the lease alone, never on which worker ran it or what that worker
// ran before.
package worker
