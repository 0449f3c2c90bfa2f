package scoring

import (
	"fmt"
	"math"
	"slices"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/calibration"
	"taxon/internal/model/form"
	"taxon/internal/model/shard"
)

// levelBytes bounds the score levels of a scorer, which take depth x rows x 8 bytes. A chain of
// thousands of nodes is scored in smaller blocks.
const levelBytes = 8 << 20

// resultBytes bounds the lists of best terminals of a batch, which would be large if thousands are
// requested per row.
const (
	resultBytes    = 64 << 20
	bytesPerScored = 16
)

// Rule is a way to convert scores into labels.
type Rule uint8

const (
	// Argmax predicts the best terminal.
	Argmax Rule = iota
	// Threshold predicts every terminal with a score above the cut-off, and the best one if there
	// is none.
	Threshold
	// TopK predicts the k best terminals.
	TopK
	// Own predicts the set that the model's predictor gives, if it gives sets.
	Own
)

// DefaultRule returns the rule for a model's kind of data.
func DefaultRule(m *model.Model) Rule {
	if m.Form.Sets() {
		return Own
	}
	if !m.Data.MultiLabel() {
		return Argmax
	}
	return Threshold
}

// Options configure a Predictor.
type Options struct {
	Rule Rule
	// Cutoff is the score above which Threshold predicts a terminal.
	Cutoff float64
	// Top is the number of best terminals to return per instance, at least 1. Fewer are returned if
	// there are fewer.
	Top int

	// RowByRow is for few rows at a time. The model is then also held by column, which takes 12
	// bytes per override, and sums are in the order of the columns, so scores differ in the last
	// bits of float64.
	RowByRow bool

	// Predictive makes the predictor use the scores of the predictive distribution. The model must
	// have variances.
	Predictive bool
}

// Predictor scores instances at every terminal, exactly: scores are x.w_n, summed in float64 over
// the stored float32 weights. Nothing is skipped or approximated.
//
// A batch of instances is converted to column form. The tree is walked once in node order, with the
// effective vector of the current path. At node n, for every override (c, v) and every instance
// with a nonzero x in column c,
//
//	s_n[instance] = s_parent(n)[instance] + sum_c x (v - w_parent(n)[c]).
//
// So a batch reads the stored weights once, in file order, whatever its size. It touches only pairs
// of an override and a nonzero in the same column: on short texts and rare classes some 2 % of rows
// x terminals x features. The memory is the mapped model, one vector, and depth x rows scores.
// Nothing is precomputed: lists of differences by feature, in float64, would take 12 bytes per
// override and a transposition when the model is opened.
type Predictor struct {
	m *model.Model
	o Options
	// bias is the value of the bias feature. It is 0 if there is none.
	bias float64
	// deep is the number of levels down to the deepest terminal.
	deep int

	// columns is nil unless the model is pruned, or rows come one by one.
	columns *columnPlan
	// newRanker makes the predictor's ranker. It is nil if the terminals' own scores rank them.
	newRanker func(*taxonomy.Tree) (Ranker, error)
	// ranked reports that there is a ranker.
	ranked bool

	// predictive is nil if scores are x.w.
	predictive form.Predictive
	// average is nil unless the model has draws.
	average *average

	// link is empty if a calibration, or nothing, converts scores.
	link string
	// calibration is nil if there is none.
	calibration *calibration.Calibration
	// scale is the factor of scores in a row's norm. It is 0 if rows have no norm.
	scale float64
	// keep is the number of terminals in a row's list: Top, or all if their sum is needed.
	keep int
}

