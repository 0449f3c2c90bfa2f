// Package mapreduce runs a training's tasks as MapReduce jobs: on a Hadoop cluster through
// Hadoop Streaming, or as processes of this machine. It is an engine.Backend: the
// coordinator decides what is done in which order, the worker's Trainer does it, and what
// lies in between is here.
//
// # A sweep as a job
//
// The coordinator hands out the tasks of a step one by one. The executor collects them
// until it has all, and runs them as one MapReduce job: a line of input is a run of them. The
// reducers run the tasks of the coordinator's next step, where it foretells that step
// (machine.Ahead) and its tasks read the parts, cut by their items, of what these write: the
// shuffle carries the parts, keyed by item. The results are handed in when the coordinator asks
// for them. A step that has no such successor is a job of map tasks alone.
//
// # The state folder
//
// Duals, vectors and the coordinator's state lie in a folder that all processes see (local,
// shared or hdfs://), by step. Whatever writes there writes files under new names; those
// that count are listed in the step's index, which appears by a rename. So attempts that
// were killed, came twice or too late leave files that nobody reads. docs/mapreduce.md has
// the layout.
//
// # Parts
//
//   - segment.go, table.go, values.go: files of values, which of them count, reading them
//   - backend.go, shard.go, checkpoint.go: the folder as engine, coordinator and export see it
//   - executor.go, batch.go, collect.go: from leases to a job, and from its files to results
//   - task.go, maptask.go, reducetask.go, shuffle.go: what runs inside map and reduce tasks
//   - options.go, local.go, streaming.go, explain.go: runners, and which one runs
package mapreduce
