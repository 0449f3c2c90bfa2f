package main

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/eval"
	"taxon/internal/evaluate"
	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/jobspec"
	"taxon/internal/mapreduce/driver"
	"taxon/internal/tell"
	"taxon/internal/train"
	taxonv1 "taxon/proto/taxon/v1"
)

// trainOptions are the flags of train.
type trainOptions struct {
	data      []string
	text      bool
	zeroBased bool
	weights   string // of the instances: a file
	hierarchy string
	graph     string
	dag       string
	out       string
	force     bool
	threshold float64 // of the model that is kept; 0: whole
	shift     float64 // of rare classes' scores
	cutoff    string  // whether to fit cut-offs: auto, fit, none
	test      string

	method     string
	loss       string
	c          float64
	bias       float64
	prune      string
	schedule   string
	stiffness  string
	momentum   string
	epochs     int
	gap        float64
	requireGap bool
	maxSweeps  int
	maxTime    float64
	seed       uint64
	anchor     float64
	colouring  string
	inner      float64 // weight of the edges between internal nodes
	positive   string  // weight of the positives' losses
	evalEvery  int
	warm       string // a model to begin at

	threads    int
	memory     int64
	stores     int
	store      string
	checkpoint int
	pause      float64 // least seconds between checkpoints

	mr mapReduceOptions

	given func(flag string) bool // on the command line or in a job's file; nil: nobody gave any
}

func newTrainCmd(a *app) *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use:     "train --data FILE --out DIR",
		GroupID: groupModel,
		Short:   "train the classifiers of all classes jointly, to a certified gap",
		Long: "Trains one linear classifier per class, regularised along the class structure (rr-svm, rr-lr), each for itself (bsvm, blr), one per edge of the tree, against its siblings (td), or all against each other (mlr), until the certified " +
			"relative duality gap of the whole joint problem is below --gap. The same data, options and seed give the same bytes, " +
			"whatever the number of threads or store shards. Ctrl-C keeps a checkpoint; the same command goes on from it, with another --gap, --max-sweeps or --max-time too, and does nothing when the model is finished.",
		Example: "taxon train --data train.svm.xz --hierarchy tree.txt --out model\n" +
			"taxon train --data train.txt --text --instance-weights weights.txt --hierarchy tree.txt --C 0.3 --test test.txt --out model --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.given = cmd.Flags().Changed
			if err := o.settle(cmd.Flags().Changed("loss")); err != nil {
				return err
			}
			return runTrain(cmd.Context(), a, &o)
		},
	}
	o.defineFlags(cmd)
	require(cmd, "data", "out")
	return cmd
}

func (o *trainOptions) defineFlags(cmd *cobra.Command) {
	o.inputFlags(cmd)
	o.outputFlags(cmd)
	o.jobFlags(cmd)
	o.warmFlags(cmd)
	o.resourceFlags(cmd)
	o.mr.flags(cmd, engineEmbedded, engineEmbedded, engineMapReduce)
}

// inputFlags say what is trained on; submit has them too.
func (o *trainOptions) inputFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.data, "data", nil, "instances: a `FILE` (libsvm or XMC lines; plain, gzip, zstd, xz), - for standard input, or a folder made by ingest; repeated: read one after the other")
		f.BoolVar(&o.text, "text", false, "lines are LABEL[,LABEL...]<TAB>text")
		f.BoolVar(&o.zeroBased, "zero-based", false, "feature indices count from 0")
		instanceWeightsFlag(f, &o.weights)
		f.StringVar(&o.hierarchy, "hierarchy", "", "class structure: a `FILE` with a line PARENT CHILD an edge (default: flat)")
		choiceFlag(f, &o.dag, "dag", "graph", []string{"graph", "first-parent", "refuse"}, "if a class has several parents: read the hierarchy as a graph, keep the first parent named, or refuse")
		f.StringVar(&o.graph, "graph", "", "undirected class graph: a `FILE` with a line A B an edge")
		f.StringVar(&o.test, "test", "", "instances (or text, as --data) to evaluate the model on at the end: a `FILE`")
	})
}

