package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/page"
	"taxon/internal/cluster/secure"
	"taxon/internal/data/dataset"
	"taxon/internal/data/text"
	"taxon/internal/fs"
	"taxon/internal/hadoop/mapreduce/driver"
	"taxon/internal/model"
	"taxon/internal/model/evaluate"
	"taxon/internal/model/measure"
	"taxon/internal/model/predict"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// trainOptions holds the flags of train.
type trainOptions struct {
	train.Options
	requireGap bool
	mr         mapReduceOptions

	// watch is the address of the page.
	watch metrics.Options
	// profile is the path of the profile with the page's security. Without it the page has none.
	profile string
}

// newTrainCmd returns the verb train.
func newTrainCmd(a *app, o *trainOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "train --data FILE --out DIR",
		GroupID: groupModel,
		Short:   "train the classifiers of all classes jointly, to a certified gap",
		Long: "Trains linear classifiers of all classes by one of the methods below. Most of them stop when the certified " +
			"relative duality gap of the whole joint problem is at most --gap. " +
			strings.Join(registry.Taking("tolerance"), ", ") + " stop when another round would change less than --x " +
			"tolerance. " +
			"The same data, options and seed give the same bytes, " +
			"whatever the number of threads or store shards. Ctrl-C keeps a checkpoint. The same command continues from it, " +
			"also with another --gap, --max-sweeps or --max-time. A finished model is left as it is, and refused if the gap " +
			"or a cap asked for is another one.",
		Example: "taxon train --data train.svm.xz --hierarchy tree.txt --out model\n" +
			"taxon train --data train.csv --text-column title --text-column body --label-column category --path-separator / " +
			"--test test.csv --out model",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runTrain(cmd.Context(), a, o)
		},
	}
	o.defineFlags(cmd)
	require(cmd, "data", "out")
	cmd.SetFlagErrorFunc(a.flagErrors(o.validate))
	return cmd
}

func (o *trainOptions) validate() error {
	return option.Join(o.Validate("train"), o.checkMapReduce())
}

func (o *trainOptions) defineFlags(cmd *cobra.Command) {
	o.inputFlags(cmd)
	o.outputFlags(cmd)
	o.jobFlags(cmd)
	o.warmFlags(cmd)
	o.resourceFlags(cmd)
	o.mr.flags(cmd)
	flagGroup(cmd, "Watching", func(f *pflag.FlagSet) {
		f.StringVar(&o.watch.Addr, "watch-address", "",
			"show the training in a browser at http://`ADDR`/ (host:port); beyond loopback it "+
				"needs a --profile")
		f.StringVar(&o.profile, profileFlag, "", "certificates and tokens of that page: a `FILE` of lines `name: value`, "+
			"as for verbs that call a cluster")
	})
}

// watched shows the training on a page while it runs. The caller calls end when it is over.
func (o *trainOptions) watched(ctx context.Context, a *app, t *train.Options) (end func(), err error) {
	if o.watch.Addr == "" && o.profile != "" {
		return nil, option.Errorf("train: --profile: is for --watch-address: add that, or leave this out")
	}
	if o.watch.Addr == "" {
		return func() {}, nil
	}
	var sec secure.Options
	if err := readProfile(ctx, o.profile, nil, &sec); err != nil {
		return nil, err
	}
	p := page.New(nil)
	o.watch.Flag = "watch-address"
	shown, err := metrics.NewProcess("train", readVersion().Version).Serve(ctx, o.watch, sec, nil, p.Extra())
	if err != nil {
		return nil, option.Errorf("train: %w", err)
	}
	t.Watch = p.Use
	a.ui.Note("watch it at %s", strings.TrimSuffix(shown.URL, "metrics"))
	return func() { _ = shown.Close() }, nil // the training counts, even if the page fails
}

