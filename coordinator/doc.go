// Package coordinator serves a training job to workers. It has the gRPC services around the state
// machine of package machine, which makes all decisions.
//
// - server.go: the clock, the machine's lock, its journal, and the answers to calls
// - effects.go: actions of the store and the checkpoints, executed in order
// - jobs.go, tasks.go, members.go: the services Jobs, Tasks and Members
// - journal: the file that the machine is rebuilt from
// - method: the interface of the methods; method/recursive, td, mlr and so on: plans, estimates,
// drivers
package coordinator
