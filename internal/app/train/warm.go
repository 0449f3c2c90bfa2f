package train

import (
	"context"
	"math"
	"slices"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// readWarm reads the digest of the initial weights, which is part of the training's identity.
func (t *Training) readWarm() error {
	if t.o.Warm == "" {
		return nil
	}
	if !model.IsModel(t.o.Warm) && !model.IsUnfinished(t.o.Warm) {
		return option.Errorf("train: ‹warm-start=%s›: is not a model", format.QuoteIfNeeded(t.o.Warm))
	}
	m, err := model.ReadManifest(t.o.Warm)
	if err != nil {
		return err
	}
	t.warmSum = m.Report.WeightsSHA256
	return nil
}

// submit submits the job, with initial weights if Options.Warm is given.
func (t *Training) submit(ctx context.Context, e *engine.Engine, job string) error {
	if t.o.Warm == "" {
		return fs.Compute(ctx, func() error {
			_, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: t.Spec, Job: job})
			return engine.StripStatus(err)
		})
	}
	m, err := model.Open(t.o.Warm)
	if err != nil {
		return err
	}
	defer m.Close()
	c, err := newWarmMapping(m, t)
	if err != nil {
		return err
	}
	t.ui.Note("begins at the weights of %s: it has %d of %s, %d of them under another parent", t.o.Warm, c.known,
		format.Counted(int64(t.Tree.Len()), "node", "nodes"), c.moved)
	if lost := lostClasses(m, t); len(lost) > 0 {
		t.ui.Warn("%s of %s (%q, ...) have no instance in the data, and the new model will not know them: a warm start "+
			"takes weights, not instances, so give the old data too, to keep them",
			format.Counted(int64(len(lost)), "class", "classes"), t.o.Warm, lost[0])
	}
	return e.Begin(ctx, job, t.Spec, t.Set, c.weights)
}

// lostClasses returns the model's classes that have no instance in the training.
func lostClasses(m *model.Model, t *Training) (lost []string) {
	here := map[string]bool{}
	for l, name := range t.Set.Labels {
		here[name] = t.Set.PosBegin[l+1] > t.Set.PosBegin[l]
	}
	for l, name := range m.Labels {
		if m.LabelCounts[l] > 0 && !here[name] {
			lost = append(lost, name)
		}
	}
	return lost
}

// warmMapping maps a model's weights to the nodes and columns of a training that starts at them.
// Nodes are matched by kind and name, columns by their index in the input or by their word.
type warmMapping struct {
	m    *model.Model
	tree *taxonomy.Tree
	// old is the model's node of each node of the training, or -1 for a new node.
	old []int
	// column maps the model's columns to those of the training, or to dropped.
	column []uint32
	// width is the number of columns of the training, including the bias.
	width int
	// moved counts the nodes that have another parent than in the model.
	moved int
	// known counts the nodes that the model has.
	known int
}

// dropped marks a column that the training lacks.
const dropped = ^uint32(0)

// newWarmMapping returns the mapping from m to t. It reads from m until the job has begun. The
// caller closes m after that.
func newWarmMapping(m *model.Model, t *Training) (*warmMapping, error) {
	if (m.Text != nil) != (t.Set.Vocabulary != nil) {
		return nil, option.Errorf("%s: ‹warm-start›: a model of text can't start a training on feature vectors, nor "+
			"the other way round", m.Dir)
	}
	if m.Manifest.Pruned != nil {
		return nil, option.Errorf("%s: ‹warm-start›: a pruned model lacks weights: give the whole one", m.Dir)
	}
	if m.Form.Predictor != form.Linear {
		return nil, option.Errorf("%s: ‹warm-start›: a model of method %s holds no weights that a training could begin at",
			m.Dir, m.Options.Method)
	}
	c := &warmMapping{m: m, tree: t.Tree, width: t.Set.Matrix.Cols}
	c.mapColumns(t)
	c.mapNodes()
	if c.known == 0 {
		return nil, option.Errorf("%s: ‹warm-start›: it has no class in common with the training", m.Dir)
	}
	return c, nil
}