// inputFlags defines the flags of the training data, which submit has too.
func (o *trainOptions) inputFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.Data, "data", nil, "instances: a `FILE` of lines or a table (plain, gzip, bzip2, zstd, "+
			"xz), - or a folder made by ingest; repeated: several")
		textFlag(f, &o.Text)
		f.BoolVar(&o.ZeroBased, "zero-based", false, "feature indices count from 0")
		instanceWeightsFlag(f, &o.Weights)
		f.StringVar(&o.Hierarchy, "hierarchy", "",
			"a `FILE` of lines PARENT CHILD, learned (see --families) or from-labels (see "+
				"--path-separator) (default: flat)")
		f.StringVar(&o.Graph, "graph", "", "undirected class graph: a `FILE` of lines A B, one per edge")
		f.StringVar(&o.Test, "test", "", "evaluate the model on a `FILE` of test instances, read as --data")
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) {
		wordOptions(f, &o.Words)
		labelTextOptions(f, &o.LabelText)
		dagOption(f, &o.DAG)
		testLabelsOption(f, &o.TestLabels)
	})
	tableFlags(cmd, &o.Table)
}

// dagOption is the option on classes with several parents.
func dagOption(f *pflag.FlagSet, dag *string) {
	choiceFlag(f, dag, "dag", "graph", []string{"graph", "first-parent", "refuse"},
		"classes with several parents: use a graph, keep the first parent, or refuse")
}

// testLabelsOption is the option for the labels of test data.
func testLabelsOption(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "test-labels", "", "labels of a --test that is a matrix: a `FILE`, as the option labels")
}

// rareOptions are the options of a training that have no flags, beside those of its method and tables.
func (o *trainOptions) rareOptions(f *pflag.FlagSet) {
	dagOption(f, &o.DAG)
	testLabelsOption(f, &o.TestLabels)
	o.outputOptions(f)
	o.resourceOptions(f)
}

// instanceWeightsFlag is the flag of all verbs that ingest training data.
func instanceWeightsFlag(f *pflag.FlagSet, p *string) {
	f.StringVar(p, "instance-weights", "",
		"weight of each instance in the loss: a `FILE` of one number per line; 0 drops an "+
			"instance (default: all 1)")
}

// textFlag is the flag of verbs that read labelled texts.
func textFlag(f *pflag.FlagSet, isText *bool) {
	f.BoolVar(isText, "text", false, "lines are LABEL[,LABEL...]<TAB>text")
}

// wordOptions are the options on text of all verbs that ingest training data.
func wordOptions(f *pflag.FlagSet, w *dataset.Words) {
	termOptions(f, w)
	f.StringVar(&w.StopWords, "stop-words", dataset.None, "text: words to ignore: english, none, or those in a `FILE`")
	f.Var(&w.MinDF, "min-df", "text: ignore features in fewer instances: a count `N`, or a share with a decimal "+
		"point (default 2)")
	f.Var(&w.MaxDF, "max-df", "text: ignore features in more instances: a count `N`, or a share with a decimal "+
		"point (default 1.0)")
}

// labelTextOptions are the options on texts about labels.
func labelTextOptions(f *pflag.FlagSet, l *dataset.LabelText) {
	f.StringArrayVar(&l.Paths, "label-text", nil, "text: a `FILE` of lines LABEL<TAB>term, names or notes of classes "+
		"that become instances of theirs; repeated: several")
	f.StringSliceVar(&l.Columns, "label-text-columns", nil, "label-text files are tables: the columns `LABEL,TERM`")
	floatFlag(f, &l.Weight, "label-weight", 0, fmt.Sprintf("`WEIGHT` of each term of label-text in the loss (default %v)",
		dataset.DefaultLabelWeight), above0)
}

// termOptions are the options on the terms of texts.
func termOptions(f *pflag.FlagSet, w *dataset.Words) {
	f.StringVar(&w.Features, "features", "", "text: kinds of features joined by +: words, stems, chars (n-grams of "+
		"characters), each with an optional weight, as words+chars:0.5 (default words)")
	charsOption(f, w)
	languageOption(f, w)
	intFlag(f, &w.Ngrams, "ngrams", 1, 1, text.MaxNgrams,
		"text: use up to `N` consecutive words as features; 2 adds bigrams")
}

func charsOption(f *pflag.FlagSet, w *dataset.Words) {
	f.Var(&w.Chars, "chars", "text: lengths `FROM-TO` of the n-grams of characters (default 3-5)")
}

func languageOption(f *pflag.FlagSet, w *dataset.Words) {
	f.Var(&w.Languages, "language", "text: `CODE` of the stems' language; repeated: several: "+
		strings.Join(text.Stemmed(), ", "))
}

