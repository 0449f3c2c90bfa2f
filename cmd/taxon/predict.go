package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/model"
)

// predictOptions are the flags of predict.
type predictOptions struct {
	model  string
	rows   rowOptions
	out    string
	top    int // 0: as many as the rule gives
	cutoff cutoff
	scores bool
}

func newPredictCmd(a *app) *cobra.Command {
	var o predictOptions
	cmd := &cobra.Command{
		Use:     "predict --model DIR --data FILE --out FILE",
		GroupID: groupModel,
		Short:   "label instances with a model",
		Long: "Scores every class exactly and writes a line an instance, in input order: its labels, best first, separated by commas. A line of the input is an instance unless it is empty or a comment; one with a blank or tab alone has no features. " +
			"A model of single-label data gives the best class; one of multi-label data all classes above a threshold that it predicts for each instance, or the best one " +
			"if there is none; --top K gives the K best, --cutoff sets another rule, and both together the K best of the classes by that rule. Instances are read as a stream, and those read are labelled when the input pauses; labels in the input are ignored.",
		Example: "taxon predict --model model --data test.svm.xz --out labels.txt\n" +
			"printf '\\tthe small dog barked\\n' | taxon predict --model wordnet --data - --text --top 5 --scores",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.rows.zeroSet = cmd.Flags().Changed("zero-based")
			return runPredict(cmd, a, o)
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.model, "model", "", "the `DIR` of a model")
		rowFlags(f, &o.rows)
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.out, "out", fs.Stdin, "write to `FILE`, or - for standard output")
		intFlag(f, &o.top, "top", 0, 0, math.MaxInt32, "give the `K` best classes of each instance, 0 for the labels that the rule gives")
		cutoffFlag(f, &o.cutoff)
		f.BoolVar(&o.scores, "scores", false, "write label:score, a probability where the model gives those")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.rows.threads) })
	require(cmd, "model", "data")
	return cmd
}

// rowFlags are the flags that say how instances are read for a model.
func rowFlags(f *pflag.FlagSet, o *rowOptions) {
	f.StringVar(&o.path, "data", "", "instances: a `FILE`, a folder made by ingest, or - for standard input")
	f.BoolVar(&o.text, "text", false, "lines are [LABEL]<TAB>text")
	f.BoolVar(&o.zeroBased, "zero-based", false, "feature indices count from 0 (default: as in the training data)")
}

func threadsFlag(f *pflag.FlagSet, threads *int) {
	intFlag(f, threads, "threads", 0, 0, math.MaxInt16, "threads to use, 0 for all cores; `N` changes no result")
}

// predictReport is `taxon predict --json`.
type predictReport struct {
	Out       string  `json:"out"`
	Instances int64   `json:"instances"`
	Labels    int64   `json:"labels"` // written
	Seconds   float64 `json:"seconds"`
}

func runPredict(cmd *cobra.Command, a *app, o predictOptions) error {
	if o.out == fs.Stdin && a.json {
		return usagef("predict: --json prints to standard output: name a file for the labels with --out")
	}
	m, err := openModel(o.model)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := checkOut("predict", o.out, o.rows.path, o.model); err != nil {
		return err
	}
	rule, err := o.rule(m)
	if err != nil {
		return err
	}
	w := &labelWriter{names: m.Tree.Name, scores: o.scores, most: math.MaxInt, rule: rule}
	if o.top > 0 {
		w.most = o.top
	}
	p, err := m.NewPredictor(rule.options)
	if err != nil {
		return err
	}
	o.rows.live = o.out == fs.Stdin
	rows, err := a.openRows(cmd.Context(), m, o.rows)
	if err != nil {
		return err
	}
	defer rows.Close()
	began := time.Now()
	if err := a.writeOut(o.out, func(out io.Writer) error {
		w.w = out
		buf, ok := out.(*bufio.Writer)
		return a.score(cmd.Context(), "predict", p, rows, o.rows.threads, func(b *model.Batch, r *model.Result) error {
			if err := w.write(b, r); err != nil || !ok || !o.rows.live {
				return err
			}
			return buf.Flush() // the next batch may come much later
		})
	}); err != nil {
		return err
	}
	for _, w := range rows.warnings() {
		a.ui.Warn("%s", w)
	}
	r := predictReport{Out: o.out, Instances: w.rows, Labels: w.labels, Seconds: time.Since(began).Seconds()}
	if a.json {
		return a.printJSON(r)
	}
	a.ui.Note("%s labelled in %s", counted(r.Instances, "instance", "instances"), formatSeconds(r.Seconds))
	return nil
}

// rule is how scores become labels.
func (o *predictOptions) rule(m *model.Model) (*labelRule, error) {
	c := o.cutoff
	if c.kind == cutDefault && o.top > 0 {
		c = cutoff{kind: cutRank, rank: o.top}
	}
	return c.rule(m, 1)
}

// writeOut gives write a buffered writer for path, or for standard output if it is "-"; a
// file appears under its name when it is whole.
func (a *app) writeOut(path string, write func(io.Writer) error) (err error) {
	if path == fs.Stdin {
		buf := bufio.NewWriterSize(a.stdout, 1<<16)
		if err := write(buf); err != nil {
			buf.Flush()
			return err
		}
		return buf.Flush()
	}
	undo, err := fs.MakeParents(path)
	if err != nil {
		return fs.Explain(path, err)
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	f, err := fs.CreateFile(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	buf := bufio.NewWriterSize(f, 1<<20)
	if err := write(buf); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Commit()
}

// labelWriter writes a line an instance.
type labelWriter struct {
	w            io.Writer
	names        []string // node -> label
	scores       bool
	most         int // labels of an instance
	rule         *labelRule
	line         []byte
	rows, labels int64
}

func (l *labelWriter) write(b *model.Batch, r *model.Result) error {
	for i := range b.Rows() {
		l.line = l.line[:0]
		for k, s := range l.rule.of(r, i) {
			if k == l.most {
				break
			}
			if k > 0 {
				l.line = append(l.line, ',')
			}
			l.line = append(l.line, l.names[s.Node]...)
			if l.scores {
				l.line = strconv.AppendFloat(append(l.line, ':'), r.Shown(i, s.Score), 'g', -1, 64)
			}
			l.labels++
		}
		l.rows++
		if _, err := l.w.Write(append(l.line, '\n')); err != nil {
			return fmt.Errorf("write labels: %w", err)
		}
	}
	return nil
}
