// Package coordinator serves training jobs to clients, workers and store shards by gRPC. It is the
// shell around package machine, which makes all decisions: it keeps the clock, writes the journal,
// and carries out the machine's actions. NewServer is its entry point.
//
//   - server.go: the clock, the machine's lock, its journal, and the answers to calls
//   - effects.go: actions on the store and the checkpoints, executed in order
//   - jobs.go, tasks.go, members.go: the services Jobs, Tasks and Members
//   - journal: the file that the machine is rebuilt from
//   - machine: the state machine
//   - method: the interface of the methods, which are folders of internal/methods
package coordinator
