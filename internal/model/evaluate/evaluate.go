// Package evaluate implements the verb eval: it measures a model, or files of predictions, on
// labelled instances. It reads or predicts the input of package measure, for one model or file or
// for a comparison, and warns of labels that distort the measures.
//
// Errors that the user can correct are fs.InputErrors or carry an exit status. They name options as
// package option does.
package evaluate

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"slices"

	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/model/predict"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Options configure an evaluation.
type Options struct {
	// Model is the folder of a model. Either Model or Predictions is set.
	Model string
	// Predictions is a file with a line of labels per instance.
	Predictions string
	// Rankings is a file with a line of labels per instance, best first. It may be empty.
	Rankings string
	// Data has the true labels.
	Data predict.Input
	// Hierarchy is the path of a file. If it is empty, the model's hierarchy is used, if it has
	// one.
	Hierarchy string
	// Compare is a second model or file of predictions. If it is empty, nothing is compared.
	Compare string
	// Others lists further models or files to compare with. It needs Compare.
	Others []string
	// Cutoff applies to models.
	Cutoff predict.Cutoff
	// Predictive makes the evaluation use the scores of Model's predictive distribution.
	Predictive bool
	// ByLevel requests the table by level. Without a structure it is an error.
	ByLevel bool
	// BySize requests the table by class size. Without a model it is an error.
	BySize bool
	// Everything requests the tables by level and by size where they are possible.
	Everything bool
	// PerClass requests the measures of each class.
	PerClass bool
	// Coverage requests the table of predictions that back off. Without probabilities it is an
	// error.
	Coverage bool
	// Confusion is the file for the confusion counts. If it is empty, none is written.
	Confusion string
	// At lists further numbers of places for the measures of rankings: p@k, ndcg@k, psp@k, psndcg@k.
	At []int
	// Propensity has the parameters of psp@k and psndcg@k.
	Propensity measure.Propensity
	// Reliability is the file for the reliability diagram. If it is empty, none is written.
	Reliability string
}

// Check returns an error for options that contradict each other.
func (o *Options) Check() error {
	switch {
	case o.Model == "" && o.Predictions == "":
		return option.Errorf("eval: give ‹model=DIR› or ‹pred=FILE›")
	case o.Model != "" && o.Predictions != "":
		return option.Errorf("eval: ‹model› and ‹pred› exclude each other; to test one against the other use ‹compare›")
	case !o.Cutoff.IsDefault() && o.Model == "" && !IsModel(o.Compare):
		return option.Errorf("eval: ‹cutoff› is for models: a ‹pred› file has its label sets already")
	case o.Predictive && o.Model == "":
		return option.Errorf("eval: ‹predictive› needs ‹model›: a ‹pred› file has its label sets already")
	case o.Coverage && o.Model == "":
		return option.Errorf("eval: ‹coverage› needs ‹model›: a ‹pred› file has no probabilities")
	case o.Rankings != "" && o.Predictions == "":
		return option.Errorf("eval: ‹rank› goes with ‹pred›: a model makes its own ranking")
	case slices.ContainsFunc(o.At, func(k int) bool { return k < 1 || k > measure.MaxAt }):
		return option.Errorf("eval: ‹at›: numbers of places must be from 1 to %d", measure.MaxAt)
	case len(o.At) > 0 && o.Model == "" && o.Rankings == "":
		return option.Errorf("eval: ‹at› measures rankings: add ‹rank=FILE›, or give ‹model=DIR›")
	case o.Confusion == fs.Stdin:
		return option.Errorf("eval: ‹confusion=-›: name a file, standard output has the figures")
	case o.Reliability == fs.Stdin:
		return option.Errorf("eval: ‹reliability=-›: name a file, standard output has the figures")
	case o.Reliability != "" && o.Model == "":
		return option.Errorf("eval: ‹reliability› needs ‹model›: a ‹pred› file has no probabilities")
	case o.Reliability != "" && o.Compare != "":
		return option.Errorf("eval: ‹reliability› and ‹compare› exclude each other: draw the diagram of one model at a time")
	case o.Compare != "" && o.Data.Path == fs.Stdin:
		return option.Errorf("eval: ‹compare› reads the data twice: give ‹data› a file instead of standard input")
	}
	return nil
}