// instanceWeightsFlag is the flag of all verbs that ingest training data.
func instanceWeightsFlag(f *pflag.FlagSet, p *string) {
	f.StringVar(p, "instance-weights", "", "weights of the losses of the instances: a `FILE` with a number a line for each, in order; 0 leaves an instance out, 2 counts it twice (default: all 1)")
}

func (o *trainOptions) outputFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.out, "out", "", "the `DIR` of the model")
		f.BoolVar(&o.force, "force", false, "train anew over a finished model or a checkpoint")
		floatFlag(f, &o.threshold, "threshold", 0, "keep a smaller model, for prediction only: where a weight of a class differs from its parent's by less than `T`, it becomes the parent's, and scores change a little; 0: keep the trained weights", atLeast0)
		floatFlag(f, &o.shift, "prior-shift", 0, "raise the scores of rare classes by `T` ln(n_max/n), n being the class's training instances, n_max those of the largest class; tune finds it", atLeast0)
		choiceFlag(f, &o.cutoff, "cutoff", "auto", []string{"auto", "fit", "none"}, "fit the cut-offs that turn scores into label sets, on instances held out of a second, short training; auto: for multi-label data")
	})
}

// jobFlags say what is trained, and for how long; submit has them too.
func (o *trainOptions) jobFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Method", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.method, "method", "rr-svm", registry.Names(), "recursive regularisation along the structure by hinge or logistic loss (rr-svm, rr-lr), the same one-versus-rest (bsvm, blr), one-versus-rest among the children of each node, top down (td), or soft-max regression over all classes (mlr)")
		choiceFlag(f, &o.loss, "loss", "hinge", []string{"hinge", "squared-hinge", "logistic"}, "loss of an instance; rr-lr and blr have the logistic one")
		floatFlag(f, &o.c, "C", 1, "weight of the losses against the regularisation", costRange)
		floatFlag(f, &o.bias, "bias", 1, "value of the bias feature, 0 for none", biasRange)
		choiceFlag(f, &o.prune, "prune", "empty", []string{"empty", "none"}, "leaves of the hierarchy without instances: leave them out, or train them on negatives alone")
		floatFlag(f, &o.anchor, "anchor", 0.01, "graphs: pull of every class with edges towards zero; 0 is the papers' objective, without a certificate", atLeast0)
		f.StringVar(&o.positive, "positive-weight", "1", "weight of the losses of a class's own instances: a `NUMBER`, or balanced (how rare they are, at most 100)")
		floatFlag(f, &o.inner, "internal-weight", 1, "weight of the edges between internal nodes", above0)
		f.Uint64Var(&o.seed, "seed", 0, "seed of the order in which instances are visited: another `N` gives other weights, equally within --gap of the optimum")
	})
	flagGroup(cmd, "Stopping", func(f *pflag.FlagSet) {
		floatFlag(f, &o.gap, "gap", 1e-2, "stop when no weights could lower the objective P by more than this share: the certified relative gap (P-D)/P, D being the dual", above0to1)
		intFlag(f, &o.maxSweeps, "max-sweeps", 0, 0, math.MaxInt32, "stop after `N` sweeps, 0 for no cap")
		floatFlag(f, &o.maxTime, "max-time", 0, "after `S` seconds solve nothing more, 0 for no cap: tasks under way end, one pass over the data certifies what is there, and the weights are written", atLeast0)
		f.BoolVar(&o.requireGap, "require-gap", false, "exit with status 3 if the training ended above --gap: by --max-sweeps or --max-time, or stationary, as the gap had stopped falling")
	})
	flagGroup(cmd, "Path to the optimum", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.schedule, "schedule", "twoblock", []string{"twoblock", "parity", "colour", "jacobi"}, "what a sweep solves at a time: twoblock, all classes and then all internal nodes at once; parity, even and odd levels in turn; colour, sets of nodes without an edge between them in turn; jacobi, all nodes side by side")
		choiceFlag(f, &o.colouring, "colouring", "largest-first", []string{"largest-first", "smallest-last", "dsatur"}, "colour: order in which nodes get their colours, greedily")
		choiceFlag(f, &o.stiffness, "stiffness", "support", []string{"support", "full"}, "twoblock: on which features a class holds back its parent's step: those of its support vectors, or all, which is slower")
		choiceFlag(f, &o.momentum, "momentum", "fista", []string{"fista", "none"}, "twoblock: extrapolate the internal nodes from sweep to sweep, or don't")
		intFlag(f, &o.epochs, "epochs", 0, 0, 1000, "at least `N` passes over the data for each class in a sweep; 0: three, with the squared hinge one in the first two sweeps")
		intFlag(f, &o.evalEvery, "eval-every", 0, 0, math.MaxInt32, "evaluate on --test every `N` sweeps, into trace.jsonl; 0: only at the end")
	})
}

