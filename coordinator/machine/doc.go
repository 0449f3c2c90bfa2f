// Package machine is the state machine of the coordinator: all jobs, workers and store shards,
// and what follows from what happens to them. Step(now, event) changes the state and returns
// the actions that the caller must execute, in order. The package knows no clock, no network,
// no files and no random numbers: the same events at the same times give the same actions.
//
// # Parts
//
//   - machine.go, events.go: Step, its events and actions
//   - replay.go, revive.go: what can't be read or replayed of one job fails that job alone
//   - record.go, snapshot.go: every lasting change is a Record, which the journal keeps; records
//     and snapshots rebuild a machine
//   - job.go, step.go, criteria.go: one job: what was committed, and what the tasks of a step read
//   - queue.go, schedule.go: which job runs, who gets which task, second attempts at stragglers
//   - fits.go: which workers and stores a job fits
//   - silence.go: who counts as lost
//   - recompute.go, weights.go: values that the store has lost, and stores that are away
//   - status.go, shards.go, joblog.go, retire.go: what users ask about, and how long it is kept
//   - branch.go: states of jobs that begin where another one stood
//   - mutant.go: bugs that are planted, in a build of its own, to test the simulation (test/sim)
//
// # Words
//
// A job is a sequence of sweeps, a sweep a sequence of steps, a step a set of tasks
// that do not depend on each other. A task is run by attempts, each under a lease with
// a fencing epoch; exactly one attempt of a task is committed. A task whose worker
// vanished is lost and handed out again; a task that reports an error that would come
// again anywhere fails the job at once. Attempt is not task, lost is not failed. A value
// that the store has lost is recomputed: the attempt that counts runs once more. A job whose
// values can't be recomputed rolls back, to a checkpoint or to its beginning.
//
// # Promises
//
// What the weights are depends on data, options and seed alone: the plan does not know
// the workers, the tasks of a step read only what earlier steps committed, and sums are
// added in task order, not in the order of arrival.
//
// # Duties of the caller
//
// One goroutine at a time calls Step, with times that do not fall. A record of a Persist action
// is durable in the journal before any action after it is executed, and before anybody outside
// learns of it. After a restart: New, LoadSnapshot, Replay of each record, Recover.
package machine
