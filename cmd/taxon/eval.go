package main

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/taxonomy"
)

const rankedPlaces = eval.RankedPlaces

// evalOptions are the flags of eval.
type evalOptions struct {
	model     string
	pred      string
	rank      string
	rows      rowOptions
	hierarchy string
	compare   string
	cutoff    cutoff
	byLevel   bool
	bySize    bool
}

func newEvalCmd(a *app) *cobra.Command {
	var o evalOptions
	cmd := &cobra.Command{
		Use:     "eval (--model DIR | --pred FILE [--rank FILE]) --data FILE",
		GroupID: groupModel,
		Short:   "measure predictions: flat, ranked and hierarchical figures",
		Long: "Predicts labelled instances with a model, or reads predictions from files, and measures them: micro and macro F1, zero-one loss, " +
			"precision at k and nDCG, and with a class structure (the model's own, or --hierarchy) the hierarchical losses. " +
			"Macro-F1 averages over the labels of the training data if a model is given, else over those of --data. " +
			"--compare measures a second model or prediction file on the same instances and tests whether the two differ.",
		Example: "taxon eval --model model --data test.svm.xz --by-size\n" +
			"taxon eval --pred labels.txt --data test.svm.xz --hierarchy tree.txt --compare other-model --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.rows.zeroSet = cmd.Flags().Changed("zero-based")
			return runEval(cmd.Context(), a, o)
		},
	}
	flagGroup(cmd, "What is measured", func(f *pflag.FlagSet) {
		f.StringVar(&o.model, "model", "", "the `DIR` of a model")
		f.StringVar(&o.pred, "pred", "", "predictions: a `FILE` with a line of labels an instance, commas or blanks between them")
		f.StringVar(&o.rank, "rank", "", "rankings: a `FILE` with a line of labels an instance, best first (with --pred)")
		f.StringVar(&o.compare, "compare", "", "a second model or prediction file to test against: `PATH`")
		cutoffFlag(f, &o.cutoff)
	})
	flagGroup(cmd, "Truth", func(f *pflag.FlagSet) {
		rowFlags(f, &o.rows)
		f.StringVar(&o.hierarchy, "hierarchy", "", "class structure: a `FILE` with a line PARENT CHILD an edge (default: the model's)")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.BoolVar(&o.byLevel, "by-level", false, "figures for each level of the structure")
		f.BoolVar(&o.bySize, "by-size", false, "macro F1 by the number of training instances")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.rows.threads) })
	require(cmd, "data")
	return cmd
}

func (o *evalOptions) check() error {
	if err := oneStdin("eval", "--data, --pred, --rank, --compare and --hierarchy", o.rows.path, o.pred, o.rank, o.compare, o.hierarchy); err != nil {
		return err
	}
	switch {
	case o.model == "" && o.pred == "":
		return usagef("eval: give --model DIR or --pred FILE")
	case o.model != "" && o.pred != "":
		return usagef("eval: --model and --pred exclude each other; to test one against the other use --compare")
	case o.cutoff.kind != cutDefault && o.model == "" && !isModel(o.compare):
		return usagef("eval: --cutoff is for models: a --pred file has its label sets already")
	case o.rank != "" && o.pred == "":
		return usagef("eval: --rank goes with --pred: a model makes its own ranking")
	case o.compare != "" && o.rows.path == fs.Stdin:
		return usagef("eval: --compare reads the data twice: give --data a file instead of standard input")
	}
	return nil
}

// evaluation is one run of eval.
type evaluation struct {
	a      *app
	o      evalOptions
	first  *model.Model // nil: predictions from a file
	second *model.Model // nil: none to compare with, or from a file
	opts   eval.Options
	known  map[string]bool     // labels of the training data and of --data
	truth  map[string]bool     // labels of --data
	given  *taxonomy.Structure // --hierarchy; nil: the model's, if any
	warned map[string]bool
	files  []predicted
}

// predicted are the labels of a file of predictions.
type predicted struct {
	path  string
	names map[string]bool
}

func runEval(ctx context.Context, a *app, o evalOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	r, err := evaluate(ctx, a, o)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	what := o.model
	if what == "" {
		what = o.pred
	}
	printEval(a, o, what, r)
	return nil
}

// evaluate opens what there is to open and measures.
func evaluate(ctx context.Context, a *app, o evalOptions) (*eval.Result, error) {
	e := &evaluation{a: a, o: o, known: map[string]bool{}, truth: map[string]bool{}, warned: map[string]bool{}}
	defer e.close()
	var err error
	if o.model != "" {
		if e.first, err = openModel(o.model); err != nil {
			return nil, err
		}
	}
	if o.compare != "" && isModel(o.compare) {
		if e.second, err = openModel(o.compare); err != nil {
			return nil, err
		}
	}
	if err := e.setOptions(ctx); err != nil {
		return nil, err
	}
	var r eval.Result
	if o.compare == "" {
		r, err = e.single(ctx)
	} else {
		r, err = e.compare(ctx)
	}
	if err != nil {
		return nil, err
	}
	if r.Instances == 0 {
		return nil, fs.Inputf(o.rows.path, 0, "no instance to measure")
	}
	if err := e.given.CheckLabels(o.hierarchy, append(slices.Sorted(maps.Keys(e.truth)), e.opts.Classes...)); err != nil {
		return nil, err
	}
	e.warnStrange()
	return &r, nil
}

