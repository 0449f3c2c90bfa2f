package train

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"taxon/internal/cluster/jobs"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/predict"
	"taxon/internal/model/pruning"
	"taxon/internal/model/scoring"
	"taxon/internal/model/shard"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// smallLoss is the number of points of micro-F1 that a model may lose to become small. One standard
// error is added to the measured loss before the comparison: otherwise, among many candidates, one
// that happens to measure well would be chosen.
const smallLoss = 0.1

// keep publishes the model in dir. With Options.ModelSize it publishes a smaller model instead.
func (t *Training) keep(ctx context.Context, dir string, report *model.Report) (*model.Report, error) {
	if t.o.ModelSize == 0 || fs.FolderBytes(dir) <= t.o.ModelSize {
		return report, model.Publish(dir, t.o.Out)
	}
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	s := &shrink{Training: t, whole: m}
	o, err := s.options(ctx, report.Sweeps)
	if ctx.Err() != nil {
		return nil, jobs.Interruptedf("interrupted while the model was made small: the training is done "+
			"and kept; to continue: %s", t.o.Again)
	}
	if err != nil {
		return nil, fmt.Errorf("‹model-size›: %w", err)
	}
	man, err := pruning.Write(ctx, m, t.o.Out, o, t.o.slots())
	if err != nil {
		return nil, err
	}
	return &man.Report, nil
}

// shrink searches for the way of making a model small that loses least. It measures the loss on
// held-out rows, with models that were trained without them and are pruned in the same way.
type shrink struct {
	*Training
	whole *model.Model
	held  []heldModel
	cost  model.PruneCost
	// base holds the hits of the held-out rows by the unpruned models, model by model.
	base []hits
}

// heldModel is a model that was trained without some of the rows, together with these rows.
type heldModel struct {
	*model.Model
	rows []uint32
}

// hits counts a row's labels. right is the number of labels that were predicted correctly. all is
// the number of true labels plus the number of predicted ones.
type hits struct{ right, all float64 }

// options returns the first pruning options whose loss is allowed: float16 values, or 8-bit values,
// which keep more weights in the same space. If both lose more, the model is made as small as the
// allowed loss permits, and the user is told.
func (s *shrink) options(ctx context.Context, sweeps int) (best pruning.Options, err error) {
	ways, err := s.ways(ctx)
	if err != nil {
		return best, err
	}
	done, err := s.holdOut(ctx, sweeps)
	if err != nil {
		return best, err
	}
	defer done()
	if len(s.held) == 0 {
		s.ui.Warn("too few instances to measure what a small model costs")
		best = ways[0]
		best.Cost = &model.PruneCost{Asked: s.o.ModelSize}
		return best, nil
	}
	for _, m := range s.held {
		if s.base, err = s.measure(ctx, m.Model, m.rows, s.base); err != nil {
			return best, err
		}
	}
	s.cost = model.PruneCost{MicroF1: microF1(s.base), Instances: len(s.base), HeldOut: true, Asked: s.o.ModelSize}
	line := s.ui.Start("make the model small: tried", 0)
	defer line.Done()
	tried := int64(0)
	try := func(o pruning.Options) error {
		now, err := s.pruned(ctx, o)
		if err != nil {
			return err
		}
		s.cost.Pruned, s.cost.StandardError = microF1(now), lossError(s.base, now)
		tried++
		line.Set(tried, fmt.Sprintf("threshold %.3g, %s", o.Threshold, o.Values))
		return nil
	}
	best.Cost = &s.cost
	var asked model.PruneCost
	for _, o := range ways {
		if err := try(o); err != nil || s.excess() <= 0 {
			o.Cost = best.Cost
			return o, err
		}
		asked = s.cost // of the last, which loses least
	}
	least := int64(0)
	var reached model.PruneCost
	for _, o := range ways {
		if o.Threshold, err = pruning.LargestThreshold(s.whole, func(t float64) (float64, error) {
			o.Threshold = t
			err := try(o)
			return s.excess(), err
		}); err != nil {
			return best, err
		}
		bytes, err := pruning.Bytes(ctx, s.whole, o, s.o.slots())
		if err != nil {
			return best, err
		}
		if least == 0 || bytes < least {
			least, reached, best.Threshold, best.Values = bytes, s.cost, o.Threshold, o.Values
		}
	}
	s.cost = reached
	s.ui.Warn("‹model-size=%s› would cost %s points of micro F1 on instances held out: the model takes %s, where it "+
		"costs %s; to have it smaller all the same: taxon export ‹format=taxon› ‹model=%s› ‹threshold=%.3g› ‹values=%s›",
		format.Bytes(s.o.ModelSize), asked.Lost(), format.Bytes(least), s.cost.Lost(), format.ShellWord(s.o.Out),
		ways[len(ways)-1].Threshold, ways[len(ways)-1].Values)
	return best, nil
}

// excess returns by how many points the loss of the last candidate exceeds the allowed one.
func (s *shrink) excess() float64 {
	return 100*(s.cost.MicroF1-s.cost.Pruned+s.cost.StandardError) - smallLoss
}

// ways returns the pruning options that reach the requested size, or the smallest possible one.
func (s *shrink) ways(ctx context.Context) (ways []pruning.Options, err error) {
	for _, values := range []string{shard.Halves, shard.Bytes} {
		o := pruning.Options{Values: values}
		o.Threshold, _, err = pruning.SmallestThreshold(s.whole, s.o.ModelSize, func(t float64) (int64, error) {
			return pruning.Bytes(ctx, s.whole, pruning.Options{Threshold: t, Values: values}, s.o.slots())
		})
		if err != nil {
			return nil, err
		}
		ways = append(ways, o)
	}
	return ways, nil
}