// evaluation is the state of one run.
type evaluation struct {
	o  Options
	ui progress.Reporter
	// first is nil if the predictions are from a file.
	first *model.Model
	// second is nil without a comparison, or if that is with a file.
	second *model.Model
	opts   measure.Options
	// known holds the labels of the training data and of the data.
	known map[string]bool
	// truth holds the labels of the data.
	truth map[string]bool
	// given is the hierarchy from a file. If it is nil, the model's is used.
	given  *taxonomy.Structure
	warned map[string]bool

	// covered is that of the first model.
	covered []measure.Covered
	files   []predicted
}

// predicted holds the labels in a file of predictions.
type predicted struct {
	path  string
	names map[string]bool
}

// Run opens the inputs and measures. With Compare it compares with each given model and file.
func Run(ctx context.Context, o Options, ui progress.Reporter) (*measure.Result, error) {
	r, err := run(ctx, o, ui)
	if err != nil || len(o.Others) == 0 {
		return r, err
	}
	r.Others = []measure.Against{{With: o.Compare, SignTest: r.SignTest, Wilcoxon: r.Wilcoxon, Other: r.Other}}
	o.Confusion = "" // the first comparison has written it
	for _, o.Compare = range o.Others {
		next, err := run(ctx, o, ui)
		if err != nil {
			return nil, err
		}
		r.Others = append(r.Others, measure.Against{With: o.Compare, SignTest: next.SignTest, Wilcoxon: next.Wilcoxon,
			Other: next.Other})
	}
	return r, nil
}

func run(ctx context.Context, o Options, ui progress.Reporter) (*measure.Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	e := &evaluation{o: o, ui: ui, known: map[string]bool{}, truth: map[string]bool{}, warned: map[string]bool{}}
	defer e.close()
	var err error
	if o.Model != "" {
		if e.first, err = model.Open(o.Model); err != nil {
			return nil, err
		}
	}
	if o.Confusion != "" {
		if err := predict.RefuseOverwrite("eval", "confusion", o.Confusion, o.Data.Path, o.Model); err != nil {
			return nil, err
		}
		if err := fs.CheckWritable(o.Confusion); err != nil {
			return nil, err
		}
	}
	if o.Reliability != "" {
		if err := e.checkReliability(); err != nil {
			return nil, err
		}
	}
	if o.Coverage {
		if c, err := newCoverage(e.first); err != nil {
			return nil, err
		} else if c == nil {
			return nil, option.Errorf("eval: ‹coverage› is for data with one label an instance, and %s has several", o.Model)
		}
	}
	if o.Compare != "" && IsModel(o.Compare) {
		if e.second, err = model.Open(o.Compare); err != nil {
			return nil, err
		}
	}
	if err := e.setOptions(ctx); err != nil {
		return nil, err
	}
	var r measure.Result
	if o.Compare == "" {
		r, err = e.single(ctx)
	} else {
		r, err = e.compare(ctx)
	}
	if err != nil {
		return nil, err
	}
	r.Coverage = e.covered
	if r.Instances == 0 {
		return nil, fs.Inputf(o.Data.Path, 0, "no instance to measure")
	}
	if err := e.given.CheckLabels(o.Hierarchy, append(slices.Sorted(maps.Keys(e.truth)), e.opts.Classes...)); err != nil {
		return nil, err
	}
	if len(e.truth) == 0 {
		e.ui.Warn("%s: no instance has a label: there is nothing that a prediction could be right about", o.Data.Path)
	}
	e.warnUnknown()
	if o.Confusion != "" {
		if err := fs.WriteOut(o.Confusion, nil, func(w *bufio.Writer) error { return r.WriteConfusion(w) }); err != nil {
			return nil, err
		}
	}
	if o.Reliability != "" {
		return &r, fs.WriteOut(o.Reliability, nil, func(w *bufio.Writer) error {
			return r.WriteReliability(w, o.Model+" on "+o.Data.Path)
		})
	}
	return &r, nil
}