// New returns a Predictor, which is cheap. A Predictor is safe for concurrent use.
func New(m *model.Model, o Options) (*Predictor, error) {
	if o.Top < 1 {
		return nil, fmt.Errorf("predict: top %d: must be at least 1", o.Top)
	}
	if o.Rule > Own || o.Rule == Own && !m.Form.Sets() {
		return nil, fmt.Errorf("predict: unknown rule %d", o.Rule)
	}
	if math.IsNaN(o.Cutoff) {
		return nil, fmt.Errorf("predict: cutoff %g: must be a number", o.Cutoff)
	}
	p := &Predictor{m: m, o: o, bias: float64(float32(m.Options.Bias))}
	p.o.Top = min(o.Top, m.Terminals())
	for n, leaf := range m.Tree.Leaf {
		if leaf {
			p.deep = max(p.deep, int(m.Tree.Depth[n])+1)
		}
	}
	if m.Form.Draws > 0 {
		p.average = averages(m)
	} else if m.Manifest.Pruned != nil || o.RowByRow && !o.Predictive {
		p.columns = plan(m)
	}
	p.link, p.keep = m.Form.Link, p.o.Top
	switch c := m.Calibration; {
	case c != nil && !o.Predictive:
		p.link, p.calibration = "", c
		if c.Joint {
			p.scale = c.Slope
		}
		if c.Sums() || c.Kind == calibration.Levels {
			p.keep = m.Terminals()
		}
	case p.link == form.Softmax:
		p.scale = 1
	}
	if o.Predictive {
		var err error
		if p.predictive, err = predictive(m); err != nil {
			return nil, err
		}
	}
	p.newRanker = rankers[m.Form.Predictor]
	rank, err := p.newRanker(m.Tree)
	p.ranked = rank != nil
	return p, err
}

// batchRows returns the number of rows of a batch of Stream. It is less than BatchRows if the lists
// of the best terminals would take more than resultBytes.
func (p *Predictor) batchRows() int {
	return max(1, min(BatchRows, resultBytes/bytesPerScored/p.keep))
}

// RowBytes returns a lower bound of the memory that a row's lists of terminals take in a Scorer and
// a Result, in bytes.
func (p *Predictor) RowBytes() int64 {
	lists := 3 * p.keep
	if p.o.Rule == Threshold || p.o.Rule == Own {
		lists += 3 * p.m.Tree.Len()
	}
	bytes := int64(lists) * bytesPerScored
	if c := p.calibration; c != nil && c.Kind == calibration.Levels {
		bytes += 8 * int64(p.m.Tree.Len())
	}
	return bytes
}

// Result holds the predictions for the rows of a batch.
type Result struct {
	// best has rows x top entries, best first in each row.
	best    []Scored
	top     int
	set     []Scored
	setEnds []int
	link    string
	// norm holds, for each row, log sum over all terminals of exp(scale score), if rows have a norm.
	norm []float64
	// total holds, for each row, the sum of all terminals' raw probabilities, if the calibration needs it.
	total []float64

	calibration *calibration.Calibration
	// down holds rows x nodes probabilities, if the calibration is by levels.
	down  []float64
	nodes int
}

// Best returns the k best terminals of row i, best first.
func (r *Result) Best(i int) []Scored { return r.best[i*r.top : (i+1)*r.top] }

// Set returns the labels of row i that the rule predicts, best first. It is never empty, except
// under Own, whose sets may also contain internal nodes.
func (r *Result) Set(i int) []Scored {
	first := 0
	if i > 0 {
		first = r.setEnds[i-1]
	}
	return r.set[first:r.setEnds[i]]
}

// Scorer is the working memory of one goroutine that predicts.
type Scorer struct {
	p      *Predictor
	cols   columnsOf
	path   *shard.Path[float32]
	levels [][]float64
	heaps  []topK
	// floor holds, by row, the score of the worst kept terminal. It is -Inf until k are kept.
	floor    []float64
	positive [][]Scored
	part     Batch
	few      few
	// sums holds, by node, the scores of one row. It is used for pruned models and rankers only.
	sums []float64
	// mass is by row. It is used with the soft-max only.
	mass  []mass
	joint []terminalScores
	// variance holds, by row, x' Psi_n x of the current terminal. It is used with Predictive only.
	variance []float64

	// way is nil unless the calibration is by levels.
	way *calibration.Way

	// rank is nil if the terminals' own scores rank them.
	rank Ranker
	// table holds, for rankers, the scores of all rows, node by node.
	table []float64
	// lead holds, by row, the first of the ranking, which is in no list.
	lead []Scored
	// own holds each row's set, if the predictor gives sets.
	own [][]Scored
}

