// Package backup writes a job's values to a folder, a part for each shard, all at once,
// and puts them back into any other set of shards. The folder appears whole or not at
// all; its manifest names every file with size and checksum. store/FORMAT.md has the
// layout.
//
// Values go through the process that calls, in batches: memory is 16 MiB, or the
// largest value, for each part on its way.
package backup
