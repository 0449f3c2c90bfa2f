package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/labelset"
	"taxon/internal/model"
	"taxon/internal/train"
	"taxon/internal/tune"
	taxonv1 "taxon/proto/taxon/v1"
)

// cutParts are the parts of a fold's held-out rows that cut-offs are fitted on and tried on
// in turn.
const cutParts = 5

// shiftDepth is how many of a row's classes, best first, a shift may bring forward.
const shiftDepth = 64

// measure predicts the rows left out, keeps the predictions and measures them, for each
// result's point.
func (s *search) measure(ctx context.Context, t *train.Training, st *taxonv1.JobStatus, d *foldData, results []*foldResult) error {
	dir := s.work.Join(results[0].Name() + fmt.Sprintf("-%d", d.fold))
	defer os.RemoveAll(dir)
	if _, err := t.WriteModel(ctx, dir, s.engine, st, nil); err != nil {
		return err
	}
	m, err := model.Open(dir)
	if err != nil {
		return err
	}
	defer m.Close()
	rows, err := s.rank(ctx, m, d)
	if err != nil {
		return err
	}
	for _, r := range results {
		if err := s.predict(m, d, r, rankedBy(rows, t.PriorShift(r.Shift))); err != nil {
			return err
		}
		acc, err := eval.NewAccumulator(s.opts)
		if err != nil {
			return err
		}
		if err := s.replay(ctx, r.Point, d.fold, acc, func(_ uint32, truth, predicted, ranked []int32) { acc.Add(truth, predicted, ranked) }); err != nil {
			return err
		}
		measures := acc.Result()
		r.Measures = &measures
	}
	return nil
}

// rank gives the best classes of each row left out.
func (s *search) rank(ctx context.Context, m *model.Model, d *foldData) ([][]model.Scored, error) {
	depth := min(max(rankedPlaces, train.ProfileDepth(m, s.whole.Set)), m.Terminals())
	if len(s.o.shifts) > 1 || s.o.shifts[0] != 0 {
		depth = min(max(depth, shiftDepth), m.Terminals())
	}
	rows := make([][]model.Scored, len(d.held))
	return rows, train.Rank(ctx, m, s.whole.Set, d.held, depth, 1, func(i int, best []model.Scored) error {
		rows[i] = slices.Clone(best)
		return nil
	})
}

// rankedBy is the ranking with shifted scores; nil: with none.
func rankedBy(rows [][]model.Scored, shift []float64) [][]model.Scored {
	if shift == nil {
		return rows
	}
	out := make([][]model.Scored, len(rows))
	for i, best := range rows {
		out[i] = slices.Clone(best)
		for k := range out[i] {
			out[i][k].Score += shift[out[i][k].Node]
		}
		slices.SortStableFunc(out[i], func(a, b model.Scored) int { return cmp.Compare(b.Score, a.Score) })
	}
	return out
}

// predict writes a line for each row left out: its labels, a tab, the best classes. Labels
// are cut from the scores as train's model would: by argmax, or for multi-label data by the
// instance-based cut-off. That is fitted on four fifths of the rows left out and applied to
// the others, five times over, so neither the weights nor the cut-off of a row know its
// labels, and no second training is needed.
func (s *search) predict(m *model.Model, d *foldData, r *foldResult, rows [][]model.Scored) error {
	leading, err := s.cut(m, d, rows)
	if err != nil {
		return err
	}
	path := s.file(r.Point, d.fold, ".pred")
	file, err := fs.CreateFile(path)
	if err != nil {
		return err
	}
	defer file.Abort()
	w := bufio.NewWriter(file)
	for i, best := range rows {
		writeNames(w, m, best[:leading[i]])
		w.WriteByte('\t')
		writeNames(w, m, best[:min(rankedPlaces, len(best))])
		w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		return fs.Explain(path, err)
	}
	return file.Commit()
}

// cut gives the number of leading classes that each row bears.
func (s *search) cut(m *model.Model, d *foldData, rows [][]model.Scored) ([]int, error) {
	leading := make([]int, len(rows))
	if !s.whole.Meta().Data.MultiLabel() || len(rows) < train.LeastHeld {
		for i, best := range rows {
			leading[i] = min(1, len(best))
			for s.whole.Meta().Data.MultiLabel() && leading[i] < len(best) && best[leading[i]].Score > 0 {
				leading[i]++
			}
		}
		return leading, nil
	}
	p, add, err := train.NewProfiles(m, s.whole.Set)
	if err != nil {
		return nil, err
	}
	for i, best := range rows {
		if err := add(d.held[i], best); err != nil {
			return nil, err
		}
	}
	return labelset.CrossFit(p, cutParts)
}

// truth appends a row's labels; class i of the class set has id i.
func (s *search) truth(dst []int32, row uint32) []int32 {
	set := s.whole.Set
	for _, l := range set.LabelIndex[set.LabelBegin[row]:set.LabelBegin[row+1]] {
		dst = append(dst, int32(l))
	}
	return dst
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
func (s *search) replay(ctx context.Context, p tune.Point, f int, ids *eval.Accumulator, each func(row uint32, truth, predicted, ranked []int32)) error {
	_, held := tune.Split(s.folds, f)
	path := s.file(p, f, ".pred")
	data, err := fs.ReadFile(ctx, path)
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
