// Package machine is the coordinator's state machine. It holds all jobs, workers and store shards,
// and it makes every decision about them. It reads no clock, network, file or random number: the
// same events at the same times give the same actions.
//
// # Usage
//
// Step takes the time and one event, changes the state, and returns the actions that the caller
// must carry out:
//
//	m := machine.New(limits)
//	for e := range events {
//		for _, a := range m.Step(now(), e) {
//			switch a := a.(type) {
//			case machine.Persist:
//				number = journal.Append(a.Record)
//			case machine.Effect:
//				journal.Sync(number) // a store call never runs ahead of its record
//				execute(a)
//			default:
//				journal.Sync(number)
//				answer(a)
//			}
//		}
//	}
//
// The caller has these duties:
//
//  1. Call Step from one goroutine at a time. Times must not decrease; Step treats an earlier time
//     as the latest one that it has seen.
//  2. Handle the actions of each Step in their order, and those of one Step before those of the
//     next. Actions fall into four groups: Persist, answers (Submitted, Grant, Refused, ...),
//     effects (the Effect interface), and signals (Wake, Changed, Ended, Notice, Warned).
//  3. Make the record of every Persist durable before any later answer or effect leaves the
//     process. Records may be written in groups. An answer also waits for records of earlier calls
//     that it may depend on. The one exception is a heartbeat (Renew, JoinShard), whose answer
//     waits only for records of its own event.
//  4. Execute the effects of one job one after the other, in order. Effects of different jobs are
//     independent. Feed the result of SaveJob, LoadJob, EvaluateWeights and DigestWeights back as
//     Saved, Loaded, Evaluated or Digested.
//  5. Send a Time event several times per lease. Time.Pending is the number of records that are
//     not durable yet.
//  6. Replace a long journal by Snapshot when convenient. A snapshot covers every record that was
//     returned before it.
//  7. After a restart call New, LoadSnapshot, Replay for each later record, and Recover, in this
//     order. Recover returns again all effects that may not have been executed, so effects must be
//     idempotent.
//
// # Words
//
// A job is a sequence of sweeps, a sweep is a sequence of steps, and a step is a set of tasks that
// do not depend on each other. An attempt is one execution of a task, under a lease with a fencing
// epoch. Exactly one attempt of each task is committed.
//
// A task is lost when its worker vanished; it is handed out again. A task fails when it reports an
// error that every worker would report; its job fails at once. A value that the store has lost is
// recomputed by running its committed attempt once more. A job whose values can't be recomputed
// rolls back to its last checkpoint or to its beginning.
//
// # Guarantees
//
// The weights depend on data, options and seed alone. The plan does not depend on the workers,
// tasks of a step read only what earlier steps committed, and sums are added in task order, not in
// order of arrival.
//
// # Files
//
//   - machine.go, events.go: Step, its events and its actions
//   - record.go, snapshot.go: records are the only lasting changes; records and snapshots rebuild a
//     machine
//   - replay.go, revive.go: a job whose data can't be read or replayed fails alone
//   - job.go, step.go, criteria.go: the state of one job and the inputs of a step's tasks
//   - queue.go, schedule.go: which job runs, which worker gets which task, second attempts at
//     stragglers
//   - fits.go: which workers and stores have enough memory for a job
//   - silence.go: when a worker, a shard or a lease counts as lost
//   - recompute.go, weights.go: values that the store has lost, and shards that are away
//   - status.go, shards.go, joblog.go, retire.go: what users see of a job, and how long it is kept
//   - branch.go: states of jobs that begin where another job stood
//   - mutant.go: bugs planted by a build tag, to test the simulation in test/sim
package machine
