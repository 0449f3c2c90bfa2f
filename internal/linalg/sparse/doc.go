// Package sparse holds the instance matrix: compressed sparse rows of float32,
// cut into shards of a fixed number of rows that may be memory-mapped.
//
// It imports nothing of ours; mapper and reducer see data through it alone.
package sparse