// NewScorer returns working memory for one goroutine at a time.
func (p *Predictor) NewScorer() *Scorer {
	s := &Scorer{p: p}
	s.rank, _ = p.newRanker(p.m.Tree) // New has checked that there is no error
	if p.columns != nil {
		s.sums = make([]float64, p.m.Tree.Len())
	} else {
		s.path = shard.NewPath[float32](p.m.Columns())
	}
	return s
}

// Predict scores the batch into r, which it overwrites. It returns an error for values that are not
// finite.
func (s *Scorer) Predict(b *Batch, r *Result) error {
	if !b.finite() {
		return fmt.Errorf("predict: a feature value is not finite")
	}
	r.top = s.p.o.Top
	r.best, r.set, r.setEnds = r.best[:0], r.set[:0], r.setEnds[:0]
	r.link, r.calibration, r.norm, r.total = s.p.link, s.p.calibration, r.norm[:0], r.total[:0]
	r.down, r.nodes = r.down[:0], s.p.m.Tree.Len()
	if s.p.average != nil {
		s.scoreDraws(b)
		s.collect(b.Rows(), r)
		return nil
	}
	if s.p.columns != nil {
		s.scoreColumns(b)
		s.collect(b.Rows(), r)
		return nil
	}
	step := s.p.rowsAtATime()
	if b.Rows() <= step {
		if s.few.collect(b, len(s.p.m.Feature)) {
			s.scoreFew(b)
		} else {
			s.score(b)
		}
		s.rankRows(b.Rows())
		s.collect(b.Rows(), r)
		return nil
	}
	for first := 0; first < b.Rows(); first += step {
		last := min(first+step, b.Rows())
		s.part.Reset()
		for i := first; i < last; i++ {
			s.part.Add(b.Column[b.Begin[i]:b.Begin[i+1]], b.Value[b.Begin[i]:b.Begin[i+1]])
		}
		s.score(&s.part)
		s.rankRows(last - first)
		s.collect(last-first, r)
	}
	return nil
}

// rowsAtATime returns the number of rows scored at a time, such that the retained scores (of a
// path, or of all nodes) stay within bounds.
func (p *Predictor) rowsAtATime() int {
	if p.ranked {
		return max(1, levelBytes/8/p.m.Tree.Len())
	}
	if p.jointly() {
		return max(1, levelBytes/16/p.m.Terminals())
	}
	return max(1, levelBytes/8/max(1, p.deep))
}

// score walks the tree and offers every terminal to every row.
func (s *Scorer) score(b *Batch) {
	m, rows := s.p.m, b.Rows()
	records := m.Records()
	s.reset(rows)
	s.cols.fill(b, len(m.Feature))
	for n := range m.Tree.Len() {
		s.path.LeaveTo(m.Above(int32(n)))
		level := s.path.Depth()
		scores := s.level(level, rows)
		if level == 0 {
			clear(scores)
		} else {
			copy(scores, s.levels[level-1])
		}
		s.add(records[n], scores)
		if !m.Tree.Leaf[n] && m.Form.Weights == form.Overrides {
			s.path.Override(int32(n), records[n].Columns, records[n].Values)
		}
		s.scored(int32(n), scores)
	}
	s.path.LeaveTo(-1)
}

// add adds x.(w_n - w_parent) to every row's score. The path must be at the parent.
func (s *Scorer) add(rec shard.Record, scores []float64) {
	begin, entries, current := s.cols.begin, s.cols.entries, s.path.Current
	width := len(begin) - 1
	values := rec.Values[:len(rec.Columns)]
	for i, c := range rec.Columns {
		if int(c) >= width { // the bias, always the last column
			d := s.p.bias * (float64(values[i]) - float64(current[c]))
			for row := range scores {
				scores[row] += d
			}
			break
		}
		e := entries[begin[c]:begin[c+1]]
		if len(e) == 0 {
			continue
		}
		d := float64(values[i]) - float64(current[c])
		for _, x := range e {
			scores[x.row] += float64(d * float64(x.value))
		}
	}
}

