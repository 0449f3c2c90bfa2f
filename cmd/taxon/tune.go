package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/tune"
)

func newTuneCmd(a *app) *cobra.Command {
	o := tune.Defaults()
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
	t, grid := &o.Train, &o.Grid
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringArrayVar(&t.Data, "data", nil, "instances: a `FILE` (libsvm or XMC lines; plain, gzip, zstd, xz), or a folder made by ingest; repeated: read one after the other")
		f.BoolVar(&t.Text, "text", false, "lines are LABEL[,LABEL...]<TAB>text")
		f.BoolVar(&t.ZeroBased, "zero-based", false, "feature indices count from 0")
		instanceWeightsFlag(f, &t.Weights)
		f.StringVar(&t.Hierarchy, "hierarchy", "", "class structure: a `FILE` with a line PARENT CHILD an edge (default: flat)")
		choiceFlag(f, &t.DAG, "dag", t.DAG, []string{"graph", "first-parent", "refuse"}, "if a class has several parents: read the hierarchy as a graph, keep the first parent named, or refuse")
		f.StringVar(&t.Graph, "graph", "", "undirected class graph: a `FILE` with a line A B an edge")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&t.Out, "out", "", "the `DIR` of the points, the table and the job file")
		f.BoolVar(&t.Force, "force", false, "search anew over what is in --out")
	})
	flagGroup(cmd, "Grid", func(f *pflag.FlagSet) {
		f.Var(&floatsValue{&grid.C, registry.Option("C").Range.Must}, "C", "`LIST` of weights of the losses")
		listFlag(f, &grid.Methods, "method", registry.Names(), "`LIST` of methods")
		listFlag(f, &grid.Losses, "loss", registry.Option("loss").Choices, "`LIST` of losses; a method that has none of them has its own")
		f.Var(&floatsValue{&grid.Bias, registry.Option("bias").Range.Must}, "bias", "`LIST` of values of the bias feature, 0 for none")
		listFlag(f, &grid.Positive, "positive-weight", nil, "`LIST` of weights of the losses of a class's own instances; balanced may be one")
		f.Var(&floatsValue{&grid.Internal, above0}, "internal-weight", "`LIST` of weights of the edges between internal nodes")
		f.Var(&floatsValue{&grid.Shift, atLeast0}, "prior-shift", "`LIST` of shifts of rare classes' scores (see train --prior-shift), tried on the same trainings: 0,0.05,0.1,0.15 suits data with many small classes")
	})
	flagGroup(cmd, "Search", func(f *pflag.FlagSet) {
		intFlag(f, &o.Folds, "folds", o.Folds, 2, 100, "`K` of the cross-validation")
		intFlag(f, &o.FirstFolds, "first-folds", 0, 0, 100, "train and measure points on the first `N` of the K folds only, for large data: on N/K of the rows; 0: on all")
		f.StringVar(&o.Goal, "goal", o.Goal, "`MEASURE` to choose by: micro, macro, or any key of eval --json")
		f.BoolVar(&o.OneSE, "one-se", false, "choose not the best point but the smallest C, all else equal, whose value is within one standard error of the best")
		intFlag(f, &o.Patience, "patience", o.Patience, 0, 100, "try no larger C once `N` of its values in a row are three standard errors behind a smaller one on the first fold; 0: try all")
		f.BoolVar(&o.Exhaustive, "exhaustive", false, "drop no point and try every C: train all points on all folds")
		optionFlag(f, &t.Said, *registry.Option("seed"), "seed of the folds and of the sampling order: `N`")
	})
	flagGroup(cmd, "Training", func(f *pflag.FlagSet) {
		for _, name := range []string{"prune", "anchor", "gap", "max-sweeps", "max-time"} {
			p := registry.Option(name)
			optionFlag(f, &t.Said, *p, registry.Usage(p))
		}
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		threadsFlag(f, &t.Threads)
		bytesFlag(f, &t.Memory, "memory", 0, "`SIZE` that a training may take, refused beforehand if it would not fit (default: what is free)")
	})
	require(cmd, "data", "out")
	cmd.SetFlagErrorFunc(a.flagErrors(o.Validate))
	return cmd
}

