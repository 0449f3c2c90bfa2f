package model

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"taxon/internal/fs"
	"taxon/internal/modelform"
)

// What an export of a model with precisions writes.
const (
	Mean      = "mean"      // TextExporter
	Variance  = "variance"  // the diagonal of each node's covariance
	Precision = "precision" // the precisions that nodes own
)

// CheckMoments returns an error if the model does not hold what is asked for.
func (m *Model) CheckMoments(what string) error {
	if m.moments == nil {
		return &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("a model of method %s holds no %s: hierarchical Bayesian ones do, as they were trained", m.Options.Method, what)}
	}
	return nil
}

// WriteMoments writes variances or precisions as text, one line a node in node order:
//
//	KIND NAME idx:val ... [bias:val]
//	KIND NAME val
//
// The second form is for a precision that holds for all features; nodes without one have no line
// then. KIND, NAME and indices are those of TextExporter. Every feature that occurs in the
// training data is written. Decimals are the shortest that read back to the same number: a leaf's
// variance is a float32, all else a float64.
func (m *Model) WriteMoments(ctx context.Context, w io.Writer, what string) error {
	out := bufio.NewWriter(w)
	err := m.eachMoments(what, func(n int, list []Moment) error {
		if err := ctx.Err(); err != nil || len(list) == 0 {
			return err
		}
		_, err := out.Write(m.appendMoments(nil, what, n, list))
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func (m *Model) eachMoments(what string, visit func(n int, list []Moment) error) error {
	if what == Variance {
		return m.Variances(0, m.Tree.Len(), visit)
	}
	for n := range m.Tree.Len() {
		if err := visit(n, m.Precisions(n)); err != nil {
			return err
		}
	}
	return nil
}

// appendMoments appends the line of node n. It sorts list by input index.
func (m *Model) appendMoments(b []byte, what string, n int, list []Moment) []byte {
	bits := 64
	if what == Variance && m.Tree.Leaf[n] {
		bits = 32
	}
	b = append(append(append(b, m.NodeKind(n)...), ' '), m.LineName(n)...)
	if what == Precision && m.Form.Precision != modelform.ByFeature {
		return append(strconv.AppendFloat(append(b, ' '), list[0].Value, 'g', -1, bits), '\n')
	}
	slices.SortFunc(list, func(x, y Moment) int { return m.inputIndex(x.Column) - m.inputIndex(y.Column) })
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

// inputIndex gives the order of columns in exports: by index in the input, the bias last.
func (m *Model) inputIndex(column int) int {
	if column < len(m.Feature) {
		return int(m.Feature[column])
	}
	return int(^uint(0) >> 1)
}
