// Package metrics makes a process observable: Prometheus figures and probes over HTTP (Process,
// Serve), and structured logs (LogOptions).
//
// An embedded training uses none of this unless --watch-address is given. A process opts in by
// wrapping what it serves: a store's shard (Process.Shard), a worker's executor
// (Process.Executor), a gRPC server (Process.GRPC). A coordinator's figures are read at each
// scrape (Process.Cluster). docs/observability.md lists names and meanings; a test keeps that
// list complete.
package metrics
