// Package export implements the verb export: it writes a model's weights as text and in the formats
// of other programs, which are SciPy's npz, safetensors, LIBLINEAR's model file and Parquet.
//
// A matrix has a row for each class that can be predicted, in node order, and a column for each
// feature of the input, ascending, then the bias: column j is feature j+1 of an input that counts
// from 1. Weights are effective ones and not differences. Those below a threshold in absolute value
// are omitted, except the bias. Parquet also has internal nodes.
//
// Every format is streamed. If a format needs sizes first, one pass counts, and then there is a
// pass for each array. All passes use one parallel walk, Render. So the memory is a few vectors and
// eight bytes per class, whatever the size of the export.
package export
