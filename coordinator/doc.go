// Package coordinator serves a training job to workers: the gRPC services around the state
// machine of package machine, which decides everything.
//
//   - server.go: the clock, the machine's lock, its journal, and what answers a call
//   - effects.go: what the store and the checkpoints have to do, executed in order
//   - jobs.go, tasks.go, members.go: the services Jobs, Tasks and Members
//   - journal: the file that the machine is rebuilt from
//   - method: the seam to the methods; method/recursive, td, mlr: plans, estimates, drivers
package coordinator
