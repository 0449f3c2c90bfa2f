package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/tune"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// newTuneCmd returns the verb tune, which searches options.
func newTuneCmd(a *app) *cobra.Command {
	o, limit := tune.Defaults(), tune.DefaultTime
	var cluster clientOptions
	submit := false
	cmd := &cobra.Command{
		Use:     "tune --data FILE --out DIR",
		GroupID: groupModel,
		Short:   "find C and other options by cross-validation",
		Long: "Finds the options that predict best, by cross-validation, and trains the model: DIR/model, and DIR/job.yaml " +
			"for train and submit. " +
			"Without lists of values it searches on its own. Of text it first compares what makes features (words, n-grams of " +
			"characters, with --language stems, and both) by the fastest method. Then all methods that fit the data, the " +
			"fastest first: each climbs along C and, if it leads, along its other options, and on text along those of its " +
			"words: bigrams, stop words, bounds of document frequencies. The best points are compared on further folds. A " +
			"method named alone that has nothing to search is trained once. --time bounds everything, including the last " +
			"training. With a list of values of an option (--C 0.1,1,10) it tries a grid: every point on the first fold; points three " +
			"standard errors or more below the best are dropped, and the others go on to the next folds. Points that differ " +
			"in C alone form a path: each training begins at the weights of the one with the next smaller C, and larger " +
			"values are not tried once the value has clearly fallen (--patience). " +
			"Shifts (--x prior-shift) are tried on the same trainings. Folds are stratified by label. A point's value is " +
			"measured on the rows left out, all its folds together; ± is the standard error over the folds, which one " +
			"fold does not have. " +
			"Scores become labels in the way of train's default: the best class, or for multi-label data a cut-off fitted on " +
			"other held-out rows. " +
			"With --submit the trainings are jobs of a cluster, some side by side: the data is uploaded once, models come " +
			"here to be measured. " +
			"At any moment DIR/job.yaml holds the best options so far. After Ctrl-C, or a crash, the same command continues, " +
			"also within a training.",
		Example: "taxon tune --data train.svm.xz --hierarchy tree.txt --time 10m --out tuned\n" +
			"taxon tune --data train.svm.xz --hierarchy tree.txt --C 0.1,1,10 --loss hinge,squared-hinge --goal " +
			"macro --out tuned --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("time") {
				o.Time = limit
			}
			if submit {
				c, err := cluster.dial(cmd.Context(), a)
				if err != nil {
					return err
				}
				defer c.Close()
				o.Cluster = c
			}
			return runTune(cmd.Context(), a, &o)
		},
	}
	t, grid := &o.Train, &o.Grid
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringArrayVar(&t.Data, "data", nil,
			"instances: a `FILE` of lines or a table (plain, gzip, bzip2, zstd, xz) or a folder "+
				"made by ingest; repeated: several")
		f.BoolVar(&t.Text, "text", false, "lines are LABEL[,LABEL...]<TAB>text")
		f.BoolVar(&t.ZeroBased, "zero-based", false, "feature indices count from 0")
		instanceWeightsFlag(f, &t.Weights)
		f.StringVar(&t.Hierarchy, "hierarchy", "",
			"a `FILE` of lines PARENT CHILD, learned (see --families) or from-labels (see "+
				"--path-separator) (default: flat)")
		f.StringVar(&t.Graph, "graph", "", "undirected class graph: a `FILE` of lines A B, one per edge")
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) {
		dagOption(f, &t.DAG)
		labelTextOptions(f, &t.LabelText)
	})
	tableFlags(cmd, &t.Table)
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&t.Out, "out", "", "the `DIR` of the points, the table, the job file and the model")
		f.BoolVar(&t.Force, "force", false, "replace the search in --out")
	})
	flagGroup(cmd, "Grid", func(f *pflag.FlagSet) {
		listFlag(f, &o.Methods, "method", append([]string{tune.AllMethods}, registry.Names()...), "`LIST` of methods: see "+
			"Methods; all: those that fit the data (default: all, or in a grid "+registry.Names()[0]+")")
		gridOptions(f, grid.Values, true)
	})
	optionGroup(cmd, "Grid", func(f *pflag.FlagSet) { gridOptions(f, grid.Values, false) })
	optionGroup(cmd, "Features of text", func(f *pflag.FlagSet) {
		for _, p := range tune.TextOptions() {
			one := gridValue{p, grid.Values}
			usage := strings.ReplaceAll(option.Flags(p.Help), "`", "")
			if p.Name == "stop-words" {
				f.Var(&stopWordsValue{one, &t.Words.StopWords}, p.Name, "`LIST`: "+usage)
			} else {
				f.Var(&one, p.Name, "`LIST`: "+usage)
			}
		}
		charsOption(f, &t.Words)
		languageOption(f, &t.Words)
	})
	flagGroup(cmd, "Search", func(f *pflag.FlagSet) {
		f.DurationVar(&limit, "time", limit,
			"`TIME` limit of search and final training, as 90s, 10m, 2h; 0: none (the default "+
				"with lists of values)")
		f.BoolVar(&o.NoTrain, "no-train", false, "leave the job file alone: train no model in the end")
		intFlag(f, &o.Folds, "folds", o.Folds, 2, 100, "`K` of the cross-validation")
		intFlag(f, &o.FirstFolds, "first-folds", 0, 0, 100, "train and measure points on the first `N` of the K folds "+
			"only, for large data: on N/K of the rows; 0: on all")
		f.StringVar(&o.Goal, "goal", o.Goal,
			"`MEASURE` to optimise: micro_f1, macro_f1, mean_f1, or any key of eval --json, as "+
				"p@1, ndcg@5, log_loss")
		f.BoolVar(&o.OneSE, "one-se", false, "choose the smallest C whose value is within one standard error of the best")
		intFlag(f, &o.Patience, "patience", o.Patience, 0, 100,
			"stop raising C after `N` values in a row that are three standard errors worse; 0: "+
				"try all")
		f.BoolVar(&o.Exhaustive, "exhaustive", false, "drop no point and try every C: train all points on all folds")
		optionFlag(f, &t.Said, *registry.Option("seed"), "seed of the folds and of the sampling order: `N`")
	})
	training := func(common bool) func(f *pflag.FlagSet) {
		return func(f *pflag.FlagSet) {
			for _, p := range registry.Options() {
				if (p.Group == method.GroupMethod || p.Group == method.GroupStopping) && len(p.Grid) == 0 &&
					p.Common == common && p.Name != "seed" {
					optionFlag(f, &t.Said, p, usageOf(&p))
				}
			}
		}
	}
	flagGroup(cmd, "Training", training(true))
	optionGroup(cmd, "Training", training(false))
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		threadsFlag(f, &t.Threads)
		bytesFlag(f, &t.Memory, "memory", 0, "`SIZE` that a training may take, refused beforehand if it would not fit "+
			"(default: what is free)")
	})
	cluster.flags(cmd)
	flagGroup(cmd, "Cluster", func(f *pflag.FlagSet) {
		f.BoolVar(&submit, "submit", false, "run the trainings as jobs of the cluster, as submit --tune does")
	})
	require(cmd, "data", "out")
	cmd.SetFlagErrorFunc(a.flagErrors(o.Validate))
	return cmd
}

