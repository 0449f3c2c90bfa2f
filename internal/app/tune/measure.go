package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"taxon/internal/app/train"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/option"
)

// meter measures trainings on rows that were held out of them.
type meter struct {
	goal   *measure.Measure
	record record
	// whole provides class set and labels, which are those of all the data.
	whole *train.Training
	folds *partition
	// all configures the computation of all measures.
	all measure.Options
	// light configures the computation of the goal only.
	light measure.Options
	// depth is the smallest number of best classes to rank. Shifts can move some of them up.
	depth int
	// work is the folder for temporary models.
	work *train.Work
	// rough fits cut-offs in a fraction of the time and nearly as well.
	rough   bool
	threads int
}

// shiftDepth is the number of a row's best classes among which a shift may reorder.
const shiftDepth = 64

// newMeter returns the meter of a search.
func newMeter(s *search) (*meter, error) {
	m := &meter{goal: s.goal, record: s.record, whole: s.whole, folds: s.folds, work: s.work, depth: s.goal.Places(),
		threads: s.threads(), rough: s.o.climbsHill()}
	m.all = measure.Options{Classes: s.whole.Set.Labels, Ranked: true, At: s.goal.Further(),
		TrainSizes: s.whole.Set.LabelSizes(), Documents: s.whole.Set.Documents()}
	if given := s.whole.Structure; given != nil {
		c, err := taxonomy.NewClosure(given)
		if err != nil {
			return nil, err
		}
		m.all.Structure = c
	} else if m.goal.Hierarchical {
		return nil, option.Errorf("tune: ‹goal=%s› needs a class structure: add ‹hierarchy=FILE›", s.o.Goal)
	}
	m.light = m.all
	m.light.Ranked = m.goal.Ranked
	if !m.goal.Hierarchical {
		m.light.Structure = nil
	}
	shifts := s.o.climbsHill()
	for _, path := range s.paths {
		shifts = shifts || slices.ContainsFunc(path[0].Points, func(p Point) bool { return p.Shift() != 0 })
	}
	if shifts {
		m.depth = max(m.depth, shiftDepth)
	}
	return m, nil
}