func (o *trainOptions) outputFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.Out, "out", "", "the `DIR` of the model")
		f.BoolVar(&o.Force, "force", false, "replace a finished model or a checkpoint")
		floatFlag(f, &o.Threshold, "threshold", 0,
			"smaller model, for prediction only: weights within `T` of the parent's become the "+
				"parent's; 0: keep all", atLeast0)
		bytesFlag(f, &o.ModelSize, "model-size", 0,
			"smaller model, for prediction only: at most `SIZE` on disk, as 100MB, unless that "+
				"costs accuracy")
		choiceFlag(f, &o.Cutoff, "cutoff", "auto", []string{"auto", "fit", "none"},
			"fit decision thresholds for label sets by cross-validation; auto: for multi-label "+
				"data")
		choiceFlag(f, &o.Calibrate, "calibrate", "none", train.Calibrations,
			"fit calibrated probabilities by cross-validation, for predict, eval and serve; "+
				"labels stay the same")
	})
	optionGroup(cmd, "Output", func(f *pflag.FlagSet) {
		methodOptions(f, &o.Said, method.GroupOutput, false)
		o.outputOptions(f)
	})
}

// outputOptions are the options on a model that have no flags.
func (o *trainOptions) outputOptions(f *pflag.FlagSet) {
	floatFlag(f, &o.CutoffTime, "cutoff-time", 0,
		"time budget `S` of the cross-validation for cut-offs, in CPU seconds; 0: a minute, "+
			"or 20 % of the training", atLeast0)
}

// jobFlags defines the flags that say what is trained and for how long. submit has them too.
func (o *trainOptions) jobFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Method", func(f *pflag.FlagSet) {
		o.Job = &taxonv1.Options{}
		choiceFlag(f, &o.Job.Method, "method", registry.Names()[0], registry.Names(), "what is trained: see Methods")
		methodOptions(f, &o.Said, method.GroupMethod, true)
		f.StringVar(&o.Goal, "goal", train.DefaultGoal,
			"`MEASURE` that label sets of multi-label data optimise: micro_f1, macro_f1, "+
				"mean_f1, or a key of eval --json")
	})
	flagGroup(cmd, "Stopping", func(f *pflag.FlagSet) {
		methodOptions(f, &o.Said, method.GroupStopping, true)
		f.BoolVar(&o.requireGap, "require-gap", false, "exit with status 3 if the training ended above --gap")
	})
	flagGroup(cmd, "Path to the optimum", func(f *pflag.FlagSet) { methodOptions(f, &o.Said, method.GroupPath, true) })
	for _, group := range []string{method.GroupMethod, method.GroupStopping, method.GroupPath} {
		optionGroup(cmd, group, func(f *pflag.FlagSet) { methodOptions(f, &o.Said, group, false) })
	}
}

func (o *trainOptions) resourceFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		threadsFlag(f, &o.Threads)
		bytesFlag(f, &o.Memory, "memory", 0,
			"memory limit of the training as a `SIZE`; what does not fit is streamed from disk "+
				"or refused (default: free memory)")
	})
	optionGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		methodOptions(f, &o.Said, method.GroupResources, false)
		o.resourceOptions(f)
	})
}

// resourceOptions are the options on the embedded store and its checkpoints.
func (o *trainOptions) resourceOptions(f *pflag.FlagSet) {
	intFlag(f, &o.Stores, "stores", 1, 1, 1024, "shards of the embedded parameter store: `N` changes no result")
	choiceFlag(f, &o.Store, "store", "memory", []string{"memory", "badger"}, "where the shards keep their values")
	floatFlag(f, &o.Pause, "checkpoint-seconds", 10, "least `S` seconds between checkpoints", above0)
	f.Lookup("checkpoint-seconds").Hidden = true // for tests that kill a short training
}

// options returns the options of the training.
func (o *trainOptions) options(a *app) *train.Options {
	t := o.Options
	t.Files, t.Again = fs.Local{In: a.stdin}, a.commandLine()
	t.Evaluate = func(ctx context.Context, model string) (*measure.Result, error) {
		e := testOptions(a, o)
		e.Model = model
		if o.EarlyStop != "" {
			e.Data.Path, e.Everything = o.EarlyStop, true
		}
		return evaluate.Run(ctx, e, progress.Discard{}) // the training's line is on the screen
	}
	if o.mr.on() {
		t.Remote = &driver.Training{Options: o.mr.Options, Threads: o.Threads, UI: a.ui}
	}
	return &t
}