// offer offers terminal n to every row's list.
func (s *Scorer) offer(n int32, scores []float64) {
	if s.p.scale > 0 {
		for row, score := range scores {
			s.mass[row].add(s.p.scale * score)
		}
	}
	floor := s.floor[:len(scores)]
	for row, score := range scores {
		if score > floor[row] {
			h := &s.heaps[row]
			h.offer(Scored{n, score})
			if len(h.heap) == cap(h.heap) {
				floor[row] = h.heap[0].Score
			}
		}
	}
	if s.p.o.Rule == Threshold {
		for row, score := range scores {
			if score > s.p.o.Cutoff {
				s.positive[row] = append(s.positive[row], Scored{n, score})
			}
		}
	}
}

// level returns the scores of one level of the path, and makes room for them.
func (s *Scorer) level(k, rows int) []float64 {
	for len(s.levels) <= k {
		s.levels = append(s.levels, nil)
	}
	if cap(s.levels[k]) < rows {
		s.levels[k] = make([]float64, rows)
	}
	s.levels[k] = s.levels[k][:rows]
	return s.levels[k]
}

// reset prepares the lists of a number of rows.
func (s *Scorer) reset(rows int) {
	top := s.p.keep
	if len(s.heaps) < rows {
		heap := make([]Scored, rows*top)
		s.heaps = make([]topK, rows)
		for i := range s.heaps {
			s.heaps[i].heap = heap[i*top : i*top : (i+1)*top]
		}
		s.floor, s.mass, s.lead = make([]float64, rows), make([]mass, rows), make([]Scored, rows)
		s.positive, s.own = make([][]Scored, rows), make([][]Scored, rows)
	}
	for i := range rows {
		s.heaps[i].heap = s.heaps[i].heap[:0]
		s.floor[i] = math.Inf(-1)
		s.mass[i] = mass{most: math.Inf(-1)}
		s.positive[i] = s.positive[i][:0]
	}
	if s.rank != nil && s.p.columns == nil {
		s.table = slices.Grow(s.table[:0], rows*s.p.m.Tree.Len())[:rows*s.p.m.Tree.Len()]
	}
}

// collect moves the rows' lists into r.
func (s *Scorer) collect(rows int, r *Result) {
	for i := range rows {
		best := s.heaps[i].heap
		sortScored(best)
		sortScored(s.positive[i])
		if s.rank != nil { // the first of a ranking is kept whatever the cut-off
			s.mass[i].add(s.p.scale * s.lead[i].Score)
			best = lead(s.lead[i], best)[:s.p.keep]
			s.positive[i] = lead(s.lead[i], s.positive[i])
		}
		if s.p.scale > 0 {
			r.norm = append(r.norm, s.mass[i].log())
		}
		if c := s.p.calibration; c != nil && c.Kind == calibration.Levels {
			if s.way == nil {
				s.way = calibration.NewWay(s.p.m.Tree.Parent)
			}
			first := len(r.down)
			r.down = slices.Grow(r.down, r.nodes)[:first+r.nodes]
			row := r.down[first:]
			clear(row)
			for _, t := range best {
				row[t.Node] = c.Raw(t.Score, r.norm[i])
			}
			s.way.Down(c.Powers, row)
			best = best[:s.p.o.Top]
		} else if c != nil && c.Sums() {
			total := 0.0
			for _, t := range best {
				total += c.Raw(t.Score, r.norm[i])
			}
			r.total, best = append(r.total, total), best[:s.p.o.Top]
		}
		r.best = append(r.best, best...)
		switch {
		case s.p.o.Rule == Own:
			r.set = append(r.set, s.own[i]...)
		case s.p.o.Rule == TopK:
			r.set = append(r.set, best...)
		case s.p.o.Rule == Threshold && len(s.positive[i]) > 0:
			r.set = append(r.set, s.positive[i]...)
		default:
			r.set = append(r.set, best[0])
		}
		r.setEnds = append(r.setEnds, len(r.set))
	}
}