func (o *trainOptions) resourceFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		threadsFlag(f, &o.threads)
		bytesFlag(f, &o.memory, "memory", 0, "`SIZE` that the training may take, refused beforehand if it would not fit (default: what is free)")
		intFlag(f, &o.stores, "stores", 1, 1, 1024, "shards of the embedded parameter store: `N` changes no result")
		choiceFlag(f, &o.store, "store", "memory", []string{"memory", "badger"}, "where the shards keep their values")
		intFlag(f, &o.checkpoint, "checkpoint-every", 4, 1, math.MaxInt32, "`N` sweeps between checkpoints, and at least 10 s")
		floatFlag(f, &o.pause, "checkpoint-seconds", 10, "least `S` seconds between checkpoints", above0)
		f.Lookup("checkpoint-seconds").Hidden = true // for tests that kill a short training
	})
}

// settle makes method and loss agree: the logistic loss belongs to rr-lr and blr, that of the soft-max to mlr.
func (o *trainOptions) settle(chosen bool) error {
	switch o.method {
	case "rr-lr", "blr":
		if chosen && o.loss != "logistic" {
			return exit.Usagef("train: --method %s has the logistic loss: leave out --loss %s, or use --method %s", o.method, o.loss, map[string]string{"rr-lr": "rr-svm", "blr": "bsvm"}[o.method])
		}
		o.loss = "logistic"
	case "mlr": // it refuses --loss
		o.loss = "softmax"
	default:
		if o.loss == "logistic" {
			return exit.Usagef("train: --loss logistic goes with --method %s", cmp.Or(map[string]string{"rr-svm": "rr-lr", "bsvm": "blr"}[o.method], "rr-lr or blr"))
		}
	}
	return nil
}

// check refuses combinations that no single flag can see.
func (o *trainOptions) check() error {
	for _, d := range o.data {
		if d == "" {
			return exit.Usagef("train: --data \"\": name a file, or - for standard input")
		}
	}
	if err := oneStdin("train", "--data, --hierarchy, --graph and --test", append([]string{o.hierarchy, o.graph, o.test}, o.data...)...); err != nil {
		return err
	}
	if _, err := jobspec.ParsePositiveWeight(o.positive); err != nil {
		return exit.Usagef("train: --%w", err)
	}
	if err := o.checkUseless(); err != nil {
		return err
	}
	switch {
	case o.shift > 0 && o.bias == 0:
		return exit.Usagef("train: --prior-shift goes into the weights of the bias feature: leave out --bias 0, or the shift")
	case o.hierarchy != "" && o.graph != "":
		return exit.Usagef("train: --hierarchy and --graph: a training has one structure; give one of them")
	case o.graph != "" && o.schedule == "parity":
		return exit.Usagef("train: --schedule parity needs a tree, as a graph has no levels: use twoblock or colour")
	case o.evalEvery > 0 && o.test == fs.Stdin:
		return exit.Usagef("train: --eval-every reads the test data many times: give --test a file instead of standard input")
	case o.out == "" || o.out == "-":
		return exit.Usagef("train: --out %q: a model is a folder, give its path", o.out)
	case o.evalEvery > 0 && o.test == "":
		return exit.Usagef("train: --eval-every needs --test FILE")
	case len(o.data) > 1 && o.ingested():
		return exit.Usagef("train: a folder made by ingest can't be joined with other --data")
	case o.weights == fs.Stdin:
		return exit.Usagef("train: --instance-weights -: give a file")
	case o.weights != "" && o.ingested():
		return exit.Usagef("train: --instance-weights: %s is ingested already: give them to `taxon ingest`", o.data[0])
	case o.text && o.zeroBased:
		return exit.Usagef("train: --text has no indices: leave out --zero-based")
	}
	return nil
}