// runTrain trains, evaluates if requested, and prints the report.
func runTrain(ctx context.Context, a *app, o *trainOptions) error {
	if err := o.mr.read(ctx); err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	t := o.options(a)
	end, err := o.watched(ctx, a, t)
	if err != nil {
		return err
	}
	report, err := train.Run(ctx, t, a.ui)
	end()
	if err != nil {
		return err
	}
	if why := aboveGap(report, registry.Number(o.Job, "gap"), o.moreOf); why != "" {
		a.ui.Warn("%s", why)
	}
	if err := printTrained(ctx, a, o, report); err != nil {
		return err
	}
	_, stationary := report.Own["tolerance_reached"]
	switch {
	case !o.requireGap || stationary && report.StoppedBy == "stationary":
		return nil
	case stationary:
		return exitf(exitGap, "%s: stopped by %s before the --x tolerance asked for", o.Out, report.StoppedBy)
	case report.Gap == nil:
		return exitf(exitGap, "%s: stopped by %s, and without an anchor there is no gap: leave out "+
			"--require-gap, or give --x anchor", o.Out, report.StoppedBy)
	case report.StoppedBy != "gap":
		return exitf(exitGap, "%s: stopped by %s at gap %.3g, above the %.3g asked for", o.Out, report.StoppedBy, *report.Gap,
			registry.Number(o.Job, "gap"))
	}
	return nil
}

// midst explains why the weights of an earlier sweep may have been better.
const midst = "the time limit cut a later sweep short"

// aboveGap explains why a training ended above the requested gap, and what to do. more describes
// how to raise a flag and continue. It is empty if the training ended as intended.
func aboveGap(r *model.Report, gap float64, more func(flag string) string) string {
	if w := r.Own["warning"]; w != nil { // the method's own warning says more
		return strings.Trim(string(w), `"`)
	}
	if r.StoppedBy == "gap" || r.Gap == nil && r.StoppedBy == "stationary" {
		return ""
	}
	what := ""
	switch r.StoppedBy {
	case "max_sweeps":
		what = more("--max-sweeps")
	case "max_time":
		what = more("--max-time")
	case "early_stop": // the user asked for it
		return ""
	case "stationary":
		what = "the gap had stopped falling, so more sweeps would not help; the model is complete, and this is its gap; a " +
			"smaller C or unit-length instances may reach a lower one"
		if string(r.Own["schedule"]) == `"twoblock"` && r.Own["anchor"] == nil && r.Nodes > r.Terminals { // a tree
			what += ", or --x schedule=parity"
		}
	}
	if r.Gap == nil {
		return fmt.Sprintf("stopped by %s: %s", r.StoppedBy, what)
	}
	if b := r.Better; b != nil {
		what = fmt.Sprintf("sweep %d had %.3g; %s, so a little more time helps: %s", b.Sweep, b.Gap, midst, what)
	}
	return fmt.Sprintf("stopped by %s at gap %.3g, above the %.3g asked for: %s", r.StoppedBy, *r.Gap, gap, what)
}

// moreOf describes how to train a finished model further, whose duals no longer exist.
func (o *trainOptions) moreOf(flag string) string {
	if o.Threshold > 0 || o.ModelSize > 0 || !registry.Has(o.Job.GetMethod(), method.WarmStart.Name) {
		return "to train anew raise " + flag + " and add --force"
	}
	return fmt.Sprintf("to begin at its weights raise %s, add --warm-start %s and choose another --out; "+
		"--force trains anew", flag, o.Out)
}

// fromJobFile marks a flag that is required unless a job file is given, which may contain it.
const fromJobFile = "taxon_from_job_file"

// newTrainVerb returns train with the flag for a job file, which may give its other flags.
func newTrainVerb(a *app) *cobra.Command {
	var o trainOptions
	cmd, file := newTrainCmd(a, &o), ""
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&file, "job", "", "read options from a `FILE` of lines `option: value` (YAML), as tune writes; flags "+
			"override them")
	})
	marks := cmd.Flags().Lookup("data").Annotations
	delete(marks, cobra.BashCompOneRequiredFlag)
	marks[fromJobFile] = nil
	train := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := readJobFile(cmd, file, o.validate); err != nil {
			return err
		}
		if !cmd.Flags().Changed("data") {
			return option.Errorf("train: flag --data is required: see `taxon help train`")
		}
		return train(cmd, args)
	}
	return cmd
}