// runTune runs the search and prints its outcome.
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

// gridOptions defines the options for which tune can try several values. It defines either the
// common ones, as flags, or the others.
func gridOptions(f *pflag.FlagSet, grid map[string][]string, common bool) {
	for _, p := range registry.Tunable() {
		if p.Common == common {
			f.Var(&gridValue{p, grid}, p.Name, "`LIST`: "+strings.ReplaceAll(usageOf(&p), "`", ""))
		}
	}
}

// gridValue is the value of a flag that lists the values of an option to try, separated by commas.
type gridValue struct {
	option method.Option
	grid   map[string][]string
}

func (v *gridValue) Type() string { return "list" }
func (v *gridValue) String() string {
	if list, ok := v.grid[v.option.Name]; ok {
		return strings.Join(list, ",")
	}
	return strings.Join(v.option.Grid, ",")
}
func (v *gridValue) Set(s string) error {
	var list []string
	for word := range strings.SplitSeq(s, ",") {
		one := optionValue{v.option, registry.Values{}}
		if err := one.Set(strings.TrimSpace(word)); err != nil {
			return err
		}
		list = append(list, one.String())
	}
	v.grid[v.option.Name] = tune.Canonical(&v.option, list)
	return nil
}

// stopWordsValue is the value of a flag that names the lists of stop words to try, or the path of
// the list to use.
type stopWordsValue struct {
	gridValue
	file *string
}

func (v *stopWordsValue) Set(s string) error {
	err := v.gridValue.Set(s)
	if *v.file = ""; err != nil && !strings.Contains(s, ",") && s != "" {
		*v.file, err = s, nil
	}
	return err
}

// listFlag defines the flag of a list of names, separated by commas. Nil choices permit any name.
func listFlag(f *pflag.FlagSet, p *[]string, name string, choices []string, usage string) {
	f.Var(&namesValue{p, choices}, name, usage)
}

// namesValue is a flag for names, separated by commas.
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

