package evaluate

import (
	"context"
	"errors"
	"io"
	"strings"

	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/model/predict"
	"taxon/internal/model/scoring"
)

// ids holds a list of label ids for each instance, in one slice.
type ids struct {
	all []int32
	end []int
	// broken lists the rows that were skipped, as line numbers of a file of predictions that start
	// at 0.
	broken []int
}

// lines returns the number of lines of a file of predictions.
func (l *ids) lines() int { return len(l.end) + len(l.broken) }

func (l *ids) add(row []int32) {
	l.all = append(l.all, row...)
	l.end = append(l.end, len(l.all))
}

func (l *ids) len() int { return len(l.end) }

// row returns the ids of instance i. It is empty for an instance that was not added.
func (l *ids) row(i int) []int32 {
	if i >= len(l.end) {
		return nil
	}
	first := 0
	if i > 0 {
		first = l.end[i-1]
	}
	return l.all[first:l.end[i]]
}

// outputs holds the predictions of a model or a file for all instances.
type outputs struct{ pred, ranked ids }

func (o *outputs) row(i int) measure.Output {
	return measure.Output{Predicted: o.pred.row(i), Ranked: o.ranked.row(i)}
}

// numberer maps label names to ids, as an accumulator does.
type numberer func(dst []int32, names []string) []int32

// probabilities receives an instance's true labels, and the classes with their probabilities, as
// Accumulator.AddProbabilities does.
type probabilities func(truth, classes []int32, p []float64)

// eachOfModel predicts the data with m. It calls each with every instance's number, true labels and
// predictions. If m gives probabilities and probable is not nil, it also calls probable. The slices
// are valid only during the call.
func (e *evaluation) eachOfModel(ctx context.Context, what string, m *model.Model, number numberer,
	each func(i int, truth []int32, out measure.Output) error, probable probabilities) error {
	places := measure.Places(e.o.At)
	ranked := places
	if !m.HasProbabilities() {
		probable = nil
	}
	if probable != nil {
		places = m.Terminals()
	}
	rule, err := e.o.Cutoff.Rule(m, places)
	if err != nil {
		return err
	}
	if e.o.Predictive && m == e.first {
		if err := rule.Predictive("eval", m); err != nil {
			return err
		}
	}
	predictor, err := scoring.New(m, rule.Options)
	if err != nil {
		return err
	}
	o := e.o.Data
	o.Labels = true
	rows, err := predict.Open(ctx, m, o, e.ui)
	if err != nil {
		return err
	}
	defer rows.Close()
	idOf := number(nil, m.Tree.Name) // by node
	var truth, classes []int32
	var p []float64
	var out measure.Output
	var covered *coverage
	if probable != nil && (e.o.Coverage || e.o.Everything) && m == e.first {
		if covered, err = newCoverage(m); err != nil {
			return err
		}
	}
	err = predict.Score(ctx, what, predictor, rows, o.Threads, e.ui, func(b *scoring.Batch, r *scoring.Result) error {
		for i := range b.Rows() {
			labels := b.RowLabels(i)
			for _, name := range labels {
				e.truth[name] = true
			}
			truth = number(truth[:0], labels)
			out.Predicted = appendIDs(out.Predicted[:0], rule.Of(r, i), idOf)
			best := r.Best(i)
			out.Ranked = appendIDs(out.Ranked[:0], best[:min(ranked, len(best))], idOf)
			if err := each(int(b.First)+i, truth, out); err != nil {
				return err
			}
			if probable != nil {
				classes, p = appendIDs(classes[:0], best, idOf), p[:0]
				for _, s := range best {
					p = append(p, r.Shown(i, s))
				}
				probable(truth, classes, p)
			}
			if covered != nil {
				covered.add(r, i, labels)
			}
		}
		return nil
	})
	if err == nil && covered != nil {
		e.covered = covered.table()
	}
	if err == nil {
		e.warn(rows.Warnings())
	}
	return err
}

