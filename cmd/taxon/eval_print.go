package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"taxon/internal/eval"
)

// printEval shows a result to a person, the second model's beside it where there is one.
// Shares are in percent; the JSON document has fractions.
func printEval(a *app, o evalOptions, what string, r *eval.Result) {
	fmt.Fprintf(a.stdout, "%s on %s: %s instances, %s\n\n", a.style.bold(what), o.rows.path, formatCount(int64(r.Instances)), classSet(r))
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	head, blank := "in percent\t\t\n", "\t\t\n"
	if r.Other != nil {
		head, blank = fmt.Sprintf("in percent\t%s\t%s\t\n", what, o.compare), "\t\t\t\n"
	}
	fmt.Fprint(t, head)
	notes := printMeasures(t, r, true)
	if r.Hierarchy != nil {
		fmt.Fprint(t, blank, "mean losses", blank)
		notes = append(notes, printMeasures(t, r, false)...)
	}
	t.Flush()
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(a.stdout, strings.TrimRight(line, " \n"))
	}
	if len(notes) > 0 {
		fmt.Fprintln(a.stdout)
	}
	for _, n := range notes {
		fmt.Fprintf(a.stdout, "  %s\n", a.style.dim(n))
	}
	if o.byLevel {
		printLevels(a.stdout, a.style, r)
	}
	if o.bySize {
		printSizes(a.stdout, a.style, r)
	}
	printTests(a.stdout, o, r)
}

// printMeasures prints the lines of those in percent, or of the others, and returns what
// explains them.
func printMeasures(w io.Writer, r *eval.Result, percent bool) (notes []string) {
	for _, m := range eval.Measures() {
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

func printLevels(w io.Writer, s style, r *eval.Result) {
	fmt.Fprintf(w, "\n%s\n", s.bold("by level (1: the roots), in percent"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "level\tclasses\tmacro F1\tF1\tprecision\trecall\t")
	for _, l := range r.ByLevel {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t\n", l.Level, formatCount(int64(l.Classes)),
			eval.Percent(l.MacroF1), eval.Percent(l.F1), eval.Percent(l.Precision), eval.Percent(l.Recall))
	}
	t.Flush()
}

func printSizes(w io.Writer, s style, r *eval.Result) {
	fmt.Fprintf(w, "\n%s\n", s.bold("by training instances of the class, in percent"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "instances\tclasses\tmacro F1\t"
	if r.Other != nil {
		head += "other\tgain\t"
	}
	fmt.Fprintln(t, head)
	for i, b := range r.BySize {
		fmt.Fprintf(t, "%s\t%s\t%s\t", sizeRange(b.From, b.To), formatCount(int64(b.Classes)), eval.Percent(b.MacroF1))
		if r.Other != nil && i < len(r.Other.BySize) {
			fmt.Fprintf(t, "%s\t%+.2f\t", eval.Percent(r.Other.BySize[i].MacroF1), 100*(b.MacroF1-r.Other.BySize[i].MacroF1))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

func printTests(w io.Writer, o evalOptions, r *eval.Result) {
	if r.SignTest == nil || r.Wilcoxon == nil {
		return
	}
	fmt.Fprintf(w, "\nagainst %s\n", o.compare)
	fmt.Fprintf(w, "  sign test over decisions (micro):    %s won, %s lost, p = %.3g\n",
		formatCount(r.SignTest.Plus), formatCount(r.SignTest.Minus), r.SignTest.P)
	fmt.Fprintf(w, "  Wilcoxon over the classes' F1 (macro): statistic %g, p = %.3g\n", r.Wilcoxon.Statistic, r.Wilcoxon.P)
}
