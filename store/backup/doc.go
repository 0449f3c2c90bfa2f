// Package backup writes a job's values to a folder, with a part for each shard, all parts at
// once. It puts them back into any other set of shards. The folder appears whole or not at all.
// Its manifest names every file with size and checksum. store/FORMAT.md has the layout.
//
// Values go through the calling process in batches. Each part on its way takes 16 MiB of memory,
// or the largest value if that is more.
package backup
