package export

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strconv"

	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/scoring"
)

// These are the parts of a model with precisions that can be exported.
const (
	// Mean selects the weights, which TextExporter writes.
	Mean = "mean"
	// Variance selects the diagonal of each node's covariance.
	Variance = "variance"
	// Precision selects the precisions that belong to nodes.
	Precision = "precision"
)

// WriteMoments writes variances or precisions as text, one line per node in node order:
//
//	KIND NAME idx:val ... [bias:val]
//	KIND NAME val
//
// The second form is for a precision of all features; nodes without one have no line. TextExporter
// describes KIND, NAME and the indices. Every feature that occurs in the training data is written.
// Decimals are the shortest that read back to the same number, which is a float32 for a leaf's
// variance and otherwise a float64.
func WriteMoments(ctx context.Context, m *model.Model, w io.Writer, what string) error {
	out := bufio.NewWriter(w)
	err := eachMoments(m, what, func(n int, list []scoring.Moment) error {
		if err := ctx.Err(); err != nil || len(list) == 0 {
			return err
		}
		_, err := out.Write(appendMoments(m, nil, what, n, list))
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func eachMoments(m *model.Model, what string, visit func(n int, list []scoring.Moment) error) error {
	if what == Variance {
		return scoring.Variances(m, 0, m.Tree.Len(), visit)
	}
	for n := range m.Tree.Len() {
		if err := visit(n, scoring.Precisions(m, n)); err != nil {
			return err
		}
	}
	return nil
}

// appendMoments appends the line of node n. It sorts list by input index.
func appendMoments(m *model.Model, b []byte, what string, n int, list []scoring.Moment) []byte {
	bits := 64
	if what == Variance && m.Tree.Leaf[n] {
		bits = 32
	}
	b = append(append(append(b, m.NodeKind(n)...), ' '), m.LineName(n)...)
	if what == Precision && m.Form.Precision != form.ByFeature {
		return append(strconv.AppendFloat(append(b, ' '), list[0].Value, 'g', -1, bits), '\n')
	}
	slices.SortFunc(list, func(x, y scoring.Moment) int { return inputIndex(m, x.Column) - inputIndex(m, y.Column) })
	for _, v := range list {
		if b = append(b, ' '); v.Column < len(m.Feature) {
			b = strconv.AppendInt(b, int64(m.Feature[v.Column]), 10)
		} else {
			b = append(b, "bias"...)
		}
		b = strconv.AppendFloat(append(b, ':'), v.Value, 'g', -1, bits)
	}
	return append(b, '\n')
}

// inputIndex returns a key that orders columns as exports do: by index in the input, the bias last.
func inputIndex(m *model.Model, column int) int {
	if column < len(m.Feature) {
		return int(m.Feature[column])
	}
	return int(^uint(0) >> 1)
}
