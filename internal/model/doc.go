// Package model stores trained models on disk: it writes and opens them. Package shard defines the
// bytes of the weights, package scoring computes scores, and package pruning makes smaller copies.
//
// A model is a directory (FORMAT.md has every byte). Weights are stored as overrides: the record of
// node n lists the columns in which w_n differs from w_parent(n), with the float32 value of w_n. In
// columns that are not listed, w_n has its parent's value; above the roots is the zero vector. This
// is exact: recursive regularisation leaves a terminal equal to its parent on every feature that
// none of its support vectors has, so that a record holds 2-5 % of the features where the effective
// vector may hold all of them.
//
// Columns are those of the data set, numbered by decreasing frequency. With a bias b > 0 there is
// one more column at the end for the bias feature, whose value is b in every row.
//
// To write a model, call NewWriter, then WriteNode for each node in order, then Close. A model
// appears under its name completely or not at all. To read one, call Open, which verifies every
// checksum, and Close when none of its vectors is in use any more. A Model is safe for concurrent
// use. A Writer belongs to one goroutine.
package model
