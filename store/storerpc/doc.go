// Package storerpc provides a store over gRPC: the server of one shard (NewServer), and the client
// (New) that places keys on shards by rendezvous hashing.
//
// Values are sent in chunks of at most 1 MiB, with their size in the first chunk and the writer's
// CRC32C in the last. The server passes the checksum to the shard, which verifies and keeps it. The
// client verifies each value against it. So one checksum covers the whole way from the writer's
// memory to the reader's.
//
// A client has a fixed set of shards. Its connections follow the shards to new addresses; that is
// the work of internal/cluster. Each value is on as many shards as the job has replicas. Repair
// updates a shard that was away, or that replaces a lost one.
//
// Between processes a shard is served by a grpc.Server. Within one process, Embedded does the same
// over a Channel, which carries calls without serialising messages.
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
// The key at fault is sent as a status detail, so errors.As also finds the store.KeyError on the
// client's side.
package storerpc
