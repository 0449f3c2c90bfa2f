package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/labelset"
	"taxon/internal/model"
	"taxon/internal/tune"
	taxonv1 "taxon/proto/taxon/v1"
)

// cutParts are the parts of a fold's held-out rows that cut-offs are fitted on and tried on
// in turn.
const cutParts = 5

// measure predicts the rows left out, keeps the predictions and measures them.
func (s *search) measure(ctx context.Context, t *training, st *taxonv1.JobStatus, d *foldData, r *foldResult) error {
	dir := s.work.join(r.Name() + fmt.Sprintf("-%d", d.fold))
	defer os.RemoveAll(dir)
	if _, err := t.writeModel(ctx, dir, s.engine, st, nil); err != nil {
		return err
	}
	m, err := model.Open(dir)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := s.predict(ctx, m, d, r); err != nil {
		return err
	}
	acc, err := eval.NewAccumulator(s.opts)
	if err != nil {
		return err
	}
	if err := s.replay(r.Point, d.fold, acc, func(_ uint32, truth, predicted, ranked []int32) { acc.Add(truth, predicted, ranked) }); err != nil {
		return err
	}
	measures := acc.Result()
	r.Measures = &measures
	return nil
}

// predict writes a line for each row left out: its labels, a tab, the best classes. Labels
// are cut from the scores as train's model would: by argmax, or for multi-label data by the
// instance-based cut-off. That is fitted on four fifths of the rows left out and applied to
// the others, five times over, so neither the weights nor the cut-off of a row know its
// labels, and no second training is needed.
func (s *search) predict(ctx context.Context, m *model.Model, d *foldData, r *foldResult) (err error) {
	path := s.file(r.Point, d.fold, ".pred")
	file, err := fs.CreateFile(path)
	if err != nil {
		return err
	}
	defer file.Abort()
	w := bufio.NewWriter(file)
	if s.cuts(d) {
		err = s.cutSets(ctx, w, m, d)
	} else {
		err = s.stream(ctx, m, d, model.PredictOptions{Rule: m.DefaultRule(), Top: rankedPlaces}, func(_ int, set, best []model.Scored) error {
			writeLine(w, m, set, best)
			return nil
		})
	}
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fs.Explain(path, err)
	}
	return file.Commit()
}

// cuts says whether label sets are cut by a fitted cut-off: where train would fit one.
func (s *search) cuts(d *foldData) bool {
	return s.whole.meta().Data.MultiLabel() && len(d.held) >= leastHeld
}

// cutSets predicts by cross-fitted cut-offs.
func (s *search) cutSets(ctx context.Context, w *bufio.Writer, m *model.Model, d *foldData) error {
	depth := profileDepth(m, s.whole.set)
	p, err := labelset.NewProfiles(depth, len(m.Labels))
	if err != nil {
		return err
	}
	rows := make([][]model.Scored, len(d.held))
	scores, classes := make([]float64, depth), make([]int32, depth)
	err = s.stream(ctx, m, d, model.PredictOptions{Rule: model.TopK, Top: depth}, func(i int, _, best []model.Scored) error {
		for k, c := range best {
			scores[k], classes[k] = c.Score, m.Tree.Label[c.Node]
		}
		rows[i] = append([]model.Scored(nil), best...)
		return p.Add(scores, classes, s.truth(nil, d.held[i]))
	})
	if err != nil {
		return err
	}
	leading, err := labelset.CrossFit(p, cutParts)
	if err != nil {
		return err
	}
	for i, best := range rows {
		writeLine(w, m, best[:leading[i]], best[:min(rankedPlaces, len(best))])
	}
	return nil
}

// stream gives the label set and the best classes of each row left out, in order.
func (s *search) stream(ctx context.Context, m *model.Model, d *foldData, o model.PredictOptions, take func(i int, set, best []model.Scored) error) error {
	predictor, err := m.NewPredictor(o)
	if err != nil {
		return err
	}
	next := 0
	fill := func(b *model.Batch) error {
		for ; !b.Full(); next++ {
			if next == len(d.held) {
				return io.EOF
			}
			b.Add(s.whole.set.Matrix.Row(int(d.held[next])))
		}
		return nil
	}
	return predictor.Stream(ctx, 1, fill, func(b *model.Batch, out *model.Result) error {
		for i := range b.Rows() {
			if err := take(int(b.First)+i, out.Set(i), out.Best(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// truth appends a row's labels; class i of the class set has id i.
func (s *search) truth(dst []int32, row uint32) []int32 {
	set := s.whole.set
	for _, l := range set.LabelIndex[set.LabelBegin[row]:set.LabelBegin[row+1]] {
		dst = append(dst, int32(l))
	}
	return dst
}

func writeLine(w *bufio.Writer, m *model.Model, set, best []model.Scored) {
	writeNames(w, m, set)
	w.WriteByte('\t')
	writeNames(w, m, best)
	w.WriteByte('\n')
}

func writeNames(w *bufio.Writer, m *model.Model, terminals []model.Scored) {
	for i, t := range terminals {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(m.Tree.Name[t.Node]) // a label has neither comma nor blank
	}
}

// replay gives the predictions of a fold, row by row, as ids of ids' labels; the slices are
// valid until the next row.
func (s *search) replay(p tune.Point, f int, ids *eval.Accumulator, each func(row uint32, truth, predicted, ranked []int32)) error {
	_, held := tune.Split(s.folds, f)
	path := s.file(p, f, ".pred")
	data, err := os.ReadFile(path)
	if err != nil {
		return fs.Explain(path, err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if len(lines) != len(held)+1 || lines[len(held)] != "" {
		return fs.Inputf(path, 0, "is damaged: use --force to search anew")
	}
	var truth, predicted, ranked []int32
	for i, r := range held {
		truth = s.truth(truth[:0], r)
		labels, best, _ := strings.Cut(strings.TrimSuffix(lines[i], "\n"), "\t")
		predicted = ids.IDs(predicted[:0], names(labels))
		ranked = ids.IDs(ranked[:0], names(best))
		each(r, truth, predicted, ranked)
	}
	return nil
}

func names(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
