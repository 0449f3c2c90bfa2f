// Package predict implements the verb predict: it labels instances with a model. It reads them from
// a file, a stream or an ingested data set, in the same way as the model's training data, scores
// them in input order, and converts scores to labels by a cut-off.
//
// The same model and instances give the same labels, for any number of threads and any way of
// reading. Errors that the user can correct are fs.InputErrors or carry an exit status. They name
// options as package option does.
package predict

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	textlines "taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Options configure a prediction.
type Options struct {
	// Model is the folder of the model.
	Model string
	Input Input
	// Out is a file, or - for Stdout, where labels are flushed whenever the input pauses.
	Out string
	// Stdout is used if Out is -.
	Stdout io.Writer
	// Top is the largest number of labels per instance. Zero means as many as the cut-off gives.
	Top int
	// Cutoff converts scores to labels. The zero value is the model's cut-off or, with Top, the
	// best Top classes.
	Cutoff Cutoff
	// Scores writes labels as label:score.
	Scores bool
	// Format is one of Formats. If it is empty, it is lines.
	Format string

	// Predictive makes the prediction use the scores of the predictive distribution.
	Predictive bool

	// MinProbability predicts the deepest classes of the hierarchy that have at least this
	// probability. Zero disables it.
	MinProbability float64
}

// Report summarises a prediction, as `taxon predict --json` prints it.
type Report struct {
	Out       string `json:"out"`
	Instances int64  `json:"instances"`
	// Labels is the number of labels written.
	Labels int64 `json:"labels"`
	// Abstained counts the instances without a label because of MinProbability. It is nil without
	// it.
	Abstained *int64  `json:"abstained,omitempty"`
	Seconds   float64 `json:"seconds"`
}

