// Package coordinator turns a training job into tasks, hands them to workers and
// folds what they report into the iteration of its method, until the certified gap is small.
//
// # Parts
//
//   - memory.go: which workers and stores a job fits (pure)
//   - method: the seam to the methods; method/recursive, td, mlr: plans, estimates, drivers (pure)
//   - job.go, step.go, lookahead.go, criteria.go: one job: what was committed and what the tasks of a step read (pure)
//   - machine.go, events.go, record.go, snapshot.go: Step(now, event) -> actions over all jobs, workers and shards (pure)
//   - queue.go, schedule.go, speculate.go: which job runs, who gets which task, second attempts at stragglers (pure)
//   - remake.go, rollback.go: values that the store has lost, and stores that are away (pure)
//   - shards.go, views.go, joblog.go, failed.go, retire.go: what users ask about, and how long it is kept (pure)
//   - journal.go: the append-only file that the machine is rebuilt from
//   - server.go, errands.go and the service files: the gRPC shell: clock, waiting, the journal's fsync, store commits
//   - mutant.go: bugs that are planted, in a build of its own, to test the simulation (test/sim)
//
// # Words
//
// A job is a sequence of sweeps, a sweep a sequence of steps, a step a set of tasks
// that do not depend on each other. A task is run by attempts, each under a lease with
// a fencing epoch; exactly one attempt of a task is committed. A task whose worker
// vanished is lost and handed out again; a task that reports an error that would come
// again anywhere fails the job at once. Attempt is not task, lost is not failed. A value
// that the store has lost is made again by running the attempt that counts once more; a
// job whose values can't be made again rolls back, to a checkpoint or to its beginning.
//
// # Promises
//
// What the weights are depends on data, options and seed alone: the plan does not know
// the workers, the tasks of a step read only what earlier steps committed, and sums are
// added in task order, not in the order of arrival. Every transition is a Record that
// is durable in the journal before anything outside learns of it.
package coordinator
