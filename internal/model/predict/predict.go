// Package predict does the work of the verb predict: it labels instances with a model. It reads
// them from a file, a stream or an ingested data set, in the way in which the model's training data
// were read. It scores them in input order, and turns scores into labels by a cut-off.
//
// The same model and instances give the same labels, for any number of threads and any way of
// reading. Errors that the user can fix are fs.InputError or carry an exit status (package exit).
// They speak in terms of `taxon predict`'s flags.
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

// Options say what is predicted, and where the result goes.
type Options struct {
	Model string // a folder
	Input Input
	// a file, or - for Stdout, where labels are flushed whenever the input pauses
	Out    string
	Stdout io.Writer // only for Out -
	// most labels of an instance; 0: as many as the cut-off gives
	Top    int
	Cutoff Cutoff // the zero value: the model's, or the Top best
	Scores bool   // label:score
	Format string // one of Formats; "": lines

	Predictive bool // scores are those of the predictive distribution

	// MinProbability: predict the deepest classes of the hierarchy with at least this
	// probability; 0: off.
	MinProbability float64
}

// Report sums up a prediction: `taxon predict --json`.
type Report struct {
	Out       string  `json:"out"`
	Instances int64   `json:"instances"`
	Labels    int64   `json:"labels"`              // written
	Abstained *int64  `json:"abstained,omitempty"` // instances without a label because of MinProbability
	Seconds   float64 `json:"seconds"`
}

// Run writes one line an instance: its labels, best first, separated by commas.
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
			return out.Flush() // the next batch may come much later
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

// RefuseOverwrite refuses an output, given by a flag of verb, that would overwrite the verb's
// input: the data file (empty: none) or anything in the model's folder.
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

// lineNames are the nodes' names as written in lines.
func lineNames(m *model.Model) []string {
	names := make([]string, m.Tree.Len())
	for n := range names {
		names[n] = m.LineName(n)
	}
	return names
}

// labels writes a line or a row an instance.
type labels struct {
	names         []string // node -> label, as written in lines
	scores        bool
	most          int // most labels of an instance
	rule          *Rule
	line          []byte
	rows, written int64

	lines  bool
	to     answers  // nil: lines
	places int      // labels that a row has room for
	paths  []string // node -> path
	answer answer

	sure      *Sure // nil: the rule decides; else sets hold its places
	least     float64
	abstained int64
}

// shown is the number that is written beside a label.
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