// Run writes one line per instance, which lists its labels, best first, separated by commas.
func Run(ctx context.Context, o Options, ui progress.Reporter) (*Report, error) {
	m, err := model.Open(o.Model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := RefuseOverwrite("predict", "out", o.Out, o.Input.Path, o.Model); err != nil {
		return nil, err
	}
	l := &labels{names: lineNames(m), scores: o.Scores, most: math.MaxInt}
	if o.Top > 0 {
		l.most = o.Top
		if o.Cutoff.IsDefault() {
			o.Cutoff = Best(o.Top)
		}
	}
	ranked := 1
	if o.MinProbability > 0 {
		if o.Top == 0 && !o.Cutoff.IsDefault() {
			return nil, option.Errorf("predict: ‹min-probability› and ‹cutoff› exclude each other: both say which " +
				"classes an instance gets")
		}
		if l.sure, err = NewSure(m); err != nil {
			return nil, err
		}
		if l.sure.joint && o.Top > 1 {
			return nil, option.Errorf("predict: ‹min-probability› and ‹top=%d› exclude each other: %s gives an instance one "+
				"label, which is all that ‹min-probability› answers with", o.Top, o.Model)
		}
		l.least, ranked, o.Cutoff = o.MinProbability, m.Terminals(), Best(1)
	}
	if l.rule, err = o.Cutoff.Rule(m, ranked); err != nil {
		return nil, err
	}
	if l.lines = o.Format == "" || o.Format == "lines"; !l.lines {
		l.places = o.Top
		switch {
		case o.Top > 0:
		case l.sure != nil && l.sure.joint:
			l.places = 1
		case l.sure != nil && o.Format == "jsonl":
		case l.rule.kind == cutArgmax:
			l.places = 1
		case l.rule.kind == cutRank:
			l.places = l.rule.rank
		case o.Format != "jsonl":
			return nil, option.Errorf("predict: a table has a fixed number of columns, and the rule of %s gives any number of "+
				"labels: add ‹top=K›, or use ‹format=jsonl›", o.Model)
		}
		l.names, l.paths = make([]string, m.Tree.Len()), Paths(m)
		for n := range l.names {
			l.names[n] = m.NodeName(n)
		}
	}
	if l.sure != nil {
		l.names, l.paths = l.sure.Names, l.sure.Paths
		if l.lines {
			l.names = make([]string, len(l.sure.Names))
			for n, name := range l.sure.Names {
				l.names[n] = string(textlines.AppendName(nil, name))
			}
		}
	}
	if o.Predictive {
		if err := l.rule.Predictive("predict", m); err != nil {
			return nil, err
		}
	}
	p, err := scoring.New(m, l.rule.Options)
	if err != nil {
		return nil, err
	}
	o.Input.Live, o.Input.Rows = o.Out == fs.Stdin && o.Format != "parquet", true
	rows, err := Open(ctx, m, o.Input, ui)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	began := time.Now()
	if err := fs.WriteOut(o.Out, o.Stdout, func(out *bufio.Writer) error {
		if !l.lines {
			if l.to, err = newAnswers(o.Format, out, l.places); err != nil {
				return err
			}
		}
		err := Score(ctx, "predict", p, rows, o.Input.Threads, ui, func(b *scoring.Batch, r *scoring.Result) error {
			if err := l.write(out, b, r); err != nil || !o.Input.Live {
				return err
			}
			if l.to != nil {
				if err := l.to.flush(); err != nil {
					return err
				}
			}
			return out.Flush() // the next batch may arrive much later
		})
		if err == nil && l.to != nil {
			err = l.to.close()
		}
		return err
	}); err != nil {
		return nil, err
	}
	for _, w := range rows.Warnings() {
		ui.Warn("%s", w)
	}
	r := &Report{Out: o.Out, Instances: l.rows, Labels: l.written, Seconds: time.Since(began).Seconds()}
	if l.sure != nil {
		r.Abstained = &l.abstained
	}
	return r, nil
}

// RefuseOverwrite returns an error if an output, given by an option of verb, would overwrite the
// verb's input: the data file, unless it is empty, or anything in the model's folder.
func RefuseOverwrite(verb, flag, out, data, modelDir string) error {
	switch {
	case out == fs.Stdin:
		return nil
	case data != "" && data != fs.Stdin && fs.Overwrites(out, data):
		return option.Errorf("%s: ‹%s=%s› would overwrite ‹data=%s›: choose another ‹%[2]s›", verb, flag, out, data)
	case fs.Overwrites(out, modelDir):
		return option.Errorf("%s: ‹%s=%s› lies in the model's folder %s: choose another ‹%[2]s›", verb, flag, out, modelDir)
	}
	return nil
}

// lineNames returns the nodes' names as they are written in lines.
func lineNames(m *model.Model) []string {
	names := make([]string, m.Tree.Len())
	for n := range names {
		names[n] = m.LineName(n)
	}
	return names
}

// labels writes a line or a row per instance.
type labels struct {
	// names maps a node to its label as it is written in lines.
	names  []string
	scores bool
	// most is the largest number of labels per instance.
	most          int
	rule          *Rule
	line          []byte
	rows, written int64

	lines bool
	// to is nil for lines.
	to answers
	// places is the number of labels for which a row has room.
	places int
	// paths maps a node to its path.
	paths  []string
	answer answer

	// sure is nil if the rule decides. Otherwise sets hold its places.
	sure      *Sure
	least     float64
	abstained int64
}

// shown returns the number that is written beside a label.
func (l *labels) shown(r *scoring.Result, i int, label scoring.Scored) float64 {
	if l.sure != nil {
		return label.Score
	}
	return r.Shown(i, label)
}

func (l *labels) write(w io.Writer, b *scoring.Batch, r *scoring.Result) error {
	broken := b.Broken
	for i := range b.Rows() {
		var set []scoring.Scored
		if len(broken) > 0 && broken[0] == i {
			broken = broken[1:]
		} else if l.sure != nil {
			l.sure.Take(r, i)
			if set = l.sure.Of(l.least); len(set) == 0 {
				l.abstained++
			}
		} else {
			set = l.rule.Of(r, i)
		}
		set = set[:min(len(set), l.most)]
		l.rows++
		l.written += int64(len(set))
		if err := l.one(w, b, r, i, set); err != nil {
			return fmt.Errorf("write labels: %w", err)
		}
	}
	return nil
}

// one writes instance i of a batch.
func (l *labels) one(w io.Writer, b *scoring.Batch, r *scoring.Result, i int, set []scoring.Scored) error {
	if l.to != nil {
		l.answer.Row, l.answer.ID, l.answer.Labels = l.rows, nil, l.answer.Labels[:0]
		if i < len(b.IDs) && b.IDs[i] != "" {
			l.answer.ID = &b.IDs[i]
		}
		for _, s := range set {
			l.answer.Labels = append(l.answer.Labels, named{l.names[s.Node], l.shown(r, i, s), l.paths[s.Node]})
		}
		return l.to.write(&l.answer)
	}
	l.line = l.line[:0]
	for k, s := range set {
		if k > 0 {
			l.line = append(l.line, ',')
		}
		l.line = append(l.line, l.names[s.Node]...)
		if l.scores {
			l.line = strconv.AppendFloat(append(l.line, ':'), l.shown(r, i, s), 'g', -1, 64)
		}
	}
	_, err := w.Write(append(l.line, '\n'))
	return err
}
