// Package mapreduce runs a training's tasks as MapReduce jobs: on a Hadoop cluster through Hadoop
// Streaming, or as processes of this machine. It is an engine.Backend: the coordinator decides on
// the tasks and their order, the worker's Trainer does the work, and this package connects them.
//
// # A sweep as a job
//
// The coordinator leases the tasks of a step one by one. The executor collects them until it has
// all, and runs them as one MapReduce job. A line of the job's input is a run of tasks.
//
// The reducers run the tasks of the coordinator's next step. This requires that the coordinator can
// predict the step (machine.Lookahead), and that each of its tasks reads, of every value that the
// map tasks write, only the part for its own item. The shuffle carries these parts, keyed by item.
// The results are retained until the coordinator asks for them. A step without such a successor is
// a job of map tasks alone.
//
// # The state folder
//
// Duals, vectors and the coordinator's state are in a folder that all processes see (local, shared
// or hdfs://), by step. Every writer uses new file names. The step's index lists the committed
// files, and is published by a rename. So nobody reads the files of attempts that were killed, ran
// twice or ended too late. docs/mapreduce.md describes the layout.
//
// # Files
//
//   - segment.go, values.go: files of values, which of them are committed, reading them
//   - backend.go, shard.go, folder.go: the folder as engine, coordinator and export see it
//   - executor.go, batch.go, collect.go: from leases to a job, and from its files to results
//   - task.go, maptask.go, reducetask.go, shuffle.go: the map and reduce tasks
//   - options.go, local.go, streaming.go, explain.go: the runners, and the choice among them
package mapreduce