// holdOut trains without some rows. If the time allows it, each row is held out once. s.held stays
// empty if there are too few rows. The function done removes the temporary files.
func (s *shrink) holdOut(ctx context.Context, sweeps int) (done func(), err error) {
	h := &holdOut{Training: s.Training, trained: sweeps}
	if !h.plan() {
		return func() {}, nil
	}
	// This is not the folder in which cut-offs and calibrations put their single model.
	parts := filepath.Join(s.scratch, "parts")
	remove := func() {
		for _, m := range s.held {
			m.Close()
		}
		_ = fs.RemoveAll(parts)
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	for k, p := range h.parts {
		dir := filepath.Join(parts, strconv.Itoa(k))
		if err = h.train(ctx, p.rest, dir); err != nil {
			return nil, err
		}
		if c := s.whole.Cutoffs; c != nil {
			if _, err = model.AddCutoffs(dir, c, 0, 0); err != nil {
				return nil, err
			}
		}
		m, err := model.Open(dir)
		if err != nil {
			return nil, err
		}
		s.held = append(s.held, heldModel{m, p.held})
	}
	return remove, nil
}

// pruned returns the hits of the held-out models after pruning.
func (s *shrink) pruned(ctx context.Context, o pruning.Options) (all []hits, err error) {
	for _, m := range s.held {
		if all, err = s.prunedOne(ctx, m, o, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// prunedOne appends the hits of one held-out model after pruning.
func (s *shrink) prunedOne(ctx context.Context, whole heldModel, o pruning.Options, all []hits) ([]hits, error) {
	dir := filepath.Join(s.scratch, "small")
	defer fs.RemoveAll(dir)
	if _, err := pruning.Write(ctx, whole.Model, dir, o, s.o.slots()); err != nil {
		return nil, err
	}
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return s.measure(ctx, m, whole.rows, all)
}

// microF1 returns the micro-F1 of all rows together.
func microF1(rows []hits) float64 {
	right, all := 0.0, 0.0
	for _, h := range rows {
		right += h.right
		all += h.all
	}
	return 2 * right / max(all, 1)
}

// lossError returns the standard error of the difference of two micro-F1 values on the same rows,
// by the delta method: the influence of a row is (2 r - F1 a) / sum a.
func lossError(base, now []hits) float64 {
	sum := func(rows []hits) (all float64) {
		for _, h := range rows {
			all += h.all
		}
		return max(all, 1)
	}
	f, g, a, b, square := microF1(base), microF1(now), sum(base), sum(now), 0.0
	for i := range base {
		d := (2*base[i].right-f*base[i].all)/a - (2*now[i].right-g*now[i].all)/b
		square += d * d
	}
	return math.Sqrt(square)
}

// measure appends to out the hits of the labels that m predicts for rows.
func (s *shrink) measure(ctx context.Context, m *model.Model, rows []uint32, out []hits) ([]hits, error) {
	rule, err := predict.Cutoff{}.Rule(m, 1)
	if err != nil {
		return nil, err
	}
	predictor, err := scoring.New(m, rule.Options)
	if err != nil {
		return nil, err
	}
	next := 0
	fill := func(b *scoring.Batch) error {
		for ; !b.Full(); next++ {
			if next == len(rows) {
				return io.EOF
			}
			b.Add(s.Set.Matrix.Row(int(rows[next])))
		}
		return nil
	}
	err = predictor.Stream(ctx, s.o.slots(), fill, func(b *scoring.Batch, r *scoring.Result) error {
		for i := range b.Rows() {
			truth := map[string]bool{}
			for _, l := range s.Set.LabelsOf(rows[int(b.First)+i]) {
				truth[s.Set.Labels[l]] = true
			}
			predicted := rule.Of(r, i)
			h := hits{all: float64(len(truth) + len(predicted))}
			for _, p := range predicted {
				if truth[m.Tree.Name[p.Node]] {
					h.right++
				}
			}
			out = append(out, h)
		}
		return nil
	})
	return out, err
}

// prunedAlike returns an error if a finished model was pruned with other options.
func (t *Training) prunedAlike(m *model.Manifest, dir string) error {
	asked := int64(0)
	if c := m.Report.Pruned; c != nil {
		asked = c.Asked
	}
	switch small := m.Pruned == nil && t.o.ModelSize > 0 && (dir != t.o.Out || fs.FolderBytes(dir) <= t.o.ModelSize); {
	case asked != t.o.ModelSize && !small:
		return option.Errorf("%s: holds a model for which ‹model-size› was %s, not %s: choose another ‹out›, or use "+
			"‹force› to replace it", t.o.Out, sizeWord(asked), sizeWord(t.o.ModelSize))
	case asked > 0 || small:
		return nil
	}
	have := 0.0
	if m.Pruned != nil {
		have = m.Pruned.Threshold
	}
	if have != t.o.Threshold {
		return option.Errorf("%s: holds a model of threshold %g, not %g: choose another ‹out›, or use ‹force› to replace it",
			t.o.Out, have, t.o.Threshold)
	}
	return nil
}

// sizeWord returns a number of bytes as the option model-size accepts it.
func sizeWord(bytes int64) string {
	if bytes == 0 {
		return "not given"
	}
	return format.Bytes(bytes)
}