// measure predicts the rows of a fold with the weights of a training, which write puts into a
// folder. It records the predictions and fills in the measures of the results, each with its
// point's shift.
func (m *meter) measure(ctx context.Context, t *train.Training, write func(dir string) error, h *heldFold,
	results []*result) error {
	dir := m.work.Join(results[0].Name() + fmt.Sprintf("-%d", h.number))
	defer fs.RemoveAll(dir)
	if err := write(dir); err != nil {
		return err
	}
	trained, err := model.Open(dir)
	if err != nil {
		return err
	}
	defer trained.Close()
	bytes := int64(0)
	for _, f := range trained.Manifest.Files {
		bytes += f.Bytes
	}
	depth := min(max(m.depth, train.ProfileDepth(trained, m.whole.Set)), trained.Terminals())
	all, losses := depth, []logLoss(nil)
	if m.goal.Probable {
		all, losses = trained.Terminals(), make([]logLoss, len(h.rows))
	}
	rows, own := make([][]scoring.Scored, len(h.rows)), make([][]scoring.Scored, len(h.rows))
	err = train.Rank(ctx, trained, h.whole.Set, h.rows, all, m.threads, func(i int, best, set []scoring.Scored) error {
		rows[i] = slices.Clone(best[:min(depth, len(best))])
		if losses != nil {
			losses[i] = m.lossOf(trained, h.rows[i], best)
		}
		if trained.Form.Sets() {
			own[i] = slices.Clone(set)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range results {
		if err := m.predict(trained, h, r.Point, shifted(rows, t.PriorShift(r.Shift())), own, losses); err != nil {
			return err
		}
		measures, err := m.over(r.Point, h.number, h.number+1)
		if err != nil {
			return err
		}
		r.Measures, r.Bytes = &measures, bytes
	}
	return nil
}

// shifted ranks the classes again after it has added each node's shift to its score. A nil shift
// changes nothing.
func shifted(rows [][]scoring.Scored, shift []float64) [][]scoring.Scored {
	if shift == nil {
		return rows
	}
	out := make([][]scoring.Scored, len(rows))
	for i, best := range rows {
		out[i] = slices.Clone(best)
		for k := range out[i] {
			out[i][k].Score += shift[out[i][k].Node]
		}
		slices.SortStableFunc(out[i], func(a, b scoring.Scored) int { return cmp.Compare(b.Score, a.Score) })
	}
	return out
}

// predict records a point's predictions on a fold: for each row the predicted labels, by cut or by
// the model's own sets, and the best classes.
func (m *meter) predict(trained *model.Model, h *heldFold, p Point, rows, own [][]scoring.Scored,
	losses []logLoss) error {
	places, err := m.cut(trained, h, rows)
	if err != nil {
		return err
	}
	names := func(best []scoring.Scored) (out []string) {
		for _, s := range best {
			out = append(out, trained.Tree.Name[s.Node])
		}
		return out
	}
	return m.record.writePredictions(p, h.number, len(rows), losses, func(i int) (labels, ranked []string) {
		best := rows[i]
		set := own[i]
		if !trained.Form.Sets() {
			set = nil
			for _, k := range places[i] {
				set = append(set, best[k])
			}
		}
		return names(set), names(best[:min(m.goal.Places(), len(best))])
	})
}

// The rows of a fold are divided into cutParts parts. Cut-offs are fitted on all but one and
// applied to that one, in turn. A hill climb uses roughParts, because its trainings often take less
// time than fitting cut-offs in cutParts would.
const cutParts, roughParts = 5, 2

// cut returns the indices of each row's predicted classes. Scores are converted to labels as with
// the final model: by argmax or, for multi-label data, by cut-offs that maximise the goal. The
// cut-offs are fitted on the other parts of the fold's rows. So neither weights nor cut-offs depend
// on a row's own labels, and no second training is needed.
func (m *meter) cut(trained *model.Model, h *heldFold, rows [][]scoring.Scored) ([][]int, error) {
	several := m.whole.Meta().Data.MultiLabel()
	if !several || len(rows) < train.MinHeld {
		places := make([][]int, len(rows))
		for i, best := range rows {
			for k := range best {
				if k == 0 || several && best[k].Score > 0 {
					places[i] = append(places[i], k)
				}
			}
		}
		return places, nil
	}
	p, err := labelset.NewProfiles(train.ProfileDepth(trained, m.whole.Set), len(trained.Labels))
	if err != nil {
		return nil, err
	}
	add := train.Profiler(trained, m.whole.Set, p)
	for i, best := range rows {
		if err := add(h.rows[i], best); err != nil {
			return nil, err
		}
	}
	parts := cutParts
	if m.rough {
		parts = roughParts
	}
	return labelset.CrossFit(p, parts, labelset.Options{Goal: m.goal.Cutoffs,
		Tree: train.GroupsOf(trained.Tree, len(trained.Labels)), Rough: m.rough})
}

// replay reads the recorded predictions of a fold as ids of acc's labels. Class i of the class set
// has id i. The slices are valid until the next row.
func (m *meter) replay(p Point, fold int, acc *measure.Accumulator, each func(row uint32, truth,
	predicted, ranked []int32)) error {
	_, rows := m.folds.split(fold)
	var truth, predicted, ranked []int32
	return m.record.predictions(p, fold, len(rows), func(i int, labels, best []string) {
		truth = truth[:0]
		for _, l := range m.whole.Set.LabelsOf(rows[i]) {
			truth = append(truth, int32(l))
		}
		predicted, ranked = acc.IDs(predicted[:0], labels), acc.IDs(ranked[:0], best)
		each(rows[i], truth, predicted, ranked)
	})
}

// value returns the goal's value in a result.
func (m *meter) value(r *measure.Result) (float64, error) {
	v, ok := m.goal.Of(r)
	if !ok {
		return 0, option.Errorf("tune: ‹goal=%s› is not measured on this data", m.goal.Key)
	}
	return v, nil
}

// over measures the rows of folds from..to-1 together.
func (m *meter) over(p Point, from, to int) (r measure.Result, err error) {
	acc, err := measure.NewAccumulator(m.all)
	if err != nil {
		return r, err
	}
	for f := from; f < to; f++ {
		err := m.replay(p, f, acc, func(_ uint32, truth, predicted, ranked []int32) {
			acc.Add(truth, predicted,
				ranked)
		})
		if err != nil {
			return r, err
		}
	}
	r = acc.Result()
	if m.goal.Probable {
		var all logLoss
		for f := from; f < to; f++ {
			if err := m.record.losses(p, f, func(_ int, l logLoss) { all.add(l) }); err != nil {
				return r, err
			}
		}
		r.Probability = &measure.Probability{LogLoss: all.mean()}
	}
	return r, nil
}

// jackknife measures the goal on all rows of the folds from..to-1, and on the rows without each
// group in turn. group maps a row to its group.
func (m *meter) jackknife(p Point, from, to int, group []int) (*Jackknife, error) {
	if m.goal.Probable {
		return m.jackknifeLosses(p, from, to, group)
	}
	var acc [1 + Groups]*measure.Accumulator
	all, err := measure.NewAccumulator(m.light)
	if err != nil {
		return nil, err
	}
	acc[0] = all
	for i := range acc[1:] {
		acc[1+i] = all.Part()
	}
	for f := from; f < to; f++ {
		err := m.replay(p, f, all, func(row uint32, truth, predicted, ranked []int32) {
			for i := range acc {
				if i != 1+group[row] {
					acc[i].Add(truth, predicted, ranked)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	j := &Jackknife{}
	for i := range acc {
		r := acc[i].Result()
		var err error
		if j[i], err = m.value(&r); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// Score is the performance of a point. Value is measured on the rows of all folds together. Spread
// is the standard error of the mean of the folds' values.
type Score struct {
	Value  float64
	Spread float64
}

// NewScore returns the Score of a value over all rows and the values of the folds.
func NewScore(pooled float64, folds []float64) Score {
	mean, n := 0.0, float64(len(folds))
	for _, v := range folds {
		mean += v / n
	}
	square := 0.0
	for _, v := range folds {
		square += (v - mean) * (v - mean)
	}
	s := Score{Value: pooled}
	if n > 1 {
		s.Spread = math.Sqrt(square / (n - 1) / n)
	}
	return s
}

// Better reports whether a is better than b. If low is set, smaller values are better.
func Better(a, b float64, low bool) bool {
	if low {
		return a < b
	}
	return a > b
}

// OneStandardError applies the one-standard-error rule (L. Breiman et al.: Classification and
// regression trees, 1984, 3.4.3) along the best point's path. It returns the first point of the
// path, and so the most regularised, whose value is within the best point's standard error of the
// best value. path lists the indices of that path's points, with C ascending.
func OneStandardError(scores []Score, best int, path []int, low bool) int {
	limit := scores[best].Value - scores[best].Spread
	if low {
		limit = scores[best].Value + scores[best].Spread
	}
	for _, i := range path {
		if !Better(limit, scores[i].Value, low) {
			return i
		}
	}
	return best
}
