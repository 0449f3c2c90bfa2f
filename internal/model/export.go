package model

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"taxon/internal/fs"
	"taxon/internal/model/form"
)

// TextExporter writes effective weights as text, one line a node:
//
//	KIND NAME idx:val ... [bias:val]
//
// KIND is node, spawned (the leaf spawned under the internal label NAME) or virtual (NAME is -).
// If the model predicts by descent, the weights are those of edges: KIND is edge, NAME is
// PARENT,CHILD (a spawned leaf has its parent's name; a root's parent is -), and an only root has
// no line. Indices are those of the input, counted from 1, ascending. Only nonzero weights are
// written, as the shortest decimals that read back to the same float32.
type TextExporter struct {
	m         *Model
	threshold float32
	order     []uint32 // columns by ascending input index
	first     int      // node with a line; by descent 1 if node 0 is the only root
}

// NewTextExporter prepares an export without the weights that are below threshold in absolute
// value (0: all are written; the bias always is).
func (m *Model) NewTextExporter(threshold float64) (*TextExporter, error) {
	if !(threshold >= 0) || math.IsInf(threshold, 0) {
		return nil, fmt.Errorf("export: threshold %v: must be a number >= 0", threshold)
	}
	e := &TextExporter{m: m, threshold: float32(threshold), order: make([]uint32, len(m.Feature))}
	if m.Form.Predictor == form.Descent && childCounts(m.Tree)[0] == 1 {
		e.first = 1
	}
	for c := range e.order {
		e.order[c] = uint32(c)
	}
	slices.SortFunc(e.order, func(a, b uint32) int { return int(int64(m.Feature[a]) - int64(m.Feature[b])) })
	return e, nil
}

// appendNode appends the line of node n, whose effective weights are w.
func (e *TextExporter) appendNode(b []byte, n int, w []float32) []byte {
	if n < e.first {
		return b
	}
	kind, name := e.m.VectorName(n)
	if kind != "edge" {
		name = e.m.LineName(n)
	}
	b = append(append(append(b, kind...), ' '), name...)
	for _, c := range e.order {
		v := w[c]
		if v == 0 || float32(math.Abs(float64(v))) < e.threshold {
			continue
		}
		b = strconv.AppendUint(append(b, ' '), uint64(e.m.Feature[c]), 10)
		b = strconv.AppendFloat(append(b, ':'), float64(v), 'g', -1, 32)
	}
	if len(w) > len(e.order) && w[len(w)-1] != 0 {
		b = strconv.AppendFloat(append(b, " bias:"...), float64(w[len(w)-1]), 'g', -1, 32)
	}
	return append(b, '\n')
}

// WriteRange writes nodes [first, last) in node order. So many goroutines render them.
func (e *TextExporter) WriteRange(ctx context.Context, w io.Writer, first, last, threads int) error {
	return e.m.Render(ctx, w, first, last, threads, e.appendNode)
}

// What an export of a model with precisions writes.
const (
	Mean      = "mean"      // TextExporter
	Variance  = "variance"  // the diagonal of each node's covariance
	Precision = "precision" // the precisions that nodes own
)

// CheckMoments returns an error if the model does not hold what is asked for.
func (m *Model) CheckMoments(what string) error {
	if m.moments == nil {
		return m.noMoments(what)
	}
	return nil
}

// noMoments says why the model does not hold what is asked for.
func (m *Model) noMoments(what string) error {
	if m.Manifest.Pruned != nil && m.Form.Precision != form.NoPrecision {
		return &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("was made for predictions by the means alone (export ‹format=model›, or train ‹model-size›), and holds no %s: give the model that it was made from, or train again without ‹model-size›", what)}
	}
	return &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("a model of method %s holds no %s: hierarchical Bayesian ones do", m.Options.Method, what)}
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
	if what == Precision && m.Form.Precision != form.ByFeature {
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
