// Package sparse holds the instance matrix: compressed sparse rows of float32, divided into shards
// of a fixed number of rows that may be memory-mapped.
//
// It imports no other package of taxon. mapper and reducer access data only through it.
package sparse
