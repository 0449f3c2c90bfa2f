package train

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/model"
	"taxon/internal/predict"
)

// smallLoss is how many points of micro-F1 a model that was to be small may lose.
const smallLoss = 0.1

// keep publishes the model in dir, or one of at most Options.ModelSize bytes in its place.
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
		return nil, exit.Interruptedf("interrupted while the model was made small: the training is done and kept; to go on: %s", t.o.Again)
	}
	if err != nil {
		return nil, fmt.Errorf("--model-size: %w", err)
	}
	man, err := m.WritePruned(ctx, t.o.Out, o, t.o.slots())
	if err != nil {
		return nil, err
	}
	return &man.Report, nil
}

// shrink finds out how a model is made small at the least cost. That is measured on rows held out: by a model
// of a training without them, which is pruned in the same way.
type shrink struct {
	*Training
	whole *model.Model
	other *model.Model // of the training without the rows held
	held  []uint32
	cost  model.PruneCost
}

// options are those of the first way that costs no more than is allowed: float16, else bytes, which take more weights into
// the same space. If both cost more, they make the model as small as the loss allows, and the user is told.
func (s *shrink) options(ctx context.Context, sweeps int) (best model.PruneOptions, err error) {
	ways, err := s.ways(ctx)
	if err != nil {
		return best, err
	}
	done, err := s.holdOut(ctx, sweeps)
	if err != nil {
		return best, err
	}
	defer done()
	s.cost = model.PruneCost{Instances: len(s.held), HeldOut: true, Asked: s.o.ModelSize}
	if s.other == nil {
		s.ui.Warn("too few instances to measure what a small model costs")
		best, s.cost = ways[0], model.PruneCost{Asked: s.o.ModelSize}
		best.Cost = &s.cost
		return best, nil
	}
	if s.cost.MicroF1, err = s.microF1(ctx, s.other); err != nil {
		return best, err
	}
	line := s.ui.Start("make the model small: tried", 0)
	defer line.Done()
	tried := int64(0)
	try := func(o model.PruneOptions) (err error) {
		s.cost.Pruned, err = s.pruned(ctx, o)
		tried++
		line.Set(tried, fmt.Sprintf("threshold %.3g, %s", o.Threshold, o.Values))
		return err
	}
	best.Cost = &s.cost
	asked := 0.0
	for _, o := range ways {
		if err := try(o); err != nil || s.lost() <= smallLoss {
			o.Cost = best.Cost
			return o, err
		}
		asked = s.lost() // of the last, which loses least
	}
	least := int64(0)
	var reached float64
	for _, o := range ways {
		if o.Threshold, err = s.other.LargestThreshold(func(t float64) (float64, error) {
			o.Threshold = t
			err := try(o)
			return s.lost() - smallLoss, err
		}); err != nil {
			return best, err
		}
		bytes, err := s.whole.PrunedBytes(ctx, o, s.o.slots())
		if err != nil {
			return best, err
		}
		if least == 0 || bytes < least {
			least, reached, best.Threshold, best.Values = bytes, s.cost.Pruned, o.Threshold, o.Values
		}
	}
	s.cost.Pruned = reached
	s.ui.Warn("--model-size %s would cost %.2g points of micro F1 on instances held out: the model takes %s, where it costs %.2g; to have it smaller all the same: taxon export --format taxon --model %s --threshold %.3g --values %s",
		human.Bytes(s.o.ModelSize), asked, human.Bytes(least), s.lost(), human.ShellWord(s.o.Out), ways[len(ways)-1].Threshold, ways[len(ways)-1].Values)
	return best, nil
}

// lost is how many points the model tried last has lost.
func (s *shrink) lost() float64 { return 100 * (s.cost.MicroF1 - s.cost.Pruned) }

// ways are the options that make the model as small as was asked for, or as they can.
func (s *shrink) ways(ctx context.Context) (ways []model.PruneOptions, err error) {
	for _, values := range []string{model.Halves, model.Bytes} {
		o := model.PruneOptions{Values: values}
		o.Threshold, _, err = s.whole.SmallestThreshold(s.o.ModelSize, func(t float64) (int64, error) {
			return s.whole.PrunedBytes(ctx, model.PruneOptions{Threshold: t, Values: values}, s.o.slots())
		})
		if err != nil {
			return nil, err
		}
		ways = append(ways, o)
	}
	return ways, nil
}

// holdOut trains without some rows; other stays nil where there are too few. done removes what it leaves.
func (s *shrink) holdOut(ctx context.Context, sweeps int) (done func(), err error) {
	h := &holdOut{Training: s.Training, trained: sweeps}
	if !h.single() {
		return func() {}, nil
	}
	dir := filepath.Join(s.scratch, "holdout")
	done = func() {
		if s.other != nil {
			s.other.Close()
		}
		_ = os.RemoveAll(dir)
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	if err = h.train(ctx, h.parts[0].rest, dir); err != nil {
		return nil, err
	}
	if c := s.whole.Cutoffs; c != nil {
		if _, err = model.AddCutoffs(dir, c, 0, 0); err != nil {
			return nil, err
		}
	}
	s.held = h.parts[0].held
	s.other, err = model.Open(dir)
	return done, err
}

// pruned is the micro-F1 of the other model, pruned.
func (s *shrink) pruned(ctx context.Context, o model.PruneOptions) (float64, error) {
	dir := filepath.Join(s.scratch, "small")
	defer os.RemoveAll(dir)
	if _, err := s.other.WritePruned(ctx, dir, o, s.o.slots()); err != nil {
		return 0, err
	}
	m, err := model.Open(dir)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	return s.microF1(ctx, m)
}

// microF1 is that of a model's labels of the rows held out.
func (s *shrink) microF1(ctx context.Context, m *model.Model) (float64, error) {
	rule, err := predict.Cutoff{}.Rule(m, 1)
	if err != nil {
		return 0, err
	}
	predictor, err := m.NewPredictor(rule.Options)
	if err != nil {
		return 0, err
	}
	next, right, all := 0, 0, 0
	fill := func(b *model.Batch) error {
		for ; !b.Full(); next++ {
			if next == len(s.held) {
				return io.EOF
			}
			b.Add(s.Set.Matrix.Row(int(s.held[next])))
		}
		return nil
	}
	err = predictor.Stream(ctx, s.o.slots(), fill, func(b *model.Batch, r *model.Result) error {
		for i := range b.Rows() {
			truth := map[string]bool{}
			for _, l := range s.Set.LabelsOf(s.held[int(b.First)+i]) {
				truth[s.Set.Labels[l]] = true
			}
			predicted := rule.Of(r, i)
			for _, p := range predicted {
				if truth[m.Tree.Name[p.Node]] {
					right++
				}
			}
			all += len(truth) + len(predicted)
		}
		return nil
	})
	return 2 * float64(right) / float64(max(all, 1)), err
}
