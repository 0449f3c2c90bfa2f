// Package backup writes a job's values to a folder, with one part per shard, and restores them into
// any set of shards. The folder appears complete or not at all: Write makes every file durable,
// then the manifest, and then commits the folder. The manifest names every file with its size and
// checksum. store/FORMAT.md has the layout.
//
// Write and Open are the entry points. Values pass through the calling process in batches. Each
// part that is being written or read takes 16 MiB of memory, or that of the largest value if that
// is more.
package backup