// checkReliability returns an error if the diagram cannot be drawn, before the work begins.
func (e *evaluation) checkReliability() error {
	if !e.first.HasProbabilities() {
		return &fs.InputError{Path: e.first.Dir, Msg: fmt.Sprintf("a model of method %s gives no probabilities for "+
			"‹reliability›: train with ‹calibrate›, or by a method with a logistic loss", e.first.Options.Method)}
	}
	if err := predict.RefuseOverwrite("eval", "reliability", e.o.Reliability, e.o.Data.Path, e.first.Dir); err != nil {
		return err
	}
	return fs.CheckWritable(e.o.Reliability)
}

func (e *evaluation) close() {
	for _, m := range []*model.Model{e.first, e.second} {
		if m != nil {
			m.Close()
		}
	}
}

// setOptions determines the class set, the class sizes and the structure.
func (e *evaluation) setOptions(ctx context.Context) error {
	known := e.first
	if known == nil {
		known = e.second
	}
	var s *taxonomy.Structure
	if known != nil {
		e.opts.Classes, e.opts.TrainSizes, e.opts.Documents = known.Labels, sizesOf(known), known.Data.Documents()
		e.opts.Propensity = e.o.Propensity
		s = known.Structure
		for _, name := range known.Labels {
			e.known[name] = true
		}
	}
	ofLabels := e.o.Hierarchy == fromLabels || e.o.Hierarchy == "" && e.o.Data.Table.PathSeparator != ""
	if ofLabels && s == nil {
		var err error
		if s, err = e.structureOfLabels(ctx); err != nil {
			return err
		}
	}
	if e.o.Hierarchy != "" && !ofLabels {
		var err error
		if e.given, err = ReadHierarchy(ctx, e.o.Data.Files, e.o.Hierarchy, e.ui); err != nil {
			return err
		}
		s = e.given
	}
	if s != nil {
		c, err := taxonomy.NewClosure(s)
		if err != nil {
			return err
		}
		e.opts.Structure = c
	}
	switch {
	case e.o.ByLevel && s == nil:
		return option.Errorf("eval: ‹by-level› needs a class structure: add ‹hierarchy=FILE›")
	case e.o.BySize && known == nil:
		return option.Errorf("eval: ‹by-size› needs a model, which knows the sizes of the classes in its training data")
	}
	e.opts.Ranked, e.opts.At = e.first != nil || e.o.Rankings != "", e.o.At
	e.opts.ByLevel = s != nil && (e.o.ByLevel || e.o.Everything)
	e.opts.PerClass, e.opts.Confusion = e.o.PerClass || e.o.Everything, e.o.Confusion != ""
	e.opts.BySize = known != nil && (e.o.BySize || e.o.Everything)
	return nil
}

const fromLabels = "from-labels" // value of Hierarchy: the labels are paths

// structureOfLabels makes the hierarchy from the data's labels, which are paths.
func (e *evaluation) structureOfLabels(ctx context.Context) (*taxonomy.Structure, error) {
	switch separator := e.o.Data.Table.PathSeparator; {
	case separator == "":
		return nil, option.Errorf("eval: ‹hierarchy=%s› needs ‹path-separator›", fromLabels)
	case e.o.Data.Path == fs.Stdin:
		return nil, option.Errorf("eval: the hierarchy is made of the labels, which takes reading the data twice: give " +
			"‹data› a file instead of standard input")
	default:
		var all []string
		_, err := e.readTruth(ctx, func(dst []int32, names []string) []int32 {
			all = append(all, names...)
			return dst
		})
		if err != nil {
			return nil, err
		}
		return taxonomy.OfPaths(all, separator)
	}
}

