package tune

import (
	"math"
	"strconv"
	"strings"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/scoring"
)

// logLoss is a sum of log-losses and the number of its terms, computed as eval does. If every row
// of the data has one label, there is one term per row, and the row's probabilities are normalised.
// Otherwise there is one term per row and class.
type logLoss struct{ sum, of float64 }

// add adds the terms of m.
func (l *logLoss) add(m logLoss) { l.sum, l.of = l.sum+m.sum, l.of+m.of }

// mean returns the log-loss. It is 0 if there are no terms.
func (l *logLoss) mean() float64 { return l.sum / max(l.of, 1) }

// leastProbability is the probability at which terms are clipped, as in eval.
const leastProbability = 1e-15

// lossOf returns the loss of a row, given its scores for all terminals.
func (m *meter) lossOf(trained *model.Model, row uint32, scores []scoring.Scored) (l logLoss) {
	most := math.Inf(-1)
	for _, s := range scores {
		most = max(most, s.Score)
	}
	norm := 0.0
	if trained.Form.Link == form.Softmax {
		for _, s := range scores {
			norm += math.Exp(s.Score - most)
		}
	}
	truth := map[int32]bool{}
	for _, label := range m.whole.Set.LabelsOf(row) {
		truth[int32(label)] = true
	}
	all, own, absent := 0.0, 0.0, len(truth)
	for _, s := range scores {
		p := 1 / (1 + math.Exp(-s.Score))
		if norm > 0 {
			p = math.Exp(s.Score-most) / norm
		}
		right := truth[trained.Tree.Label[s.Node]]
		all += p
		if right {
			own += p
			absent--
		} else {
			p = 1 - p
		}
		l.sum -= math.Log(max(p, leastProbability))
		l.of++
	}
	l.sum -= float64(float64(absent) * math.Log(leastProbability))
	l.of += float64(absent)
	if m.whole.Spec.GetData().GetFirstNotOne() == 0 {
		return logLoss{-math.Log(max(own/max(all, math.SmallestNonzeroFloat64), leastProbability)), 1}
	}
	return l
}

// jackknifeLosses is jackknife with the log-loss as the goal.
func (m *meter) jackknifeLosses(p Point, from, to int, group []int) (*Jackknife, error) {
	var all [1 + Groups]logLoss
	for f := from; f < to; f++ {
		_, rows := m.folds.split(f)
		err := m.record.losses(p, f, func(i int, l logLoss) {
			for g := range all {
				if g != 1+group[rows[i]] {
					all[g].add(l)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	j := &Jackknife{}
	for g := range all {
		j[g] = all[g].mean()
	}
	return j, nil
}

// losses reads the losses that writePredictions wrote, row by row.
func (r record) losses(p Point, fold int, each func(row int, l logLoss)) error {
	path := r.file(p, fold, ".pred")
	data, err := fs.ReadFileOn(r.disk, path)
	if err != nil {
		return fs.Explain(path, err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		parts := strings.Split(line, "\t")
		var l logLoss
		if len(parts) == 4 {
			l.sum, _ = strconv.ParseFloat(parts[2], 64)
			l.of, _ = strconv.ParseFloat(parts[3], 64)
		}
		if l.of == 0 {
			return fs.Inputf(path, int64(i)+1, "is damaged: use ‹force› to search anew")
		}
		each(i, l)
	}
	return nil
}
