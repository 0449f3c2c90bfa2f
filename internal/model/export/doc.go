// Package export writes a model's weights in the formats of other programs: SciPy's npz,
// safetensors, LIBLINEAR's model file and Parquet. (The text form is in package model.)
//
// A matrix has a row for each class that can be predicted, in node order, and a column for each
// feature of the input, ascending, then the bias: column j is feature j+1 of an input that counts
// from 1. Weights are effective ones, not differences. Those below a threshold in absolute value
// are left out, the bias never. Parquet also has internal nodes.
//
// Every format is streamed. If a format needs sizes first, one pass counts, and then there is a
// pass for each array. All passes use package model's parallel walk. So memory is a few vectors
// and eight bytes a class, whatever the size of the export.
package export
