package export

import (
	"context"
	"io"
	"slices"

	"taxon/internal/model"
	"taxon/internal/model/scoring"
)

// Format is a format of exports.
type Format struct {
	// Name is the value of ‹format›.
	Name string
	// Holds describes in Markdown what a file of this format contains, and Opens names the programs
	// that open it. docs/formats.md has both.
	Holds, Opens string

	// ext is the extension of parts.
	ext string
	// matrix says that it is a matrix of classes x features, with labels next to it.
	matrix bool
	// whole says that it can't be cut into parts.
	whole bool
	// open returns what writes the weights. A nil open is that of a model, which Run writes.
	open func(*model.Model, *Source, *Options) (writer, error)
}

// writer writes the weights of the nodes [first, last).
type writer func(ctx context.Context, w io.Writer, first, last, threads int) error

// These are the names of formats that have options of their own.
const (
	textFormat      = "text"
	modelFormat     = "model"
	liblinearFormat = "liblinear"
)

// formats are all formats, in the order in which help and documentation list them.
var formats = []Format{
	{Name: textFormat, ext: ".txt", open: openText, Opens: "anything",
		Holds: "a line a node in node order, `KIND NAME index:value ... [bias:value]`. KIND is `node`, `spawned` (the leaf " +
			"spawned under the internal label NAME), `virtual` (NAME is `-`) or `dummy`. Indices are those of the input, from " +
			"1; decimals are the shortest that read back to the same float32"},
	{Name: modelFormat, Opens: "taxon",
		Holds: "the model itself, pruned by `‹threshold›`, its weights stored as `‹values›` says"},
	{Name: liblinearFormat, ext: ".model", matrix: true, whole: true, open: func(_ *model.Model, s *Source,
		_ *Options) (writer, error) {
		return func(ctx context.Context, w io.Writer, _, _, threads int) error { return s.Liblinear(ctx, w, threads) }, nil
	}, Opens: "its `predict`, with the same labels",
		Holds: "a model file of LIBLINEAR 2, dense: classes x features numbers as text, a line for every index up to the " +
			"highest; refused where it would take more than 1 GiB, unless `‹force-size›` asks for it"},
	{Name: "npz", ext: ".npz", matrix: true, open: func(_ *model.Model, s *Source, _ *Options) (writer, error) {
		return s.NPZ, nil
	}, Opens: "`scipy.sparse.load_npz`",
		Holds: "classes x features, float32, compressed rows: column j is feature j+1, the bias last (none with `‹bias=0›`)"},
	{Name: "safetensors", ext: ".safetensors", matrix: true, open: func(_ *model.Model, s *Source,
		_ *Options) (writer, error) {
		return s.Safetensors, nil
	}, Opens: "safetensors",
		Holds: "the same matrix: tensors `indptr`, `indices`, `data`; `shape` and `bias` in the metadata"},
	{Name: "parquet", ext: ".parquet", open: func(_ *model.Model, s *Source, _ *Options) (writer, error) {
		return s.Parquet, nil
	}, Opens: "pyarrow, DuckDB, Spark",
		Holds: "the same as text in long form: a row a weight, columns `kind`, `node`, `feature` (int32; 0: the bias), " +
			"`word` (where `features.txt` would have one), `weight` (float)"},
}

// openText also writes variances and precisions.
func openText(m *model.Model, _ *Source, o *Options) (writer, error) {
	if o.What != Mean {
		return func(ctx context.Context, w io.Writer, _, _, _ int) error { return WriteMoments(ctx, m, w, o.What) },
			scoring.CheckMoments(m, o.What)
	}
	t, err := NewTextExporter(m, o.Threshold)
	return t.WriteRange, err
}

// Formats lists all formats.
func Formats() []Format { return slices.Clone(formats) }

// Names lists their names.
func Names() (names []string) {
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}

// formatOf returns the format of the options. It is text for an unknown or empty name.
func (o *Options) formatOf() Format {
	for _, f := range formats {
		if f.Name == o.Format {
			return f
		}
	}
	return formats[0]
}