func (e *evaluation) close() {
	for _, m := range []*model.Model{e.first, e.second} {
		if m != nil {
			m.Close()
		}
	}
}

// setOptions settles the class set, the sizes and the structure.
func (e *evaluation) setOptions(ctx context.Context) error {
	known := e.first
	if known == nil {
		known = e.second
	}
	var s *taxonomy.Structure
	if known != nil {
		e.opts.Classes, e.opts.TrainSizes = known.Labels, sizesOf(known)
		s = known.Structure
		for _, name := range known.Labels {
			e.known[name] = true
		}
	}
	if e.o.hierarchy != "" {
		var err error
		if e.given, err = e.a.readHierarchy(ctx, e.o.hierarchy); err != nil {
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
	case e.o.byLevel && s == nil:
		return usagef("eval: --by-level needs a class structure: add --hierarchy FILE")
	case e.o.bySize && known == nil:
		return usagef("eval: --by-size needs a model, which knows the sizes of the classes in its training data")
	}
	e.opts.Ranked = e.first != nil || e.o.rank != ""
	e.opts.ByLevel = s != nil && (e.o.byLevel || e.a.json)
	e.opts.BySize = known != nil && (e.o.bySize || e.a.json)
	return nil
}

func sizesOf(m *model.Model) []int {
	sizes := make([]int, len(m.LabelCounts))
	for i, n := range m.LabelCounts {
		sizes[i] = int(n)
	}
	return sizes
}

// readHierarchy reads a structure file and passes its warnings on.
func (a *app) readHierarchy(ctx context.Context, path string) (*taxonomy.Structure, error) {
	s, warnings, err := taxonomy.ReadFile(ctx, fs.Local{In: a.stdin}, path, taxonomy.Read)
	for _, w := range warnings {
		a.ui.Warn("%s", w)
	}
	return s, err
}

// single measures one model or file, streaming.
func (e *evaluation) single(ctx context.Context) (eval.Result, error) {
	acc, err := eval.NewAccumulator(e.opts)
	if err != nil {
		return eval.Result{}, err
	}
	if e.first != nil {
		err = e.eachOfModel(ctx, "eval", e.first, acc.IDs, func(_ int, truth []int32, out eval.Output) error {
			acc.Add(truth, out.Predicted, out.Ranked)
			return nil
		})
		return acc.Result(), err
	}
	truth, err := e.readTruth(ctx, acc.IDs)
	if err != nil {
		return eval.Result{}, err
	}
	out, err := e.readOutputs(ctx, e.o.pred, e.o.rank, truth, acc.IDs)
	if err != nil {
		return eval.Result{}, err
	}
	for i := range truth.len() {
		acc.Add(truth.row(i), out.pred.row(i), out.ranked.row(i))
	}
	return acc.Result(), nil
}

// isModel tells a model, or the place of one that is being trained, from a prediction file.
func isModel(path string) bool { return model.IsModel(path) || model.IsUnfinished(path) }

// compare measures two, the second kept in memory while the first streams.
func (e *evaluation) compare(ctx context.Context) (eval.Result, error) {
	cmp, err := eval.NewComparison(e.opts)
	if err != nil {
		return eval.Result{}, err
	}
	truth, err := e.readTruth(ctx, cmp.IDs)
	if err != nil {
		return eval.Result{}, err
	}
	var other outputs
	if e.second != nil {
		err = e.eachOfModel(ctx, "eval: "+e.o.compare, e.second, cmp.IDs, func(_ int, _ []int32, out eval.Output) error {
			other.pred.add(out.Predicted)
			other.ranked.add(out.Ranked)
			return nil
		})
	} else {
		other, err = e.readOutputs(ctx, e.o.compare, "", truth, cmp.IDs)
	}
	if err != nil {
		return eval.Result{}, err
	}
	if other.pred.len() != truth.len() {
		return eval.Result{}, e.changed()
	}
	if e.first != nil {
		err = e.eachOfModel(ctx, "eval: "+e.o.model, e.first, cmp.IDs, func(i int, ids []int32, out eval.Output) error {
			if i >= truth.len() {
				return e.changed()
			}
			cmp.Add(ids, out, other.row(i))
			return nil
		})
	} else {
		var out outputs
		out, err = e.readOutputs(ctx, e.o.pred, e.o.rank, truth, cmp.IDs)
		for i := 0; err == nil && i < truth.len(); i++ {
			cmp.Add(truth.row(i), out.row(i), other.row(i))
		}
	}
	if err != nil {
		return eval.Result{}, err
	}
	r := cmp.Result()
	if e.second == nil {
		r.Other.Ranking = nil // a prediction file has no ranking to measure
	}
	return r, nil
}

// changed: the data was not the same when it was read again.
func (e *evaluation) changed() error {
	return fs.Inputf(e.o.rows.path, 0, "the file changed while it was read")
}

// classSet names the class set of a result.
func classSet(r *eval.Result) string {
	classes := counted(int64(r.Classes), "class", "classes")
	if r.ClassSet == "training" {
		return classes + " of the training data"
	}
	return classes + " of this data"
}
