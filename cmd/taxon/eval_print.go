package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"taxon/internal/eval"
)

// printEval shows a result to a person: fractions as in the JSON document, the second
// model's beside them where there is one.
func printEval(a *app, o evalOptions, what string, r *eval.Result) {
	fmt.Fprintf(a.stdout, "%s on %s: %s instances, %s\n\n", a.style.bold(what), o.rows.path, formatCount(int64(r.Instances)), classSet(r))
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	if r.Other != nil {
		fmt.Fprintf(t, "\t%s\t%s\t\n", what, o.compare)
	}
	for _, row := range figures(r) {
		fmt.Fprintf(t, "%s\t%s\t", row.name, figure(row.value(r)))
		if r.Other != nil {
			v := "-"
			if row.has(r.Other) {
				v = figure(row.value(r.Other))
			}
			fmt.Fprintf(t, "%s\t", v)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	if o.byLevel {
		printLevels(a.stdout, a.style, r)
	}
	if o.bySize {
		printSizes(a.stdout, a.style, r)
	}
	printTests(a.stdout, o, r)
}

// evalFigure is a line of the table.
type evalFigure struct {
	name  string
	has   func(r *eval.Result) bool
	value func(r *eval.Result) float64
}

// figures lists the lines that r has.
func figures(r *eval.Result) []evalFigure {
	always := func(*eval.Result) bool { return true }
	ranked := func(r *eval.Result) bool { return r.Ranking != nil }
	tree := func(r *eval.Result) bool { return r.Hierarchy != nil }
	var out []evalFigure
	for _, f := range []evalFigure{
		{"micro F1", always, func(r *eval.Result) float64 { return r.MicroF1 }},
		{"macro F1", always, func(r *eval.Result) float64 { return r.MacroF1 }},
		{"micro precision", always, func(r *eval.Result) float64 { return r.MicroPrecision }},
		{"micro recall", always, func(r *eval.Result) float64 { return r.MicroRecall }},
		{"zero-one loss", always, func(r *eval.Result) float64 { return r.ZeroOne }},
		{"P@1", ranked, func(r *eval.Result) float64 { return r.P1 }},
		{"P@3", ranked, func(r *eval.Result) float64 { return r.P3 }},
		{"P@5", ranked, func(r *eval.Result) float64 { return r.P5 }},
		{"nDCG@5", ranked, func(r *eval.Result) float64 { return r.NDCG5 }},
		{"tree loss", tree, func(r *eval.Result) float64 { return r.TreeLoss }},
		{"symmetric difference", tree, func(r *eval.Result) float64 { return r.SymDiff }},
		{"l_H unif", tree, func(r *eval.Result) float64 { return r.HUnif }},
		{"l_H sibl", tree, func(r *eval.Result) float64 { return r.HSibl }},
		{"l_H subtree", tree, func(r *eval.Result) float64 { return r.HSubtree }},
		{"hierarchical F1", tree, func(r *eval.Result) float64 { return r.Hierarchy.F1 }},
		{"hierarchical precision", tree, func(r *eval.Result) float64 { return r.Hierarchy.Precision }},
		{"hierarchical recall", tree, func(r *eval.Result) float64 { return r.Hierarchy.Recall }},
	} {
		if f.has(r) {
			out = append(out, f)
		}
	}
	return out
}

func figure(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }

func printLevels(w io.Writer, s style, r *eval.Result) {
	fmt.Fprintf(w, "\n%s\n", s.bold("by level (1: the roots)"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "level\tclasses\tmacro F1\tF1\tprecision\trecall\t")
	for _, l := range r.ByLevel {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t\n", l.Level, formatCount(int64(l.Classes)),
			figure(l.MacroF1), figure(l.F1), figure(l.Precision), figure(l.Recall))
	}
	t.Flush()
}

func printSizes(w io.Writer, s style, r *eval.Result) {
	fmt.Fprintf(w, "\n%s\n", s.bold("by training instances of the class"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "instances\tclasses\tmacro F1\t"
	if r.Other != nil {
		head += "other\tgain\t"
	}
	fmt.Fprintln(t, head)
	for i, b := range r.BySize {
		fmt.Fprintf(t, "%s\t%s\t%s\t", sizeRange(b.From, b.To), formatCount(int64(b.Classes)), figure(b.MacroF1))
		if r.Other != nil && i < len(r.Other.BySize) {
			fmt.Fprintf(t, "%s\t%+.4f\t", figure(r.Other.BySize[i].MacroF1), b.MacroF1-r.Other.BySize[i].MacroF1)
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