// warn shows each warning once, because the same data may be read several times.
func (e *evaluation) warn(warnings []string) {
	for _, w := range warnings {
		if !e.warned[w] {
			e.warned[w] = true
			e.ui.Warn("%s", w)
		}
	}
}

func appendIDs(dst []int32, terminals []scoring.Scored, idOf []int32) []int32 {
	for _, s := range terminals {
		dst = append(dst, idOf[s.Node])
	}
	return dst
}

// readTruth reads the true labels of all instances.
func (e *evaluation) readTruth(ctx context.Context, number numberer) (truth ids, err error) {
	o := e.o.Data
	if o.Path != fs.Stdin && dataset.LooksIngested(o.Path) {
		return e.setTruth(o.Path, number)
	}
	zero := o.ZeroBased
	if !o.ZeroGiven && e.first != nil {
		zero = e.first.Data.ZeroBased
	}
	columns, use := o.Table, table.Use{Labels: true, KeepBroken: true}
	for _, m := range []*model.Model{e.second, e.first} {
		if m != nil {
			columns, use.Schema = columns.Over(m.Data.Table), m.Data.Table
		}
	}
	r, err := dataset.OpenReader(ctx, e.o.Data.Files, o.Path, dataset.ReaderOptions{Text: o.Text, ZeroBased: zero,
		Table: columns, Use: use})
	if err != nil {
		return truth, err
	}
	defer r.Close()
	line := e.ui.StartBytes("eval: labels", max(0, r.Size()))
	defer line.Done()
	names := predict.Names{}
	defer func() {
		for name := range names {
			e.known[name], e.truth[name] = true, true
		}
	}()
	var row []int32
	var labels []string
	for {
		x, err := r.Read()
		if errors.Is(err, io.EOF) {
			e.warn(predict.PassedOver(r))
			return truth, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return truth, err
		}
		if x.Broken {
			truth.broken = append(truth.broken, truth.lines())
			continue
		}
		labels = names.Append(labels[:0], x.Labels)
		row = number(row[:0], labels)
		truth.add(row)
		line.Set(r.BytesRead())
	}
}

func (e *evaluation) setTruth(path string, number numberer) (truth ids, err error) {
	set, err := dataset.Open(path)
	if err != nil {
		return truth, err
	}
	defer set.Close()
	names := number(nil, set.Labels)
	for _, name := range set.Labels {
		e.known[name], e.truth[name] = true, true
	}
	var row []int32
	for i := range set.Documents() {
		row = row[:0]
		for _, l := range set.LabelIndex[set.LabelBegin[i]:set.LabelBegin[i+1]] {
			row = append(row, names[l])
		}
		truth.add(row)
	}
	return truth, nil
}

// readOutputs reads a file of predictions and, unless rank is empty, one of rankings. The lines of
// broken rows are left out.
func (e *evaluation) readOutputs(ctx context.Context, pred, rank string, truth ids,
	number numberer) (out outputs, err error) {
	if out.pred, err = e.readPredictions(ctx, pred, truth, number); err != nil || rank == "" {
		return out, err
	}
	out.ranked, err = e.readPredictions(ctx, rank, truth, number)
	return out, err
}

func (e *evaluation) readPredictions(ctx context.Context, path string, truth ids,
	number numberer) (list ids, err error) {
	f, err := fs.Open(ctx, e.o.Data.Files, path)
	if err != nil {
		return list, err
	}
	defer f.Close()
	names := map[string]bool{}
	e.files = append(e.files, predicted{path, names})
	r := measure.NewPredReader(f, f.Name(), truth.lines(), func(label string) bool { return e.known[label] })
	var row []int32
	for line, broken := 0, truth.broken; ; line++ {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return list, err
		}
		if len(broken) > 0 && broken[0] == line {
			broken = broken[1:]
			continue
		}
		for _, name := range p.Labels {
			if !names[name] {
				names[strings.Clone(name)] = true
			}
		}
		row = number(row[:0], p.Labels)
		list.add(row)
	}
}
