// Package metrics lets a process be watched: Prometheus figures and probes over HTTP
// (Process, Serve), structured logs (LogOptions).
//
// Nothing here is on the path of an embedded training. A process opts in by wrapping what
// it serves: a store's shard (Process.Shard), a worker's executor (Process.Executor), a
// gRPC server (Process.GRPC); the coordinator's figures are read from it when someone
// scrapes (Process.Cluster). Names and meanings are listed in docs/observability.md, and
// a test keeps that list complete.
package metrics
