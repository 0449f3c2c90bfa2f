// Package worker runs the tasks of training jobs. An Agent leases tasks from the coordinator and
// reports them when everything that they wrote is in the store. A Trainer runs them by the program
// of the job's method (worker/program). The package knows tasks, values and stores, and no method.
//
// What a task writes depends on its lease alone, never on which worker ran it or what that worker
// ran before.
package worker
