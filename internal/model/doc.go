// Package model is a trained model on disk: writing it and opening it. Package shard has the bytes of
// its weights, package scoring its scores, package pruning its smaller copies.
//
// A model is a directory (FORMAT.md has every byte). Weights are stored as
// overrides: the record of node n lists the columns on which w_n differs from
// w_parent(n), with the float32 value that w_n has there; a column that is not listed
// has the parent's value, and the zero vector stands above the roots. This is exact,
// not an approximation: recursive regularisation leaves a terminal equal to its parent
// on every feature that none of its support vectors holds, so a record holds 2-5 % of
// the features where the effective vector may hold all of them.
//
// Columns are those of the data set (renumbered by falling frequency); with a bias
// b > 0 the column after the last one is the bias feature, of value b in every row.
//
// Callers: write with NewWriter, WriteNode in node order, Close; a model appears under
// its name whole or not at all. Read with Open, which verifies every checksum; Close
// it when no vector of it is in use any more. A Model is safe for concurrent use; a
// Writer belongs to one goroutine.
package model
