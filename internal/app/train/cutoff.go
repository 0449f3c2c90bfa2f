package train

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"taxon/coordinator/method/registry"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
	"taxon/internal/model/scoring"
)

// These bound the number of held-out rows. They suffice for a regression of a dozen coefficients
// and for the thresholds of frequent classes, and scoring them is quick.
const (
	heldShare = 0.2
	maxHeld   = 2000
	MinHeld   = 20
)

// These bound the depth of profiles, which is twice the largest number of labels of an instance.
const (
	minDepth = 16
	maxDepth = 256
)

// wantsCutoffs reports whether cut-offs are to be fitted.
func (t *Training) wantsCutoffs() bool {
	switch t.o.Cutoff {
	case "fit":
		return true
	case "none":
		return false
	}
	return t.Meta().Data.MultiLabel() && !t.Meta().Form.Sets()
}

// goal returns the measure that cut-offs maximise.
func (t *Training) goal() labelset.Goal { return measure.CutoffsFor(t.o.Goal) }

// lacksCutoffs reports whether a finished model lacks the cut-offs that the options ask for.
func (t *Training) lacksCutoffs(have *labelset.Cutoffs) bool {
	return t.wantsCutoffs() && (have == nil || have.Goal != t.goal())
}

// complete fits the parts that a model in the working folder still lacks, and then publishes it in
// one step. If it fails, the same command repeats it without training.
func (t *Training) complete(ctx context.Context, report *model.Report, have model.Meta) (*model.Report, error) {
	whole := t.work.finished()
	report, err := t.fitRest(ctx, whole, report, have)
	if err != nil {
		return nil, err
	}
	return t.keep(ctx, whole, report)
}

// fitCutoffs fits the cut-offs of the model in dir on rows held out of trainings, and adds them to
// the model. The model's weights do not change.
func (t *Training) fitCutoffs(ctx context.Context, dir string, report *model.Report) (*model.Report, error) {
	began, cpu := time.Now(), cpuSeconds()
	h := &holdOut{Training: t, trained: report.Sweeps}
	if !h.plan() {
		t.ui.Warn("too few instances to fit a cut-off on: each instance gets all classes with a score above 0")
		return report, nil
	}
	c, err := h.fit(ctx)
	if ctx.Err() != nil {
		return nil, jobs.Interruptedf("interrupted while the label sets' cut-off was fitted: the training is done and "+
			"kept; to fit it: %s", t.o.Again)
	}
	if err != nil {
		return nil, fmt.Errorf("fit the label sets' cut-off: %w", err)
	}
	return model.AddCutoffs(dir, c, time.Since(began).Seconds(), cpuSeconds()-cpu)
}

// fit trains on the rest of each part, scores the part's held-out rows, and fits the cut-offs.
func (h *holdOut) fit(ctx context.Context) (*labelset.Cutoffs, error) {
	p, err := h.profiles(ctx)
	if err != nil {
		return nil, err
	}
	return labelset.Fit(p, labelset.Options{Goal: h.goal(), Tree: GroupsOf(h.Tree, len(h.Set.Labels))})
}

