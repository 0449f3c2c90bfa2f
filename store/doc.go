// Package store keeps the state of training jobs: immutable, checksummed,
// versioned values, each written once under (job, step, task, attempt, name).
//
// Nothing is ever overwritten with other bytes. A repeated Put of the same bytes
// is acknowledged again; other bytes under a key that has a value are refused with
// ErrConflict. The coordinator decides which attempt of a task counts (Commit). A
// reader names step, task and attempt, so a late or doubled attempt can never mix
// into a result.
//
// A CRC32C travels with each value from the writer to the shard's medium and back:
// it is made where the value is made, stored beside it and verified at each read.
// Bytes that do not match are never returned; the error is ErrCorrupt and names the
// key.
//
// Store is what workers and the coordinator use. Shard adds what the RPC server
// needs to hand checksums on. Implementations, all of which pass store/storetest:
//
//   - store/memory: bounded, volatile;
//   - store/badger: durable, on files of store/segment;
//   - store/storerpc: a client that places keys over shards and keeps copies of them.
//
// FORMAT.md has the layouts on disk.
//
// What a caller does about an error:
//
//	ErrUnavailable, ErrFull    a shard is away, or has no room; nothing is lost: try again later (Passing)
//	ErrMissing, ErrCorrupt     no copy is whole: make the value anew (Lost names the keys)
//	ErrConflict                a writer is not deterministic: a bug
//	ErrInvalid, ErrTooLarge    the request is wrong
package store
