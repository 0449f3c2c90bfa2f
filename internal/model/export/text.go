package export

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/form"
)

// TextExporter writes effective weights as text, one line per node:
//
//	KIND NAME idx:val ... [bias:val]
//
// KIND is node, spawned (the leaf spawned under the internal label NAME) or virtual (NAME is -). If
// the model predicts by descent, the weights belong to edges: KIND is edge, NAME is PARENT,CHILD (a
// spawned leaf has its parent's name; a root's parent is -), and an only root has no line. Indices
// are the input's, counted from 1, ascending. Only nonzero weights are written, as the shortest
// decimals that read back to the same float32.
type TextExporter struct {
	m         *model.Model
	threshold float32
	// order lists the columns by ascending input index.
	order []uint32
	// first is the first node with a line. By descent it is 1 if node 0 is the only root.
	first int
}

// NewTextExporter prepares an export without the weights that are below threshold in absolute
// value. The bias is always written. If threshold is 0, all weights are written.
func NewTextExporter(m *model.Model, threshold float64) (*TextExporter, error) {
	if !(threshold >= 0) || math.IsInf(threshold, 0) {
		return nil, fmt.Errorf("export: threshold %v: must be a number >= 0", threshold)
	}
	e := &TextExporter{m: m, threshold: float32(threshold), order: make([]uint32, len(m.Feature))}
	if m.Form.Predictor == form.Descent && roots(m.Tree) == 1 {
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

// WriteRange writes nodes [first, last) in node order, rendered by a number of threads.
func (e *TextExporter) WriteRange(ctx context.Context, w io.Writer, first, last, threads int) error {
	return Render(ctx, e.m, w, first, last, threads, e.appendNode)
}

// roots returns the number of roots.
func roots(t *taxonomy.Tree) (n int) {
	for _, p := range t.Parent {
		if p < 0 {
			n++
		}
	}
	return n
}