// checkUseless refuses flags that would change nothing.
func (o *trainOptions) checkUseless() error {
	given := o.given
	if given == nil {
		return nil
	}
	for _, option := range registry.Refused(o.method) {
		if given(option) {
			return exit.Usagef("train: --%s means nothing to --method %s: leave it out, or use one of %s", option, o.method, strings.Join(registry.Taking(option), ", "))
		}
	}
	switch {
	case given("colouring") && o.schedule != "colour":
		return exit.Usagef("train: --colouring is for the colour schedule: add --schedule colour, or leave it out")
	case given("anchor") && o.graph == "" && o.hierarchy == "": // flat methods take what others do
		return exit.Usagef("train: --anchor is for class graphs: add --graph FILE, or leave it out")
	case o.ingested() && given("text"):
		return exit.Usagef("train: --text: %s is ingested already: leave it out", o.data[0])
	case o.ingested() && given("zero-based"):
		return exit.Usagef("train: --zero-based: %s is ingested already: leave it out", o.data[0])
	}
	return nil
}

// ingested says whether --data is a folder of shards.
func (o *trainOptions) ingested() bool { return train.Ingested(o.data) }

// proto are the options as the job has them.
func (o *trainOptions) proto() *taxonv1.Options {
	return &taxonv1.Options{
		Method: o.method, Loss: o.loss, Schedule: o.schedule, C: o.c, Bias: o.bias, Gap: o.gap,
		MaxSweeps: uint32(o.maxSweeps), MaxSeconds: o.maxTime, Prune: o.prune, Seed: o.seed,
		Stiffness: o.stiffness, Momentum: o.momentum, InnerEpochs: uint32(o.epochs),
		EvalEvery: uint32(o.evalEvery), CheckpointSweeps: uint32(o.checkpoint),
		Anchor: o.anchor, InternalWeight: o.inner, Colouring: o.colouring, PositiveWeight: o.positive,
	}
}

// options are those of the training.
func (o *trainOptions) options(a *app) *train.Options {
	t := &train.Options{
		Job: o.proto(), Data: o.data, Text: o.text, ZeroBased: o.zeroBased, Weights: o.weights, Hierarchy: o.hierarchy, Graph: o.graph, DAG: o.dag,
		AnchorGiven: o.given != nil && o.given("anchor"), Warm: o.warm,
		Out: o.out, Force: o.force, Threshold: o.threshold, Shift: o.shift, Cutoff: o.cutoff, Test: o.test,
		Threads: o.threads, Memory: o.memory, Stores: o.stores, Store: o.store, Pause: o.pause,
		Files: fs.Local{In: a.stdin}, Again: a.commandLine(),
		Evaluate: func(ctx context.Context, model string) (*eval.Result, error) {
			e := testOptions(a, o)
			e.Model = model
			return evaluate.Run(ctx, e, tell.Silent{}) // the training's line is on the screen
		},
	}
	if o.mr.on() {
		t.Elsewhere = &driver.Training{Options: o.mr.Options, Threads: o.threads, UI: a.ui,
			Driver: driver.Driver{Dir: o.mr.drive, Job: o.mr.driveID, Out: o.out}}
	}
	return t
}

// runTrain is the verb: it trains, evaluates if asked to, and prints the report.
func runTrain(ctx context.Context, a *app, o *trainOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.checkMapReduce("train"); err != nil {
		return err
	}
	report, err := train.Run(ctx, o.options(a), a.ui)
	if err != nil {
		return err
	}
	if report.StoppedBy != "gap" && !(report.Gap == nil && report.StoppedBy == "stationary") {
		a.ui.Warn("%s", aboveGap(report, o.gap, o.moreOf))
	}
	if err := printTrained(ctx, a, o, report); err != nil {
		return err
	}
	if o.requireGap && report.Gap == nil {
		return exit.Gapf("%s: stopped by %s, and without an anchor there is no gap: leave out --require-gap, or give --anchor", o.out, report.StoppedBy)
	}
	if o.requireGap && report.StoppedBy != "gap" {
		return exit.Gapf("%s: stopped by %s at gap %.3g, above the %.3g asked for", o.out, report.StoppedBy, *report.Gap, o.gap)
	}
	return nil
}
