package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/model/explain"
)

// newExplainCmd returns the verb explain, which shows why a model predicts a class.
func newExplainCmd(a *app) *cobra.Command {
	var o explain.Options
	cmd := &cobra.Command{
		Use:     "explain --model DIR (--text TEXT... | --data FILE --row N)",
		GroupID: groupModel,
		Short:   "why a model gives an instance its label",
		Long: "Splits the score of the predicted class into the parts that each level adds, along its path in the " +
			"hierarchy from the root to the class. " +
			"For each level it lists the words or features for and against the class. A class's weights are the sum of the " +
			"levels' changes, so the parts add up to the score. With top-down descent each level is an edge with its margin, " +
			"and the score is the smallest margin. " +
			"Models of " + strings.Join(registry.Precise(false), ", ") + " also show what they have learned about each " +
			"family: how far children's weights are from their parent's. Those of " + strings.Join(registry.Precise(true),
			", ") + " have this for each feature: which of the instance's features the children share, and which they " +
			"differ in, compared with the distance expected of equally frequent features. " +
			"The runners-up follow with their scores. --label explains another class instead. " +
			"With --text each argument is an instance of its own; with --json several of them make one list.",
		Example: "taxon explain --model wordnet --text 'the small dog barked'\n" +
			"taxon explain --model model --data test.svm.xz --row 17 --json",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Texts, o.Data.ZeroGiven, o.Data.Files = args, cmd.Flags().Changed("zero-based"), fs.Local{In: a.stdin}
			all, err := explain.Run(cmd.Context(), o, a.ui)
			switch {
			case err != nil:
				return err
			case a.json && len(all) == 1:
				return a.printJSON(all[0])
			case a.json:
				return a.printJSON(all)
			}
			for i, e := range all {
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				printExplanation(a, e)
			}
			return nil
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.Model, "model", "", "the `DIR` of a model")
		f.BoolVar(&o.Data.Text, "text", false, "instances are texts: the arguments, or LABEL<TAB>text lines of --data")
		f.StringVar(&o.Data.Path, "data", "", "instances: a `FILE`, a folder made by ingest, or - for standard input")
		f.BoolVar(&o.Data.ZeroBased, "zero-based", false, "feature indices count from 0 (default: as in the training data)")
		intFlag(f, &o.Row, "row", 1, 1, math.MaxInt32, "explain the `N`th instance of --data; empty lines do not count")
		f.StringVar(&o.Label, "label", "", "explain the class `NAME` instead of the predicted one")
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) { formatOption(f, &o.Data.Table) })
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		intFlag(f, &o.Top, "top", 5, 1, 1<<20, "show the `K` best classes")
		intFlag(f, &o.Words, "words", 5, 0, 1<<20, "show at most `N` words for and as many against at each level")
	})
	require(cmd, "model")
	return cmd
}

// printExplanation prints an explanation as text.
func printExplanation(a *app, e *explain.Explanation) {
	fmt.Fprintf(a.stdout, "%s  %+.3f\n", a.style.Bold(e.Label), e.Score)
	depth := 0
	for _, l := range e.Path {
		name := l.Name
		switch l.Kind {
		case "virtual":
			name = "(above all)"
		case "spawned":
			name += " itself"
		}
		fmt.Fprintf(a.stdout, "%*s%s  %+.3f", 2+2*depth, "", name, l.Gain)
		if l.Bias != 0 {
			fmt.Fprintf(a.stdout, "  (bias %+.3f)", l.Bias)
		}
		fmt.Fprintln(a.stdout)
		printTerms(a, depth, "for    ", l.For)
		printTerms(a, depth, "against", l.Against)
		printPrecisions(a, depth, l)
		depth++
	}
	fmt.Fprintln(a.stdout, "best classes")
	for _, s := range e.Best {
		fmt.Fprintf(a.stdout, "  %+.3f  %s\n", s.Score, s.Label)
	}
}

// printTerms prints the features on one side.
func printTerms(a *app, depth int, side string, terms []explain.Term) {
	if len(terms) == 0 {
		return
	}
	var parts []string
	for _, t := range terms {
		parts = append(parts, fmt.Sprintf("%s %+.3f", featureName(t.Word, t.Feature), t.Gain))
	}
	fmt.Fprintf(a.stdout, "%*s%s  %s\n", 6+2*depth, "", side, strings.Join(parts, ", "))
}

// featureName returns the word of a feature or, without one, its index.
func featureName(word string, feature uint32) string {
	switch {
	case word != "":
		return word
	case feature == 0:
		return "bias"
	}
	return fmt.Sprintf("feature %d", feature)
}

// printPrecisions prints the standard deviation of a level's weights around the weights of the
// level above.
func printPrecisions(a *app, depth int, l explain.Level) {
	switch {
	case l.OfItself:
		fmt.Fprintf(a.stdout, "%*sweights within %.3g of those above\n", 6+2*depth, "", 1/math.Sqrt(l.Precision))
	case l.Precision > 0: // of its children
		fmt.Fprintf(a.stdout, "%*schildren's weights within %.3g of these\n", 6+2*depth, "", 1/math.Sqrt(l.Precision))
	}
	for _, side := range []struct {
		name   string
		traits []explain.Trait
	}{{"shared within (expected)  ", l.Shared}, {"apart by (expected)       ", l.Apart}} {
		var parts []string
		for _, t := range side.traits {
			parts = append(parts, fmt.Sprintf("%s %.3g (%.3g)", featureName(t.Word, t.Feature), 1/math.Sqrt(t.Precision),
				1/math.Sqrt(t.Expected)))
		}
		if len(parts) > 0 {
			fmt.Fprintf(a.stdout, "%*s%s%s\n", 6+2*depth, "", side.name, strings.Join(parts, ", "))
		}
	}
}
