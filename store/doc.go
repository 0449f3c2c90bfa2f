// Package store keeps the state of training jobs: immutable, checksummed, versioned values. Each is
// written once, under a Key of job, step, task, attempt and name.
//
// Nothing is ever overwritten with other bytes. A repeated Put of the same bytes is acknowledged
// again; other bytes under a key that has a value are refused with ErrConflict. The coordinator
// decides which attempt of a task counts (Commit). A reader names step, task and attempt, so a late
// or repeated attempt can never mix into a result.
//
// A CRC32C travels with each value from the writer to the shard's medium and back: it is computed
// where the value is made, stored beside it and verified at each read. Bytes that do not match are
// never returned; the error is ErrCorrupt and names the key.
//
// Store is what workers and the coordinator use. Shard is a Store in this process that also passes
// checksums on, as the RPC server needs. These implementations exist, and all of them pass
// store/storetest:
//
//   - store/memory is bounded and volatile;
//   - store/badger is durable, on files of store/segment;
//   - store/storerpc is a client that places keys on shards and keeps copies of them.
//
// FORMAT.md has the layouts on disk.
//
// A caller handles errors as follows:
//
//	ErrUnavailable, ErrFull    a shard is away, or has no room; nothing is lost: try later (IsTransient)
//	ErrMissing, ErrCorrupt     no copy is intact: recompute the value (Lost lists the keys)
//	ErrConflict                a writer is not deterministic, which is a bug
//	ErrInvalid, ErrTooLarge    the request is wrong
package store
