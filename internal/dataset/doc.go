// Package dataset reads labelled instances and keeps them as a mapped sparse matrix.
//
// Three forms of input are read as streams: multi-label libsvm lines, the same with an
// XMC header, and labelled text (Reader). Ingest turns them into a folder of binary
// shards within a memory bound that does not depend on the input's size; Open maps such
// a folder, after checking every byte of it, as a Set. FORMAT.md has the byte layout.
// A Projection carries later rows (prediction, evaluation) into a Set's or a model's
// columns.
//
// Errors about the input are *fs.InputError and name file and line.
package dataset
