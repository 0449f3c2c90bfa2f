// Package storerpc carries a store over gRPC: the server of one shard, and the
// client that places keys over shards by rendezvous hashing.
//
// Values travel in chunks of at most 1 MiB with their size on the first chunk and
// the writer's CRC32C on the last. The server hands the checksum to the shard, which
// verifies and keeps it; the client verifies each value that it gets against it. So
// one checksum covers the way from the writer's memory to the reader's.
//
// New makes the client of a fixed set of shards. The connections that it is given follow
// them to new addresses (internal/cluster). Each value lies on as many shards as the job has
// replicas. Repair brings a shard up to date that was away, or that replaces a lost one.
//
// Between processes a shard is served by a grpc.Server; within one, Embedded does the
// same over a Channel, which carries calls without serialising messages.
//
// Errors keep their meaning across the wire:
//
//	store.ErrInvalid      InvalidArgument
//	store.ErrConflict     AlreadyExists
//	store.ErrCorrupt      DataLoss (a damaged value within a Get: a flag in its chunk)
//	store.ErrTooLarge     OutOfRange
//	store.ErrFull         ResourceExhausted
//	store.ErrClosed       FailedPrecondition (and ErrUnavailable at the client)
//	store.ErrUnavailable  Unavailable
//	context errors        Canceled, DeadlineExceeded
//
// The key to blame travels as a status detail, so errors.As finds the
// store.KeyError on the client's side too.
package storerpc