// mapColumns matches the columns. The bias feature is matched if its value is the same.
func (c *warmMapping) mapColumns(t *Training) {
	c.column = make([]uint32, c.m.Columns())
	words, index := map[string]uint32{}, map[uint32]uint32{}
	for k, w := range t.Set.Vocabulary {
		words[w] = uint32(k)
	}
	for k, f := range t.Set.Feature {
		index[f] = uint32(k)
	}
	bias := registry.Number(t.o.Job, "bias")
	for k := range c.column {
		c.column[k] = dropped
		switch {
		case k == len(c.m.Feature):
			if bias == c.m.Options.Bias {
				c.column[k] = uint32(t.Set.Matrix.Cols)
			}
		case c.m.Text != nil:
			if to, ok := words[c.m.Text.Vocabulary[k]]; ok {
				c.column[k] = to
			}
		default:
			if to, ok := index[c.m.Feature[k]]; ok {
				c.column[k] = to
			}
		}
	}
	if bias > 0 {
		c.width++
	}
}

// nodeKey identifies a node in both trees.
type nodeKey struct {
	kind taxonomy.Kind
	name string
}

// mapNodes matches the nodes.
func (c *warmMapping) mapNodes() {
	of := map[nodeKey]int{}
	for n := range c.m.Tree.Len() {
		of[nodeKey{c.m.Tree.Kind[n], c.m.Tree.Name[n]}] = n
	}
	c.old = make([]int, c.tree.Len())
	for n := range c.old {
		c.old[n] = -1
		if o, ok := of[nodeKey{c.tree.Kind[n], c.tree.Name[n]}]; ok {
			c.old[n] = o
			c.known++
			if !c.sameParent(n) {
				c.moved++
			}
		}
	}
}

// sameParent reports whether a known node has the same parent as in the model.
func (c *warmMapping) sameParent(n int) bool {
	p, q := c.tree.Parent[n], c.m.Tree.Parent[c.old[n]]
	if p < 0 || q < 0 {
		return p < 0 && q < 0
	}
	return c.old[p] == int(q)
}

// weights returns the initial weights of node n, in the form of program.InitialWeights.
func (c *warmMapping) weights(n int) (columns []uint32, values []float32) {
	switch {
	case c.old[n] < 0:
		// A new node starts at its parent.
		return nil, nil
	case c.sameParent(n) && c.m.Form.Weights == form.Overrides:
		return c.mapped(c.m.Overrides(c.old[n]))
	}
	own, above := c.effective(n), c.effective(int(c.tree.Parent[n]))
	for k, v := range own {
		if above == nil && v != 0 || above != nil && v != above[k] {
			columns, values = append(columns, uint32(k)), append(values, v)
		}
	}
	return columns, values
}

// mapped translates the columns of the model and sorts the result.
func (c *warmMapping) mapped(columns []uint32, values []float32) ([]uint32, []float32) {
	// Each entry is the column followed by the value's bits, so that sorting integers sorts
	// columns.
	all := make([]uint64, 0, len(columns))
	for i, k := range columns {
		if to := c.column[k]; to != dropped {
			all = append(all, uint64(to)<<32|uint64(math.Float32bits(values[i])))
		}
	}
	slices.Sort(all)
	outColumns, outValues := make([]uint32, len(all)), make([]float32, len(all))
	for i, e := range all {
		outColumns[i], outValues[i] = uint32(e>>32), math.Float32frombits(uint32(e))
	}
	return outColumns, outValues
}

// effective returns the dense vector that node n starts with. This is the node's own vector in the
// model or, if it has none, the vector of its nearest ancestor with one. Above the roots it is nil,
// which stands for zero.
func (c *warmMapping) effective(n int) []float32 {
	for ; n >= 0; n = int(c.tree.Parent[n]) {
		if c.old[n] < 0 {
			continue
		}
		out := make([]float32, c.width)
		for k, v := range c.m.Vector(c.old[n]) {
			if to := c.column[k]; to != dropped {
				out[to] = v
			}
		}
		return out
	}
	return nil
}
