// Package dataset reads labelled instances and keeps them as a mapped sparse matrix.
//
// Three forms of input are read as streams: multi-label libsvm lines, the same with an
// XMC header, and labelled text (Reader). Ingest turns them into a folder of binary
// shards; its memory is bounded, whatever the input's size. Open checks every byte of
// such a folder and maps it as a Set. FORMAT.md has the byte layout. A Projection maps
// later rows (prediction, evaluation) to a Set's or a model's columns.
//
// Errors about the input are *fs.InputError and name file and line.
package dataset