// runTune is the verb.
func runTune(ctx context.Context, a *app, o *tune.Options) error {
	t := &o.Train
	t.Files, t.Again = fs.Local{In: a.stdin}, a.commandLine()
	if err := o.Validate(); err != nil {
		return err
	}
	r, err := tune.Run(ctx, o, a.ui)
	if err != nil {
		return err
	}
	return a.print(r, func() { printTuned(a, t.Out, r) })
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
func listFlag(f *pflag.FlagSet, p *[]string, name string, choices []string, usage string) {
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

// printTuned shows the table, and a plot of the chosen point's path.
func printTuned(a *app, dir string, r *tune.Table) {
	w, goal := a.stdout, r.Measure
	fmt.Fprintf(w, "%s: %s, on %d of %d folds: %s of %s measured, each by a training without it\n\n", a.style.Bold(dir), goal.Title(),
		r.Folds, r.OfFolds, human.Count(int64(r.Measured)), human.Counted(int64(r.Instances), "instance", "instances"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := tunedColumns(r)
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	fmt.Fprint(t, "\t\n")
	dropped := false
	for i, p := range r.Points {
		for _, c := range columns {
			fmt.Fprintf(t, "%s\t", c.value(p))
		}
		mark := ""
		switch {
		case p.Tried < r.Folds:
			dropped = true
			mark = fmt.Sprintf("dropped after %s", human.Counted(int64(p.Tried), "fold", "folds"))
		case i == r.Chosen:
			mark = "< chosen"
		case i == r.Best:
			mark = "< best"
		}
		if p.Unfinished > 0 {
			mark += fmt.Sprintf(" (%s ended above the gap)", human.Counted(int64(p.Unfinished), "training", "trainings"))
		}
		fmt.Fprintf(t, "%s\t\n", mark)
	}
	t.Flush()
	fmt.Fprintf(w, "\n  ±: the standard error over the folds; - where there is but one, which has none\n")
	if dropped {
		fmt.Fprintf(w, "  dropped: so far behind the best point that more folds would hardly change it; its figures are of fewer instances\n")
	}
	if sketch := r.Sketch(); sketch != "" {
		fmt.Fprintf(w, "\n%s", sketch)
	}
	fmt.Fprintf(w, "\n  trainings   %s of CPU", human.Seconds(r.CPU))
	if r.Skipped > 0 {
		fmt.Fprintf(w, "; %s not tried, beyond a path's best C", human.Counted(int64(r.Skipped), "point", "points"))
	}
	fmt.Fprintf(w, "\n  plot        %s\n", strings.Join(r.Plots, ", "))
	fmt.Fprintf(w, "  train it    taxon train --job %s --out MODEL\n", human.ShellWord(r.JobFile))
}

// tunedColumn is a column of the table.
type tunedColumn struct {
	name  string
	value func(p *tune.TablePoint) string
}

// tunedColumns are the options that are not the same at all points, C, the goal, both F1 unless
// one of them is the goal, and what the trainings took.
func tunedColumns(r *tune.Table) (out []tunedColumn) {
	for _, c := range []tunedColumn{
		{"method", func(p *tune.TablePoint) string { return p.Method }},
		{"loss", func(p *tune.TablePoint) string { return p.Loss }},
		{"bias", func(p *tune.TablePoint) string { return fmt.Sprint(p.Bias) }},
		{"positive", func(p *tune.TablePoint) string { return p.Positive }},
		{"internal", func(p *tune.TablePoint) string { return fmt.Sprint(p.Internal) }},
		{"shift", func(p *tune.TablePoint) string { return fmt.Sprint(p.Shift) }},
	} {
		for _, p := range r.Points {
			if c.value(p) != c.value(r.Points[0]) {
				out = append(out, c)
				break
			}
		}
	}
	goal := r.Measure
	out = append(out,
		tunedColumn{"C", func(p *tune.TablePoint) string { return fmt.Sprint(p.C) }},
		tunedColumn{goal.Title(), func(p *tune.TablePoint) string { return goal.Text(p.Value) }},
		tunedColumn{"±", func(p *tune.TablePoint) string { return p.Error(goal, "-") }})
	for _, c := range []tunedColumn{
		{"micro F1 %", func(p *tune.TablePoint) string { return eval.Percent(p.MicroF1) }},
		{"macro F1 %", func(p *tune.TablePoint) string { return eval.Percent(p.MacroF1) }},
	} {
		if c.name != goal.Title() {
			out = append(out, c)
		}
	}
	return append(out,
		tunedColumn{"sweeps", func(p *tune.TablePoint) string { return fmt.Sprint(p.Sweeps) }},
		tunedColumn{"CPU", func(p *tune.TablePoint) string { return human.Seconds(p.CPUSeconds) }})
}
