package main

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/jobspec"
	"taxon/internal/tune"
)

// tuneOptions are the flags of tune.
type tuneOptions struct {
	train      trainOptions // data, stopping and resources; what the grid names is set point by point
	cs         []float64
	biases     []float64
	methods    []string
	losses     []string
	positive   []string
	inner      []float64
	shifts     []float64
	folds      int
	first      int // folds that points are tried on; 0: all
	goal       string
	oneSE      bool
	patience   int
	exhaustive bool // no point is left behind
	cold       bool
}

// defaultCosts are the values of C that [TKDD] 5.2 searches.
var defaultCosts = []float64{1e-3, 1e-2, 0.1, 1, 10, 100, 1000}

func newTuneCmd(a *app) *cobra.Command {
	o := tuneOptions{cs: defaultCosts}
	cmd := &cobra.Command{
		Use:     "tune --data FILE --out DIR",
		GroupID: groupModel,
		Short:   "find C and other options by cross-validation",
		Long: "Trains every point of a grid of options on the folds of a cross-validation, measures it on the rows left out, and writes the best one as a job file for train and submit. " +
			"Lists of values are separated by commas: --C 0.1,1,10 --method rr-svm,bsvm. Folds are stratified by label. Every point is trained on the first fold; points whose value there is three standard errors or more below the best are dropped, and the others are trained on the next folds. " +
			"Points that differ in C alone form a path: each of its trainings begins at the weights of the one with the next smaller C, and larger values are not tried once the value has clearly fallen (--patience). " +
			"A point's value is measured on the rows left out, all its folds together; ± is the standard error over the folds, which one fold does not have. " +
			"Scores become labels in the way of train's default: the best class, or for multi-label data a cut-off fitted on other held-out rows. " +
			"After each point --out/job.yaml holds the best so far; after Ctrl-C, or a crash, the same command goes on, also within a training.",
		Example: "taxon tune --data train.svm.xz --hierarchy tree.txt --out tuned\n" +
			"taxon tune --data train.svm.xz --hierarchy tree.txt --C 0.1,1,10 --loss hinge,squared-hinge --goal macro --out tuned --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return runTune(cmd.Context(), a, &o) },
	}
	t := &o.train
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringArrayVar(&t.data, "data", nil, "instances: a `FILE` (libsvm or XMC lines; plain, gzip, zstd, xz), or a folder made by ingest; repeated: read one after the other")
		f.BoolVar(&t.text, "text", false, "lines are LABEL[,LABEL...]<TAB>text")
		f.BoolVar(&t.zeroBased, "zero-based", false, "feature indices count from 0")
		f.StringVar(&t.hierarchy, "hierarchy", "", "class structure: a `FILE` with a line PARENT CHILD an edge (default: flat)")
		choiceFlag(f, &t.dag, "dag", "graph", []string{"graph", "first-parent", "refuse"}, "if a class has several parents: read the hierarchy as a graph, keep the first parent named, or refuse")
		f.StringVar(&t.graph, "graph", "", "undirected class graph: a `FILE` with a line A B an edge")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&t.out, "out", "", "the `DIR` of the points, the table and the job file")
		f.BoolVar(&t.force, "force", false, "search anew over what is in --out")
	})
	flagGroup(cmd, "Grid", func(f *pflag.FlagSet) {
		f.Var(&floatsValue{&o.cs, costRange}, "C", "`LIST` of weights of the losses")
		listFlag(f, &o.methods, "method", []string{"rr-svm"}, []string{"rr-svm", "rr-lr", "bsvm", "blr"}, "`LIST` of methods")
		listFlag(f, &o.losses, "loss", []string{"hinge"}, []string{"hinge", "squared-hinge"}, "`LIST` of losses of rr-svm and bsvm")
		o.biases, o.inner = []float64{1}, []float64{1}
		f.Var(&floatsValue{&o.biases, biasRange}, "bias", "`LIST` of values of the bias feature, 0 for none")
		listFlag(f, &o.positive, "positive-weight", []string{"1"}, nil, "`LIST` of weights of the losses of a class's own instances; balanced may be one")
		f.Var(&floatsValue{&o.inner, above0}, "internal-weight", "`LIST` of weights of the edges between internal nodes")
		o.shifts = []float64{0}
		f.Var(&floatsValue{&o.shifts, atLeast0}, "prior-shift", "`LIST` of shifts of rare classes' scores (see train --prior-shift), tried on the same trainings: 0,0.05,0.1,0.15 suits data with many small classes")
	})
	flagGroup(cmd, "Search", func(f *pflag.FlagSet) {
		intFlag(f, &o.folds, "folds", 5, 2, 100, "`K` of the cross-validation")
		intFlag(f, &o.first, "first-folds", 0, 0, 100, "train and measure points on the first `N` of the K folds only, for large data: on N/K of the rows; 0: on all")
		f.StringVar(&o.goal, "goal", "micro", "`MEASURE` to choose by: micro, macro, or any key of eval --json")
		f.BoolVar(&o.oneSE, "one-se", false, "choose not the best point but the smallest C, all else equal, whose value is within one standard error of the best")
		intFlag(f, &o.patience, "patience", 2, 0, 100, "try no larger C once `N` of its values in a row are three standard errors behind a smaller one on the first fold; 0: try all")
		f.BoolVar(&o.exhaustive, "exhaustive", false, "drop no point and try every C: train all points on all folds")
		f.BoolVar(&o.cold, "measure-cold", false, "afterwards train all points on all folds from nothing as well, to tell what the search has saved; it changes no result")
		f.Uint64Var(&t.seed, "seed", 0, "seed of the folds and of the sampling order: `N`")
	})
	flagGroup(cmd, "Training", func(f *pflag.FlagSet) {
		choiceFlag(f, &t.prune, "prune", "empty", []string{"empty", "none"}, "leaves of the hierarchy without instances: leave them out, or train them on negatives alone")
		floatFlag(f, &t.anchor, "anchor", 0.01, "graphs: pull of every class with edges towards zero", above0)
		floatFlag(f, &t.gap, "gap", 1e-2, "train each point to this certified relative gap (P-D)/P", above0to1)
		intFlag(f, &t.maxSweeps, "max-sweeps", 0, 0, math.MaxInt32, "stop each training after `N` sweeps, 0 for no cap")
		floatFlag(f, &t.maxTime, "max-time", 0, "stop each training after `S` seconds, 0 for no cap", atLeast0)
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		threadsFlag(f, &t.threads)
		bytesFlag(f, &t.memory, "memory", 0, "`SIZE` that a training may take, refused beforehand if it would not fit (default: what is free)")
	})
	require(cmd, "data", "out")
	return cmd
}

