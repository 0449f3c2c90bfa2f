// Package worker runs the tasks of training jobs. An Agent leases them from the coordinator. A
// Trainer runs them by the program of the job's method (worker/program). The Agent reports a task
// when everything that it wrote is in the store. The package knows tasks, values and stores, but
// no method.
//
// What a task writes depends on its lease alone, never on which worker runs it or what that
// worker ran before.
package worker
