package report

import (
	"cmp"
	"context"
	"slices"

	"taxon/internal/model"
	"taxon/internal/model/predict"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/progress"
)

// observed holds the counts of a pass over the test data.
type observed struct {
	m       *model.Model
	classes map[string]*class
	// leaf maps a label to its terminal.
	leaf map[string]int32
	// below counts, by node, the instances whose true class is the node or below it.
	below []int64
	// parted counts, by node + 1, the mistakes for which this node is the lowest common ancestor of
	// true and predicted class. Index 0 is for paths without a common node.
	parted []int64
	pairs  []map[[2]int32]int64
	worst  []misclassified
	rows   int64
}

// class counts the outcomes of one class.
type class struct {
	label                string
	instances, predicted int64
	right                int64
	// instead counts the best class of instances for which that is another class.
	instead map[string]int64
}

// misclassified is an instance whose best class is not one of its own.
type misclassified struct {
	// row starts at 1.
	row   int64
	truth int32
	// predicted is the predicted class.
	predicted int32
	// steps is the number of edges between both classes in the hierarchy.
	steps   int
	score   float64
	columns []uint32
	values  []float32
}

// maxWorst is the number of mistakes that are shown.
const maxWorst = 20

// observe predicts all rows.
func observe(ctx context.Context, m *model.Model, in predict.Input, ui progress.Reporter) (*observed, error) {
	o := &observed{m: m, classes: map[string]*class{}, leaf: map[string]int32{}, below: make([]int64, m.Tree.Len()),
		parted: make([]int64, m.Tree.Len()+1), pairs: make([]map[[2]int32]int64, m.Tree.Len()+1)}
	for n, leaf := range m.Tree.Leaf {
		if leaf {
			o.leaf[m.Tree.Name[n]] = int32(n)
		}
	}
	var cut predict.Cutoff
	rule, err := cut.Rule(m, 1)
	if err != nil {
		return nil, err
	}
	p, err := scoring.New(m, rule.Options)
	if err != nil {
		return nil, err
	}
	in.Labels, in.AsTrained = true, true
	rows, err := predict.Open(ctx, m, in, ui)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return o, predict.Score(ctx, "report", p, rows, in.Threads, ui, func(b *scoring.Batch, r *scoring.Result) error {
		for i := range b.Rows() {
			o.row(b, r, rule, i)
		}
		return nil
	})
}

// of returns the counts of a class.
func (o *observed) of(label string) *class {
	c := o.classes[label]
	if c == nil {
		c = &class{label: label, instead: map[string]int64{}}
		o.classes[label] = c
	}
	return c
}

// row counts instance i of a batch.
func (o *observed) row(b *scoring.Batch, r *scoring.Result, rule *predict.Rule, i int) {
	o.rows++
	truth, best := b.RowLabels(i), r.Best(i)[0]
	predicted := o.m.Tree.Name[best.Node]
	for _, label := range truth {
		c := o.of(label)
		c.instances++
		if !slices.Contains(truth, predicted) {
			c.instead[predicted]++
		}
	}
	for _, s := range rule.Of(r, i) {
		c := o.of(o.m.Tree.Name[s.Node])
		c.predicted++
		if slices.Contains(truth, c.label) {
			c.right++
		}
	}
	if len(truth) == 0 {
		return
	}
	leaf, known := o.leaf[truth[0]]
	if !known {
		return
	}
	for n := leaf; n >= 0; n = o.m.Tree.Parent[n] {
		o.below[n]++
	}
	if slices.Contains(truth, predicted) {
		return
	}
	steps := o.part(leaf, best.Node)
	o.keep(misclassified{row: o.rows, truth: leaf, predicted: best.Node, steps: steps, score: best.Score}, b, i)
}

// part counts a mistake at the node where the two paths separate. It returns the number of edges
// between the classes.
func (o *observed) part(truth, predicted int32) (steps int) {
	t := o.m.Tree
	a, b := truth, predicted
	childA, childB := truth, predicted
	for a != b {
		switch {
		case b < 0 || a >= 0 && t.Depth[a] >= t.Depth[b]:
			childA, a = a, t.Parent[a]
		default:
			childB, b = b, t.Parent[b]
		}
		steps++
	}
	o.parted[a+1]++
	if o.pairs[a+1] == nil {
		o.pairs[a+1] = map[[2]int32]int64{}
	}
	o.pairs[a+1][[2]int32{childA, childB}]++
	return steps
}

// keep retains an instance if it is among the worst mistakes. A mistake is worse if the two classes
// are farther apart in the hierarchy or, at the same distance, if the score is higher.
func (o *observed) keep(k misclassified, b *scoring.Batch, i int) {
	order := func(a, b misclassified) int {
		return cmp.Or(cmp.Compare(b.steps, a.steps), cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row))
	}
	at, _ := slices.BinarySearchFunc(o.worst, k, order)
	if at == maxWorst {
		return
	}
	k.columns, k.values = slices.Clone(b.Column[b.Begin[i]:b.Begin[i+1]]), slices.Clone(b.Value[b.Begin[i]:b.Begin[i+1]])
	o.worst = slices.Insert(o.worst, at, k)
	o.worst = o.worst[:min(len(o.worst), maxWorst)]
}