// check refuses what no single flag can see and settles the options that tune has no
// flags for.
func (o *tuneOptions) check() error {
	t := &o.train
	t.schedule, t.stiffness, t.momentum, t.colouring, t.epochs = "twoblock", "support", "fista", "largest-first", 0
	t.positive, t.inner, t.checkpoint, t.stores, t.c, t.bias = "1", 1, 4, 1, 1, 1
	t.method, t.loss = o.methods[0], "hinge"
	for _, d := range t.data {
		if d == fs.Stdin {
			return usagef("tune: --data -: a search that is gone on with reads the data again: give a file")
		}
	}
	if err := o.distinctWeights(); err != nil {
		return err
	}
	if t.out == "" || t.out == "-" {
		return usagef("tune: --out %q: a search is kept in a folder, give its path", t.out)
	}
	if _, err := parseGoal(o.goal); err != nil {
		return err
	}
	switch {
	case o.shifts[len(o.shifts)-1] > 0 && o.biases[0] == 0:
		return usagef("tune: --prior-shift goes into the weights of the bias feature: leave 0 out of --bias, or the shifts")
	case o.first > o.folds:
		return usagef("tune: --first-folds %d: there are %d folds: lower it, or raise --folds", o.first, o.folds)
	case o.first == 1 && o.oneSE:
		return usagef("tune: --one-se needs the spread of two folds or more: raise --first-folds")
	}
	return t.check()
}

// distinctWeights checks the positives' weights and keeps one of those that are one number.
func (o *tuneOptions) distinctWeights() error {
	seen := map[float64]bool{}
	var kept []string
	for _, w := range o.positive {
		x, err := jobspec.ParsePositiveWeight(w)
		if err != nil {
			return usagef("tune: --%w", err)
		}
		if !seen[x] {
			kept = append(kept, w)
		}
		seen[x] = true
	}
	o.positive = kept
	return nil
}

// tries is the number of folds that a point is tried on if it stays in the race.
func (o *tuneOptions) tries() int {
	if o.first > 0 {
		return o.first
	}
	return o.folds
}

// grid lists what is to be tried.
func (o *tuneOptions) grid() *tune.Grid {
	g := &tune.Grid{Bias: o.biases, Positive: o.positive, Internal: o.inner, C: o.cs}
	for _, m := range o.methods {
		flat := m == "bsvm" || m == "blr" || o.train.hierarchy == "" && o.train.graph == ""
		if m == "rr-lr" || m == "blr" {
			g.Kinds = append(g.Kinds, tune.Kind{Method: m, Loss: "logistic", Flat: flat})
			continue
		}
		for _, l := range o.losses {
			g.Kinds = append(g.Kinds, tune.Kind{Method: m, Loss: l, Flat: flat})
		}
	}
	return g
}

// at is the training of one point.
func (o *tuneOptions) at(p tune.Point) *trainOptions {
	t := o.train
	t.method, t.loss, t.c, t.bias, t.positive, t.inner = p.Method, p.Loss, p.C, p.Bias, p.Positive, p.Internal
	return &t
}

// runTune is the verb.
func runTune(ctx context.Context, a *app, o *tuneOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := newSearch(a, o)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.run(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	printTuned(a, o, s.goal, r)
	return nil
}

// floatsValue is a list of numbers, separated by commas.
type floatsValue struct {
	p     *[]float64
	check func(float64) string
}

func (v *floatsValue) Type() string { return "list" }
func (v *floatsValue) String() string {
	if v.p == nil {
		return ""
	}
	var out []string
	for _, x := range *v.p {
		out = append(out, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return strings.Join(out, ",")
}
func (v *floatsValue) Set(s string) error {
	var out []float64
	for _, word := range strings.Split(s, ",") {
		var x float64
		one := floatValue{&x, v.check}
		if err := one.Set(strings.TrimSpace(word)); err != nil {
			return err
		}
		out = append(out, x)
	}
	*v.p = tune.Sorted(out)
	return nil
}

// listFlag defines a list of names, separated by commas; choices nil: any.
func listFlag(f *pflag.FlagSet, p *[]string, name string, def, choices []string, usage string) {
	*p = def
	f.Var(&namesValue{p, choices}, name, usage)
}

type namesValue struct {
	p       *[]string
	choices []string
}

func (v *namesValue) Type() string { return "list" }
func (v *namesValue) String() string {
	if v.p == nil {
		return ""
	}
	return strings.Join(*v.p, ",")
}
func (v *namesValue) Set(s string) error {
	var out []string
	for _, word := range strings.Split(s, ",") {
		word = strings.TrimSpace(word)
		if v.choices != nil {
			one := choiceValue{new(string), v.choices}
			if err := one.Set(word); err != nil {
				return err
			}
		}
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	*v.p = out
	return nil
}
