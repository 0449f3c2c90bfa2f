// Package badger is a durable store shard on github.com/dgraph-io/badger/v4.
//
// A Put is acknowledged after Badger's write-ahead log is synced, so acknowledged
// values survive kill -9 and a loss of power. A value is one head entry, with the
// data inside if it is small, else followed by chunk entries that are written before
// the head: a value whose head is there is whole. store/FORMAT.md has the layout.
//
// How Badger is run, and why: memory tables are small and caches off (its defaults
// take gigabytes); all entries lie in the LSM tree, none in the value log, whose
// garbage collection does not reclaim space; its compression is off, since chunks are
// compressed here, which needs no block cache; steps of a job are dropped by deletion
// marks, whole jobs by their prefix, and the first level takes twice the usual number of
// tables, since most values are dropped before anything has to rewrite them; entries'
// buffers are never reused, since a write batch keeps them.
package badger