// printTuned prints the table, and a plot of the chosen point's path.
func printTuned(a *app, dir string, r *tune.Table) {
	w, goal := a.stdout, r.Measure
	if len(r.Points) == 0 {
		fmt.Fprintf(w, "%s: %s learns from the data what other methods search for: there is nothing to search\n\n",
			a.style.Bold(dir), r.Options.Method)
		printOutcome(a, r)
		return
	}
	fmt.Fprintf(w, "%s: %s, on %d of %d folds: %s of %s measured, each by a training without it\n\n", a.style.Bold(dir),
		goal.Title(),
		r.Folds, r.OfFolds, format.Count(int64(r.Measured)), format.Counted(int64(r.Instances), "instance", "instances"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := tunedColumns(r)
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	fmt.Fprint(t, "\t\n")
	dropped, hidden := false, 0
	shown := r.Leading()
	for i, p := range r.Points {
		if !shown[i] {
			hidden++
			continue
		}
		for _, c := range columns {
			fmt.Fprintf(t, "%s\t", c.value(p))
		}
		mark := ""
		switch {
		case p.Tried < r.Folds:
			dropped = true
			mark = fmt.Sprintf("dropped after %s", format.Counted(int64(p.Tried), "fold", "folds"))
		case i == r.Chosen:
			mark = "< chosen"
		case i == r.Best:
			mark = "< best"
		}
		if p.Unfinished > 0 {
			mark += fmt.Sprintf(" (%s ended above the gap)", format.Counted(int64(p.Unfinished), "training", "trainings"))
		}
		fmt.Fprintf(t, "%s\t\n", mark)
	}
	t.Flush()
	fmt.Fprintf(w, "\n  ±: the standard error over the folds; - where there is but one, which has none\n")
	if dropped {
		fmt.Fprintf(w, "  dropped: so far behind the best point that more folds would hardly change it; its figures are "+
			"of fewer instances\n")
	}
	if hidden > 0 {
		fmt.Fprintf(w, "  %s with smaller values: %s\n", format.Counted(int64(hidden), "more point", "more points"),
			filepath.Join(dir, "table.json"))
	}
	if sketch := r.Sketch(); sketch != "" {
		fmt.Fprintf(w, "\n%s", sketch)
	}
	fmt.Fprintf(w, "\n  trainings   %s of CPU", format.Seconds(r.CPU))
	if r.Skipped > 0 {
		fmt.Fprintf(w, "; %s not tried, beyond a path's best C", format.Counted(int64(r.Skipped), "point", "points"))
	}
	fmt.Fprintf(w, "\n  plot        %s\n", strings.Join(r.Plots, ", "))
	for _, line := range r.Explanation() {
		fmt.Fprintf(w, "  %s\n", line)
	}
	printOutcome(a, r)
}

// printOutcome describes the trained model, or how to train one.
func printOutcome(a *app, r *tune.Table) {
	w := a.stdout
	if r.Model != "" {
		fmt.Fprintf(w, "  model       %s, by %s, %s\n", r.Model, r.Options.Name(), modelWords(r.Report))
		return
	}
	fmt.Fprintf(w, "  train it    taxon train --job %s --out MODEL\n", format.ShellWord(r.JobFile))
}

// modelWords describes how a training ended.
func modelWords(r *model.Report) string {
	text := "stopped by " + r.StoppedBy
	if r.Gap != nil {
		text += fmt.Sprintf(" at a gap of %.2g", *r.Gap)
	}
	return text + ", " + format.Seconds(r.Seconds)
}

// tunedColumn is a column of the table.
type tunedColumn struct {
	name  string
	value func(p *tune.TablePoint) string
}

// tunedColumns returns the columns of the table. They are the options that differ between points,
// C, the goal, both F1 measures unless one of them is the goal, and the cost of the trainings.
func tunedColumns(r *tune.Table) (out []tunedColumn) {
	columns := []tunedColumn{{"method", func(p *tune.TablePoint) string { return p.Method }}}
	var cost tunedColumn
	for _, o := range slices.Concat(tune.TextOptions(), registry.Tunable()) {
		c := tunedColumn{o.Name, func(p *tune.TablePoint) string { return cmp.Or(p.Values[o.Name], "-") }}
		if o.Name == method.Cost.Name {
			cost = c
		} else {
			columns = append(columns, c)
		}
	}
	for _, c := range columns {
		values := map[string]bool{}
		for _, p := range r.Points {
			values[c.value(p)] = true
		}
		if delete(values, "-"); len(values) > 1 { // methods without the option add no information
			out = append(out, c)
		}
	}
	goal := r.Measure
	out = append(out,
		cost,
		tunedColumn{goal.Title(), func(p *tune.TablePoint) string { return goal.Text(p.Value) }},
		tunedColumn{"±", func(p *tune.TablePoint) string { return p.Error(goal, "-") }})
	for _, c := range []tunedColumn{
		{"micro F1 %", func(p *tune.TablePoint) string { return measure.Percent(p.MicroF1) }},
		{"macro F1 %", func(p *tune.TablePoint) string { return measure.Percent(p.MacroF1) }},
	} {
		if c.name != goal.Title() {
			out = append(out, c)
		}
	}
	return append(out,
		tunedColumn{"sweeps", func(p *tune.TablePoint) string { return fmt.Sprint(p.Sweeps) }},
		tunedColumn{"CPU", func(p *tune.TablePoint) string { return format.Seconds(p.CPUSeconds) }})
}