// profiles returns the profiles of all held-out rows, part by part.
func (h *holdOut) profiles(ctx context.Context) (p *labelset.Profiles, err error) {
	dir := filepath.Join(h.scratch, "holdout")
	defer fs.RemoveAll(dir)
	for _, part := range h.parts {
		if err := h.train(ctx, part.rest, dir); err != nil {
			return nil, err
		}
		if p, err = h.score(ctx, dir, part.held, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// score appends to p the profiles of rows, scored by the model in dir, and returns p. A nil p is
// allocated.
func (h *holdOut) score(ctx context.Context, dir string, rows []uint32,
	p *labelset.Profiles) (*labelset.Profiles, error) {
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if p == nil {
		if p, err = labelset.NewProfiles(ProfileDepth(m, h.Set), len(m.Labels)); err != nil {
			return nil, err
		}
	}
	p.NextPart()
	add := Profiler(m, h.Set, p)
	line := h.ui.Start("score the held-out instances", int64(len(rows)))
	defer line.Done()
	return p, Rank(ctx, m, h.Set, rows, p.Depth(), h.o.slots(), func(i int, best, _ []scoring.Scored) error {
		line.Set(int64(i) + 1)
		return add(rows[i], best)
	})
}

// ProfileDepth returns the number of scores in a profile of the rows of set.
func ProfileDepth(m *model.Model, set *dataset.Set) int {
	return min(m.Terminals(), max(minDepth, min(maxDepth, 2*int(set.Stats.MaxLabels))))
}

// GroupsOf returns the groups of the classes in a tree, which are its internal nodes below the
// root. A graph has none.
func GroupsOf(t *taxonomy.Tree, labels int) (out labelset.Tree) {
	if t.IsGraph() {
		return out
	}
	group := make([]int32, t.Len())
	out.Of = slices.Repeat([]int32{-1}, labels)
	for n := range t.Len() {
		above, p := int32(-1), t.Parent[n]
		if p >= 0 {
			above = group[p]
		}
		switch {
		case t.Leaf[n]:
			if l := t.Label[n]; l >= 0 {
				out.Of[l] = above
			}
		case p < 0: // threshold for all
			group[n] = -1
		default:
			group[n] = int32(len(out.Above))
			out.Above = append(out.Above, above)
		}
	}
	return out
}

// Profiler returns a function that appends a row of set to p. best are the row's best terminals by
// m, at least as many as the depth of p. Classes unknown to m come last, with the lowest of these
// scores.
func Profiler(m *model.Model, set *dataset.Set, p *labelset.Profiles) func(row uint32, best []scoring.Scored) error {
	scores, classes := make([]float64, p.Depth()), make([]int32, p.Depth())
	var without []int32
	if m.Terminals() < len(classes) {
		for l := range set.Labels {
			without = append(without, int32(l))
		}
		for _, n := range m.Tree.Terminals() {
			without = slices.DeleteFunc(without, func(l int32) bool { return l == m.Tree.Label[n] })
		}
	}
	return func(row uint32, best []scoring.Scored) error {
		for k := range scores {
			if k < len(best) {
				scores[k], classes[k] = best[k].Score, m.Tree.Label[best[k].Node]
			} else {
				scores[k], classes[k] = scores[k-1], without[k-len(best)]
			}
		}
		var truth []int32
		for _, l := range set.LabelsOf(row) {
			truth = append(truth, int32(l))
		}
		weight := 1.0
		if set.Weight != nil {
			weight = set.Weight[row]
		}
		return p.Add(weight, scores, classes, truth)
	}
}

// Rank calls each for every row, in order and from one goroutine, with the depth best terminals by
// m. The last argument is the set that m itself predicts, if m predicts sets, and otherwise the
// best terminals again. The slices are valid only during the call.
func Rank(ctx context.Context, m *model.Model, set *dataset.Set, rows []uint32, depth, threads int,
	each func(i int, best, own []scoring.Scored) error) error {
	rule := scoring.TopK
	if m.Form.Sets() {
		rule = scoring.Own
	}
	predictor, err := scoring.New(m, scoring.Options{Rule: rule, Top: depth})
	if err != nil {
		return err
	}
	next := 0
	fill := func(b *scoring.Batch) error {
		for ; !b.Full(); next++ {
			if next == len(rows) {
				return io.EOF
			}
			b.Add(set.Matrix.Row(int(rows[next])))
		}
		return nil
	}
	return predictor.Stream(ctx, threads, fill, func(b *scoring.Batch, r *scoring.Result) error {
		for i := range b.Rows() {
			if err := each(int(b.First)+i, r.Best(i), r.Set(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// The prior shift. Each class is trained separately against all others. The fewer instances a class
// has, the stronger is its regularisation relative to the loss, so rare classes score too low
// beside frequent ones. The option prior-shift T adds to the score of class c
//
//	T ln(n_max / n_c)
//
// where n_c is the number of its training documents and n_max that of the largest class (post-hoc
// logit adjustment, A. Menon et al.: Long-tail learning via logit adjustment, ICLR 2021). The shift
// is added to the weight of the bias feature when the model is written, so that every reader of the
// weights predicts the same labels. The certified gap is that of the weights without the shift.

// PriorShift returns the shift of each terminal's score, for the factor by. It is nil if nothing is
// added.
func (t *Training) PriorShift(by float64) []float64 {
	if by == 0 {
		return nil
	}
	counts := t.documentCounts()
	most := float64(slices.Max(append([]uint32{1}, counts...)))
	shift := make([]float64, t.Tree.Len())
	for _, n := range t.Tree.Terminals() {
		if l := t.Tree.Label[n]; l >= 0 {
			shift[n] = by * math.Log(most/max(float64(counts[l]), 1))
		}
	}
	return shift
}

// nodeWriter writes the overrides of node n. It is called for nodes in order, as
// model.Writer.WriteNode is.
type nodeWriter func(n int, columns []uint32, values []float32) error

// shifted returns a nodeWriter that adds the shift and forwards the weights to write.
func (t *Training) shifted(write nodeWriter) nodeWriter {
	shift := t.PriorShift(t.o.Shift)
	if shift == nil {
		return write
	}
	s := &shifter{tree: t.Tree, write: write, shift: shift, perUnit: 1 / registry.Number(t.o.Job, "bias"),
		column: uint32(t.Set.Matrix.Cols), bias: make([]float32, t.Tree.Len())}
	return s.node
}

// shifter writes bias weights that are shifted at the terminals.
type shifter struct {
	tree  *taxonomy.Tree
	write nodeWriter
	// shift is added to the score, by node.
	shift []float64
	// perUnit is the weight of the bias feature that raises a score by 1.
	perUnit float64
	// column is the column of the bias feature.
	column uint32
	// bias is the unshifted weight of the bias feature, by node.
	bias    []float32
	columns []uint32
	values  []float32
}

// node shifts the bias weight of node n and writes its overrides.
func (s *shifter) node(n int, columns []uint32, values []float32) error {
	if p := s.tree.Parent[n]; p >= 0 {
		s.bias[n] = s.bias[p]
	}
	last := len(columns) - 1
	own := last >= 0 && columns[last] == s.column
	if own {
		s.bias[n] = values[last]
	}
	if s.shift[n] == 0 {
		return s.write(n, columns, values)
	}
	s.columns, s.values = append(s.columns[:0], columns...), append(s.values[:0], values...)
	if !own {
		s.columns, s.values = append(s.columns, s.column), append(s.values, 0)
	}
	s.values[len(s.values)-1] = float32(float64(s.bias[n]) + s.shift[n]*s.perUnit)
	return s.write(n, s.columns, s.values)
}