func sizesOf(m *model.Model) []int {
	sizes := make([]int, len(m.LabelCounts))
	for i, n := range m.LabelCounts {
		sizes[i] = int(n)
	}
	return sizes
}

// ReadHierarchy reads a structure file and shows its warnings.
func ReadHierarchy(ctx context.Context, files fs.Local, path string,
	ui progress.Reporter) (*taxonomy.Structure, error) {
	s, warnings, err := taxonomy.ReadFile(ctx, files, path, taxonomy.Read)
	for _, w := range warnings {
		ui.Warn("%s", w)
	}
	return s, err
}

// single measures one model or file, in a stream.
func (e *evaluation) single(ctx context.Context) (measure.Result, error) {
	acc, err := measure.NewAccumulator(e.opts)
	if err != nil {
		return measure.Result{}, err
	}
	if e.first != nil {
		err = e.eachOfModel(ctx, "eval", e.first, acc.IDs, func(_ int, truth []int32, out measure.Output) error {
			acc.Add(truth, out.Predicted, out.Ranked)
			return nil
		}, acc.AddProbabilities)
		return acc.Result(), err
	}
	truth, err := e.readTruth(ctx, acc.IDs)
	if err != nil {
		return measure.Result{}, err
	}
	out, err := e.readOutputs(ctx, e.o.Predictions, e.o.Rankings, truth, acc.IDs)
	if err != nil {
		return measure.Result{}, err
	}
	for i := range truth.len() {
		acc.Add(truth.row(i), out.pred.row(i), out.ranked.row(i))
	}
	return acc.Result(), nil
}

// IsModel reports whether a path leads to a model, or to one in training, and not to a file of
// predictions.
func IsModel(path string) bool { return model.IsModel(path) || model.IsUnfinished(path) }

// compare measures two models or files. The second's predictions are kept in memory while the first
// is streamed.
func (e *evaluation) compare(ctx context.Context) (measure.Result, error) {
	cmp, err := measure.NewComparison(e.opts)
	if err != nil {
		return measure.Result{}, err
	}
	truth, err := e.readTruth(ctx, cmp.IDs)
	if err != nil {
		return measure.Result{}, err
	}
	firstProbable, secondProbable := cmp.Probabilities()
	var other outputs
	if e.second != nil {
		err = e.eachOfModel(ctx, "eval: "+e.o.Compare, e.second, cmp.IDs, func(_ int, _ []int32, out measure.Output) error {
			other.pred.add(out.Predicted)
			other.ranked.add(out.Ranked)
			return nil
		}, secondProbable)
	} else {
		other, err = e.readOutputs(ctx, e.o.Compare, "", truth, cmp.IDs)
	}
	if err != nil {
		return measure.Result{}, err
	}
	if other.pred.len() != truth.len() {
		return measure.Result{}, e.changed()
	}
	if e.first != nil {
		err = e.eachOfModel(ctx, "eval: "+e.o.Model, e.first, cmp.IDs, func(i int, ids []int32, out measure.Output) error {
			if i >= truth.len() {
				return e.changed()
			}
			cmp.Add(ids, out, other.row(i))
			return nil
		}, firstProbable)
	} else {
		var out outputs
		out, err = e.readOutputs(ctx, e.o.Predictions, e.o.Rankings, truth, cmp.IDs)
		for i := 0; err == nil && i < truth.len(); i++ {
			cmp.Add(truth.row(i), out.row(i), other.row(i))
		}
	}
	if err != nil {
		return measure.Result{}, err
	}
	r := cmp.Result()
	if e.second == nil {
		r.Other.Ranking = nil // a file of predictions has no ranking
	}
	return r, nil
}

// changed returns the error for data that changed between two readings.
func (e *evaluation) changed() error {
	return fs.Inputf(e.o.Data.Path, 0, "the file changed while it was read")
}