// warmFlags defines flags that only train has, because a cluster cannot read the model.
func (o *trainOptions) warmFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Path to the optimum", func(f *pflag.FlagSet) {
		f.StringVar(&o.EarlyStop, "early-stop", "",
			"stop when --goal on held-out instances, a `FILE`, has not improved for three "+
				"evaluations (see --eval-every)")
		f.StringVar(&o.Warm, "warm-start", "",
			"start from the weights of a `MODEL`, of other data or options: fewer sweeps to the "+
				"same gap")
	})
}

// trainedDocument is the JSON output of `taxon train`. It contains the report and, with test data,
// the measures.
type trainedDocument struct {
	*model.Report
	// Test is nil without test data.
	Test *measure.Result
}

// MarshalJSON writes report and measures as one object.
func (d trainedDocument) MarshalJSON() ([]byte, error) {
	return model.JoinObjects(d.Report, struct {
		Test *measure.Result `json:"test,omitempty"`
	}{d.Test})
}

// printTrained evaluates on the test data and prints the result.
func printTrained(ctx context.Context, a *app, o *trainOptions, r *model.Report) error {
	d := trainedDocument{Report: r}
	if o.Test != "" {
		var err error
		if d.Test, err = evaluate.Run(ctx, testOptions(a, o), a.ui); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(d)
	}
	printReport(a, o.Out, r)
	if d.Test != nil {
		printEval(a, testOptions(a, o), o.Out, d.Test)
	}
	return nil
}

func testOptions(a *app, o *trainOptions) evaluate.Options {
	e := evaluate.Options{Everything: a.json, Model: o.Out, Data: predict.Input{
		Path: o.Test, AsTrained: true, Table: o.TestTable(), ZeroBased: o.ZeroBased, ZeroGiven: o.ZeroBased,
		Threads: o.Threads, Files: fs.Local{In: a.stdin},
	}}
	if goal, _ := measure.Find(o.Goal); goal != nil {
		e.At = goal.Further()
	}
	return e
}

func printReport(a *app, out string, r *model.Report) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.stdout, "  %-12s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(a.stdout, "%s\n", a.style.Bold(out))
	row("method", "%s", registry.Words(r.Method, r.Own))
	row("data", "%s, %s, %s", format.Counted(int64(r.Instances), "instance", "instances"),
		format.Counted(int64(r.Features), "feature", "features"),
		format.Counted(int64(r.Terminals), "class", "classes"))
	reached, stationary := r.Own["tolerance_reached"]
	switch {
	case r.Gap != nil:
		row("gap", "%.3g (objective %.9g, dual %.9g)", *r.Gap, r.Objective, *r.Dual)
	case stationary:
		row("objective", "%.9g (%s)", r.Objective, distanceText(reached))
	case r.Own["anchor"] != nil:
		row("objective", "%.9g (without an anchor there is no gap)", r.Objective)
	default:
		row("objective", "%.9g (method %s certifies no gap)", r.Objective, r.Method)
	}
	if n, ok := r.Own["colours"]; ok {
		row("colours", "%s", n)
	}
	for _, c := range r.CapsBefore {
		row("before", "%s", option.Flags(c.String()))
	}
	row("stopped by", "%s, after %s", r.StoppedBy, format.Counted(int64(r.Sweeps), "sweep", "sweeps"))
	took := format.Seconds(r.Seconds) + ", " + format.Seconds(r.CPUSeconds) + " of CPU"
	if r.PeakRSSBytes > 0 { // unknown for a cluster's processes
		took += ", " + format.Bytes(r.PeakRSSBytes) + " of memory at most"
	}
	row("time", "%s", took)
	if c := r.Pruned; c != nil {
		row("pruned", "to %s: %s", format.Bytes(fs.FolderBytes(out)), c.String())
	}
	row("weights", "sha256 %s", r.WeightsSHA256)
}

// distanceText describes, from the report of a training without a bound, its distance from the
// limit.
func distanceText(number json.RawMessage) string {
	var x *float64
	if json.Unmarshal(number, &x) != nil || x == nil {
		return "too few sweeps to say how far from a fixed point"
	}
	return fmt.Sprintf("within %.2g of a fixed point", *x)
}
