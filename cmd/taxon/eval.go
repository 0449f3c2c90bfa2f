package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/model/evaluate"
	"taxon/internal/model/measure"
	"taxon/internal/ui/console"
	"taxon/internal/ui/format"
)

func newEvalCmd(a *app) *cobra.Command {
	var o evaluate.Options
	var compare []string
	cmd := &cobra.Command{
		Use:     "eval (--model DIR | --pred FILE [--rank FILE]) --data FILE",
		GroupID: groupModel,
		Short:   "measure predictions: flat, ranked and hierarchical figures",
		Long: "Predicts labelled instances with a model, or reads predictions from files, and measures them: micro and " +
			"macro F1, zero-one loss, " +
			"precision at k and nDCG, the same by propensities, and with a class structure (the model's own, or " +
			"--hierarchy) the hierarchical losses. " +
			"Macro-F1 averages over the labels of the training data if a model is given, else over those of --data. " +
			"--compare measures a second model or prediction file on the same instances and tests whether the two differ.",
		Example: "taxon eval --model model --data test.svm.xz --by-size --reliability reliability.svg\n" +
			"taxon eval --pred labels.txt --data test.svm.xz --hierarchy tree.txt --compare other-model --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneStdin("eval", "--data, --pred, --rank, --compare and --hierarchy", append(compare, o.Data.Path,
				o.Predictions, o.Rankings, o.Hierarchy)...); err != nil {
				return err
			}
			if len(compare) > 0 {
				o.Compare, o.Others = compare[0], compare[1:]
			}
			o.Data.ZeroGiven, o.Data.Files, o.Everything = cmd.Flags().Changed("zero-based"), fs.Local{In: a.stdin}, a.json
			r, err := evaluate.Run(cmd.Context(), o, a.ui)
			if err != nil {
				return err
			}
			return a.print(r, func() { printEval(a, o, cmp.Or(o.Model, o.Predictions), r) })
		},
	}
	flagGroup(cmd, "What is measured", func(f *pflag.FlagSet) {
		f.StringVar(&o.Model, "model", "", "the `DIR` of a model")
		f.StringVar(&o.Predictions, "pred", "", "predictions: a `FILE` with a line of labels an instance, commas or "+
			"blanks between them")
		f.StringVar(&o.Rankings, "rank", "", "rankings: a `FILE` with a line of labels an instance, best first (with --pred)")
		f.StringArrayVar(&compare, "compare", nil, "a second model or prediction file to test against: `PATH`; repeated: "+
			"each is tested against the first")
		cutoffFlag(f, &o.Cutoff)
		predictiveFlag(f, &o.Predictive)
	})
	flagGroup(cmd, "Truth", func(f *pflag.FlagSet) {
		inputFlags(f, &o.Data)
		f.StringVar(&o.Hierarchy, "hierarchy", "",
			"a `FILE` of lines PARENT CHILD, or from-labels with --path-separator (default: the "+
				"model's)")
	})
	tableFlags(cmd, &o.Data.Table)
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.BoolVar(&o.ByLevel, "by-level", false, "figures for each level of the structure")
		f.BoolVar(&o.BySize, "by-size", false, "macro F1 by the number of training documents")
		f.BoolVar(&o.PerClass, "per-class", false, "figures of each class, those with most instances first "+
			"(always with --json)")
		f.IntSliceVar(&o.At, "at", nil, "measure rankings at further numbers of places: p@k, ndcg@k, psp@k and "+
			"psndcg@k for each k of `LIST`, as 1,10,100")
		f.BoolVar(&o.Coverage, "coverage", false,
			"share of instances that predict --min-probability answers, and their accuracy, by "+
				"probability")
		f.StringVar(&o.Confusion, "confusion", "", "write which classes were taken for which, as CSV, into `FILE`")
		f.StringVar(&o.Reliability, "reliability", "", "draw the reliability diagram, of a model with "+
			"probabilities, as SVG into `FILE`")
	})
	optionGroup(cmd, "Output", func(f *pflag.FlagSet) { propensityOption(f, &o.Propensity) })
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.Data.Threads) })
	require(cmd, "data")
	return cmd
}

// propensityOption is the option for the parameters of propensities.
func propensityOption(f *pflag.FlagSet, p *measure.Propensity) {
	f.Var(p, "propensity", "the parameters of psp@k and psndcg@k")
}

