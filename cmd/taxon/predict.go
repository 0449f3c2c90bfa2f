package main

import (
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/model/predict"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

func newPredictCmd(a *app) *cobra.Command {
	var o predict.Options
	cmd := &cobra.Command{
		Use:     "predict --model DIR --data FILE --out FILE",
		GroupID: groupModel,
		Short:   "label instances with a model",
		Long: "Scores every class exactly and writes a line an instance, in input order: its labels, best first, separated " +
			"by commas. A line of the input is an instance unless it is empty or a comment. A line with only a blank or tab " +
			"is an instance without features. " +
			"A model of single-label data gives the best class. A model of multi-label data gives all classes above a " +
			"threshold that it predicts for each instance, or the best class " +
			"if there is none. --top K gives the K best, --cutoff sets another rule, and both together give the K best of the " +
			"classes by that rule. Instances are read as a stream, and are labelled whenever the input pauses. Labels in " +
			"the input are ignored.",
		Example: "taxon predict --model model --data new.csv --id-column sku --format csv --top 3 --out labels.csv\n" +
			"printf '\\tthe small dog barked\\n' | taxon predict --model wordnet --data - --text --top 5 --scores",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Input.ZeroGiven, o.Input.Files, o.Stdout = cmd.Flags().Changed("zero-based"), fs.Local{In: a.stdin}, a.stdout
			if o.Out == fs.Stdin && a.json {
				return option.Errorf("predict: --json prints to standard output: name a file for the labels with --out")
			}
			r, err := predict.Run(cmd.Context(), o, a.ui)
			if err != nil {
				return err
			}
			return a.printNote(r, "%s labelled in %s", format.Counted(r.Instances, "instance", "instances"),
				format.Seconds(r.Seconds))
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.Model, "model", "", "the `DIR` of a model")
		inputFlags(f, &o.Input)
	})
	tableFlags(cmd, &o.Input.Table)
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.Out, "out", fs.Stdin, "write to `FILE`, or - for standard output")
		intFlag(f, &o.Top, "top", 0, 0, math.MaxInt32, "give the `K` best classes of each instance, 0 for the labels "+
			"that the rule gives")
		cutoffFlag(f, &o.Cutoff)
		choiceFlag(f, &o.Format, "format", "lines", predict.Formats, "lines of labels, or a table: a row an instance with "+
			"its number, id, labels, scores and their paths in the hierarchy")
		floatFlag(f, &o.MinProbability, "min-probability", 0, "answer with the deepest class of the hierarchy whose "+
			"probability, with all below it, is at least `P`; with nothing where none is", above0to1)
		f.BoolVar(&o.Scores, "scores", false, "write label:score, a probability where the model gives those")
		predictiveFlag(f, &o.Predictive)
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.Input.Threads) })
	require(cmd, "model", "data")
	return cmd
}

// inputFlags are the flags that say how instances are read for a model.
func inputFlags(f *pflag.FlagSet, o *predict.Input) {
	f.StringVar(&o.Path, "data", "", "instances: a `FILE`, a folder made by ingest, or - for standard input")
	f.BoolVar(&o.Text, "text", false, "lines are [LABEL]<TAB>text")
	f.BoolVar(&o.ZeroBased, "zero-based", false, "feature indices count from 0 (default: as in the training data)")
}

func threadsFlag(f *pflag.FlagSet, threads *int) {
	intFlag(f, threads, "threads", 0, 0, math.MaxInt16, "threads to use, 0 for all cores; `N` changes no result")
}

// predictiveFlag defines --predictive.
func predictiveFlag(f *pflag.FlagSet, p *bool) {
	f.BoolVar(p, "predictive", false, "models of "+strings.Join(registry.Precise(false), ", ")+": predict with what the "+
		"training left uncertain, by each class's variances, instead of by the means alone. With a binary likelihood and "+
		"--x inference=map, probabilities are less sure of themselves far from the training data; else they follow [NIPS] "+
		"equation 5, which counts the predicted label as evidence, so that they are often surer")
}

// cutoffFlag defines --cutoff.
func cutoffFlag(f *pflag.FlagSet, c *predict.Cutoff) {
	f.Var(&cutoffValue{c: c}, "cutoff", "which classes an instance gets. argmax: the best. The others use what the "+
		"training has fitted. instance: all above a threshold for this instance; scut: all above the class's threshold; "+
		"rcut: the K best, with one K for all instances. "+
		"rcut=K or top=K: the K best. zero or a number `S`: all with a margin above it; S is a margin even where --scores "+
		"are probabilities, as 0.3 for above 0.574 by 1/(1+exp(-S)) (default: argmax, or instance for multi-label data)")
}

type cutoffValue struct {
	c    *predict.Cutoff
	text string
}

func (v *cutoffValue) String() string { return v.text }
func (v *cutoffValue) Type() string   { return "rule" }
func (v *cutoffValue) Set(s string) error {
	c, err := predict.ParseCutoff(s)
	if err != nil {
		return valuef("%s", err)
	}
	*v.c, v.text = c, s
	return nil
}
