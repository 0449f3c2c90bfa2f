package demo

import (
	"fmt"
	"io"
	"math"
	"strings"

	"taxon/internal/model/measure"
	"taxon/internal/ui/console"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// PrintHead announces the trainings of the demo and names the owner of its text.
func (r *Report) PrintHead(w io.Writer, s console.Style) {
	fmt.Fprintf(w, "%s\n\n", s.Bold("WordNet's nouns, sorted by their glosses: without a hierarchy, and with one"))
	fmt.Fprintf(w, "  %s documents to learn from, %s to be tested on; %s classes of animals,\n  food and artifacts in a "+
		"hierarchy of %d levels.\n",
		format.Count(int64(r.Training)), format.Count(int64(r.Test)), format.Count(int64(r.Classes)), r.Levels)
	fmt.Fprintf(w, "  %s\n\n", s.Dim(r.Licence))
}

// Print prints the result.
func (r *Report) Print(w io.Writer, s console.Style) {
	r.printScores(w, s)
	r.printSizes(w, s)
	r.printAgreement(w)
	r.printExamples(w, s)
	r.printNext(w, s)
}

// printScores prints the table of scores.
func (r *Report) printScores(w io.Writer, s console.Style) {
	fmt.Fprintf(w, "%s\n\n", s.Bold("Scores on the test documents, in percent"))
	fmt.Fprintf(w, "  %-20s%9s%10s%8s%11s%9s%10s\n", "method", "micro-F1", "macro-F1", "P@1", "tree loss", "gap",
		"training")
	about := map[string]string{flatMethod: "bsvm    (flat)", treeMethod: "rr-svm  (hierarchy)"}
	for _, t := range r.Runs {
		gap := "-"
		if t.Report.Gap != nil {
			gap = fmt.Sprintf("%.1e", *t.Report.Gap)
		}
		fmt.Fprintf(w, "  %-20s%9.1f%10.1f%8.1f%11.2f%9s%10s\n", about[t.Method], 100*t.Eval.MicroF1, 100*t.Eval.MacroF1,
			100*t.Eval.P1, t.Eval.TreeLoss, gap, format.Seconds(t.Report.Seconds))
	}
	flat, tree := r.Runs[0].Eval, r.Runs[1].Eval
	line := fmt.Sprintf("  %-20s%+9.1f%+10.1f%+8.1f%+11.2f", "gain", 100*(tree.MicroF1-flat.MicroF1),
		100*(tree.MacroF1-flat.MacroF1),
		100*(tree.P1-flat.P1), tree.TreeLoss-flat.TreeLoss)
	fmt.Fprintf(w, "%s\n\n", s.Bold(line))
	fmt.Fprintf(w, "  %s\n\n", s.Dim("tree loss: half the steps in the hierarchy from the class given to the true.")+
		"\n  "+s.Dim("gap: no weights whatever could lower the objective by more than this share."))
}

// printSizes draws a bar for each bin of class sizes. A bar to the right of the axis is a gain, and
// a bar to the left is a loss.
func (r *Report) printSizes(w io.Writer, s console.Style) {
	const barWidth = 24
	fmt.Fprintf(w, "%s\n\n", s.Bold("Macro-F1 by the number of training documents of a class"))
	fmt.Fprintf(w, "  %-12s%8s%9s%9s%8s\n", "documents", "classes", flatMethod, treeMethod, "gain")
	most := 0.0
	for _, b := range r.BySize {
		most = max(most, math.Abs(b.Tree-b.Flat))
	}
	for _, b := range r.BySize {
		gain := b.Tree - b.Flat
		bar := ""
		if most > 0 {
			bar = strings.Repeat("█", int(math.Round(math.Abs(gain)/most*barWidth)))
		}
		if gain < 0 {
			bar = s.Red(strings.ReplaceAll(bar, "█", "░"))
		} else {
			bar = s.Green(bar)
		}
		if bar != "" {
			bar = "  " + bar
		}
		fmt.Fprintf(w, "  %-12s%8d%9.1f%9.1f%+8.1f%s\n", measure.Range(b.From, b.To), b.Classes, 100*b.Flat, 100*b.Tree,
			100*gain, bar)
	}
	fmt.Fprintln(w)
}

// printAgreement prints how often the models agree.
func (r *Report) printAgreement(w io.Writer) {
	a := r.Agreement
	fmt.Fprintf(w, "  A true class first: both %s, rr-svm alone %s, bsvm alone %s, neither %s\n  (sign test over all "+
		"decisions: p = %.1g).\n\n",
		format.Count(int64(a.Both)), format.Count(int64(a.Tree)), format.Count(int64(a.Flat)), format.Count(int64(a.Neither)),
		r.SignTest.P)
}

// printExamples prints the examples.
func (r *Report) printExamples(w io.Writer, s console.Style) {
	if len(r.Examples) == 0 {
		return
	}
	fmt.Fprintf(w, "%s\n", s.Bold("A few test documents"))
	for _, e := range r.Examples {
		fmt.Fprintf(w, "\n  %s\n", console.Fold(e.Text, console.Width, 2))
		fmt.Fprintf(w, "    true    %s\n", pathLine(e.Truth, console.Width-12))
		printGuess(w, s, flatMethod, e.Flat, e.FlatRight)
		printGuess(w, s, treeMethod, e.Tree, e.TreeRight)
	}
	fmt.Fprintln(w)
}

// printGuess prints the path that a model predicts.
func printGuess(w io.Writer, s console.Style, method string, path []string, right bool) {
	if right {
		fmt.Fprintf(w, "    %-8s%s\n", method, s.Green("right"))
		return
	}
	fmt.Fprintf(w, "    %-8s%s\n", method, s.Red(pathLine(path, console.Width-12)))
}

// pathLine returns root > ... > label within width columns. The end of the path is the most
// informative part, so names after the root are omitted first.
func pathLine(path []string, width int) string {
	const arrow = " > "
	full := strings.Join(path, arrow)
	for cut := 2; len([]rune(full)) > width && cut < len(path); cut++ {
		full = path[0] + arrow + "..." + arrow + strings.Join(path[cut:], arrow)
	}
	return console.Clip(full, width)
}

// printNext prints commands to try next.
func (r *Report) printNext(w io.Writer, s console.Style) {
	fmt.Fprintf(w, "%s\n\n", s.Bold("Next"))
	if r.Keep == "" {
		fmt.Fprintf(w, "  %s       keeps the texts, the hierarchy and both models\n"+
			"  taxon help train             trains on your own files\n", flags("taxon demo ‹keep=demo›"))
		return
	}
	fmt.Fprintf(w, "  cd %s\n", format.ShellWord(r.Keep))
	for _, command := range Next() {
		fmt.Fprintf(w, "  %s\n", command)
	}
}

// flags returns a command line in which options are written as flags.
func flags(text string, args ...any) string { return option.Flags(fmt.Sprintf(text, args...)) }

// Next returns commands that work in the folder of a kept demo.
func Next() []string {
	return []string{
		fmt.Sprintf("taxon info %s", treeMethod),
		flags("taxon predict ‹model=%s› ‹text› ‹data=%s› ‹out=-› ‹top=3›", treeMethod, testFile),
		flags("taxon eval ‹model=%s› ‹text› ‹data=%s› ‹by-level› ‹compare=%s›", treeMethod, testFile, flatMethod),
		flags("taxon train ‹text› ‹data=%s› ‹hierarchy=%s› ‹out=mine›", trainFile, hierarchyFile),
	}
}
