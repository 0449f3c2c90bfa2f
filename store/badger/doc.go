// Package badger is a durable store shard. Values are in segments (package segment), one or more
// files for each step of a job. Their places are in github.com/dgraph-io/badger/v4.
// store/FORMAT.md has the layouts.
//
// A Put appends to the step's segment, and is acknowledged when that is synced. One sync serves
// all writers of the step at that time. So acknowledged values survive kill -9 and a power
// failure.
//
// A value's head (place, size, checksum) waits in memory. Most heads are dropped there with their
// step. When too many wait they go to Badger. After a crash, heads that waited are found by
// reading the ends of the segments. A step is dropped by removing its files.
//
// How Badger is configured, and why:
//
//   - memory tables are small and caches off, as the defaults take gigabytes;
//   - all entries are in the LSM tree and none in the value log, whose garbage collection does
//     not reclaim space;
//   - its log is synced: a segment's mark must not exist without the heads before it;
//   - its compression is off, which needs no block cache;
//   - steps of a job are dropped by deletion marks, whole jobs by their prefix;
//   - entries' buffers are never reused, since a write batch keeps them.
package badger
