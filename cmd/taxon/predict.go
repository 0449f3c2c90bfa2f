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
		choiceFlag(f, &o.Format, "format", "lines", predict.Formats,
			"plain lines of labels, or a table with number, id, labels, scores and paths")
		floatFlag(f, &o.MinProbability, "min-probability", 0,
			"predict the deepest class whose probability, with all classes below it, is at least "+
				"`P`; else nothing", above0to1)
		f.BoolVar(&o.Scores, "scores", false, "write label:score, a probability where the model gives those")
		predictiveFlag(f, &o.Predictive)
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.Input.Threads) })
	require(cmd, "model", "data")
	return cmd
}

// inputFlags defines the flags that describe the instances for a model.
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
	f.BoolVar(p, "predictive", false, "predict with the posterior's variances, not its means alone (models of "+
		strings.Join(registry.Precise(false), ", ")+")")
}

// cutoffFlag defines --cutoff.
func cutoffFlag(f *pflag.FlagSet, c *predict.Cutoff) {
	f.Var(&cutoffValue{c: c}, "cutoff",
		"decision rule: argmax, instance, scut, rcut, rcut=K, top=K, or a least margin `S` "+
			"(default: the model's)")
}

// cutoffValue is the value of the flag cutoff.
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