// printEval prints a result as text. If there is a second model, its result is printed beside the
// first one. Shares are in percent, whereas the JSON document has fractions.
func printEval(a *app, o evaluate.Options, what string, r *measure.Result) {
	fmt.Fprintf(a.stdout, "%s on %s: %s, %s\n\n", a.style.Bold(what), o.Data.Path, format.Counted(int64(r.Instances),
		"instance", "instances"), classSet(r))
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	head, blank := "in percent\t\t\n", "\t\t\n"
	if r.Other != nil {
		head, blank = fmt.Sprintf("in percent\t%s\t%s\t\n", what, o.Compare), "\t\t\t\n"
	}
	fmt.Fprint(t, head)
	notes := printMeasures(t, r, o.At, true)
	if r.Hierarchy != nil || r.Probability != nil {
		fmt.Fprint(t, blank, "mean losses", blank)
		notes = append(notes, printMeasures(t, r, o.At, false)...)
	}
	t.Flush()
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(a.stdout, strings.TrimRight(line, " \n"))
	}
	if len(notes) > 0 {
		fmt.Fprintln(a.stdout)
	}
	for _, n := range notes {
		fmt.Fprintf(a.stdout, "  %s\n", a.style.Dim(n))
	}
	if o.ByLevel {
		printLevels(a.stdout, a.style, r)
	}
	if o.BySize {
		printSizes(a.stdout, a.style, r)
	}
	if o.PerClass {
		printClasses(a.stdout, a.style, r)
	}
	if o.Coverage {
		printCoverage(a.stdout, a.style, r)
	}
	if len(r.Others) == 0 {
		printTests(a.stdout, o.Compare, r)
	}
	for _, other := range r.Others {
		printTests(a.stdout, fmt.Sprintf("%s (micro F1 %s, macro F1 %s)", other.With, measure.Percent(other.Other.MicroF1),
			measure.Percent(other.Other.MacroF1)),
			&measure.Result{SignTest: other.SignTest, Wilcoxon: other.Wilcoxon})
	}
}

// printMeasures prints one line for each measure that is shown in percent, or for each of the other
// measures. It returns the explanations of these measures.
func printMeasures(w io.Writer, r *measure.Result, at []int, percent bool) (notes []string) {
	for _, m := range measure.Measures(at...) {
		v, ok := m.Of(r)
		if !ok || m.Name == "" || m.Percent != percent {
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t", m.Name, m.Text(v))
		if r.Other != nil {
			other := "-"
			if v, ok := m.Of(r.Other); ok {
				other = m.Text(v)
			}
			fmt.Fprintf(w, "%s\t", other)
		}
		fmt.Fprintln(w)
		if m.Note != "" {
			notes = append(notes, fmt.Sprintf("%s: %s", m.Name, m.Note))
		}
	}
	return notes
}

func printLevels(w io.Writer, s console.Style, r *measure.Result) {
	fmt.Fprintf(w, "\n%s\n", s.Bold("by level (1: the roots), in percent"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "level\tclasses\tmacro F1\tF1\tprecision\trecall\t")
	for _, l := range r.ByLevel {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t\n", l.Level, format.Count(int64(l.Classes)),
			measure.Percent(l.MacroF1), measure.Percent(l.F1), measure.Percent(l.Precision), measure.Percent(l.Recall))
	}
	t.Flush()
}

func printSizes(w io.Writer, s console.Style, r *measure.Result) {
	fmt.Fprintf(w, "\n%s\n", s.Bold("by training documents of the class, in percent"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "documents\tclasses\tmacro F1\t"
	if r.Other != nil {
		head += "other\tgain\t"
	}
	fmt.Fprintln(t, head)
	for i, b := range r.BySize {
		fmt.Fprintf(t, "%s\t%s\t%s\t", measure.Range(b.From, b.To), format.Count(int64(b.Classes)),
			measure.Percent(b.MacroF1))
		if r.Other != nil && i < len(r.Other.BySize) {
			fmt.Fprintf(t, "%s\t%+.2f\t", measure.Percent(r.Other.BySize[i].MacroF1), 100*(b.MacroF1-r.Other.BySize[i].MacroF1))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

func printCoverage(w io.Writer, s console.Style, r *measure.Result) {
	fmt.Fprintf(w, "\n%s\n", s.Bold("by least probability, in percent"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "least\tanswered\tright\twithout hierarchy\tright\t")
	for _, c := range r.Coverage {
		fmt.Fprintf(t, "%g\t%s\t%s\t%s\t%s\t\n", 100*c.MinProbability, measure.Percent(c.Answered),
			measure.Percent(c.Correct), measure.Percent(c.Classes), measure.Percent(c.ClassCorrect))
	}
	t.Flush()
}

func printClasses(w io.Writer, s console.Style, r *measure.Result) {
	fmt.Fprintf(w, "\n%s\n", s.Bold("by class, in percent"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "instances\tpredicted\tprecision\trecall\tF1\t  class")
	classes := slices.Clone(r.PerClass)
	slices.SortStableFunc(classes, func(a, b measure.Class) int { return cmp.Compare(b.Instances, a.Instances) })
	for _, c := range classes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t  %s\n", format.Count(c.Instances), format.Count(c.Predicted),
			measure.Percent(c.Precision), measure.Percent(c.Recall), measure.Percent(c.F1), c.Label)
	}
	t.Flush()
}

func printTests(w io.Writer, against string, r *measure.Result) {
	if r.SignTest == nil || r.Wilcoxon == nil {
		return
	}
	fmt.Fprintf(w, "\nagainst %s\n", against)
	fmt.Fprintf(w, "  sign test over decisions (micro):    %s won, %s lost, p = %.3g\n",
		format.Count(r.SignTest.Plus), format.Count(r.SignTest.Minus), r.SignTest.P)
	fmt.Fprintf(w, "  Wilcoxon over the classes' F1 (macro): statistic %g, p = %.3g\n", r.Wilcoxon.Statistic, r.Wilcoxon.P)
}

// classSet describes the class set of a result.
func classSet(r *measure.Result) string {
	classes := format.Counted(int64(r.Classes), "class", "classes")
	if r.ClassSet == "training" {
		return classes + " of the training data"
	}
	return classes + " of this data"
}
