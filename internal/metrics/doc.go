// Package metrics lets a process be watched: Prometheus figures and probes over HTTP
// (Process, Serve), structured logs (LogOptions).
//
// An embedded training runs none of this unless it is watched (--watch-address). A process opts in by wrapping what it serves: a
// store's shard (Process.Shard), a worker's executor (Process.Executor), a gRPC server
// (Process.GRPC). The coordinator's figures are read from it at each scrape
// (Process.Cluster). docs/observability.md lists names and meanings; a test keeps that list
// complete.
package metrics
