// Package badger provides a durable store shard. Values are in segments (package segment), one or
// more files for each step of a job. An index of them is in github.com/dgraph-io/badger/v4. Open is
// the entry point, and store/FORMAT.md has the layouts.
//
// The index entry of a value is its head: place, size and checksum. Heads wait in memory, where
// most of them are dropped with their step. When too many wait, they are moved to Badger. A mark in
// Badger says up to which offset a segment's heads have been moved.
//
// # Durability
//
//  1. A Put appends to the step's segment and is acknowledged when the segment is synced. One sync
//     serves all concurrent writers of the step. So acknowledged values survive kill -9 and a power
//     failure.
//  2. Heads are moved to Badger after the segment is synced, and the mark after the heads. Badger's
//     log is synced, so a mark never exists without the heads before it.
//  3. After a crash, Open reads each segment from its mark to its end, and so finds the heads that
//     were in memory.
//  4. A step is dropped by deleting its entries in Badger and then removing its files. After a
//     crash between the two, the files still have all of its values.
//
// # Configuration of Badger
//
//   - Memory tables are small and caches are off, because the defaults take gigabytes.
//   - All entries are in the LSM tree and none in the value log, whose garbage collection does not
//     reclaim space.
//   - Compression is off, so that no block cache is needed.
//   - Steps of a job are dropped by tombstones, and whole jobs by their prefix.
//   - Buffers of entries are never reused, because a write batch keeps them.
package badger
