// Package export writes a model's weights in the formats of other programs: SciPy's npz,
// safetensors, LIBLINEAR's model file and Parquet. (The text form is package model's.)
//
// Matrices hold the classes one can predict, the tree's terminals in node order, by the
// features of the input in ascending order, the bias last: column j is feature j+1 of an
// input that counts from 1. Weights are effective ones, not differences; those below a
// threshold in absolute value are left out, the bias never. Parquet holds internal nodes
// too.
//
// Every format streams. Where the format wants sizes first, one pass counts; then there is a
// pass for each array. All passes use package model's parallel walk. So memory is that of a
// few vectors and eight bytes a class, whatever the size of the export.
package export
