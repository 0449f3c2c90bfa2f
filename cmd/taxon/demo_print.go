package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// printHead says what is about to be done, and whose text it is.
func (r *demoReport) printHead(w io.Writer, s style) {
	fmt.Fprintf(w, "%s\n\n", s.bold("WordNet's nouns, sorted by their glosses: without a hierarchy, and with one"))
	fmt.Fprintf(w, "  %s documents to learn from, %s to be tested on; %s classes of animals,\n  food and artifacts in a hierarchy of %d levels.\n",
		formatCount(int64(r.Training)), formatCount(int64(r.Test)), formatCount(int64(r.Classes)), r.Levels)
	fmt.Fprintf(w, "  %s\n\n", s.dim(r.Licence))
}

// printBody shows what came of it.
func (r *demoReport) printBody(w io.Writer, s style) {
	r.printScores(w, s)
	r.printSizes(w, s)
	r.printAgreement(w)
	r.printExamples(w, s)
	r.printNext(w, s)
}

func (r *demoReport) printScores(w io.Writer, s style) {
	fmt.Fprintf(w, "%s\n\n", s.bold("Scores on the test documents, in percent"))
	fmt.Fprintf(w, "  %-20s%9s%10s%8s%11s%9s%10s\n", "method", "micro-F1", "macro-F1", "P@1", "tree loss", "gap", "training")
	about := map[string]string{demoFlat: "bsvm    (flat)", demoTree: "rr-svm  (hierarchy)"}
	for _, t := range r.Runs {
		gap := "-"
		if t.Report.Gap != nil {
			gap = fmt.Sprintf("%.1e", *t.Report.Gap)
		}
		fmt.Fprintf(w, "  %-20s%9.1f%10.1f%8.1f%11.2f%9s%10s\n", about[t.Method], 100*t.Eval.MicroF1, 100*t.Eval.MacroF1,
			100*t.Eval.P1, t.Eval.TreeLoss, gap, formatSeconds(t.Report.Seconds))
	}
	flat, tree := r.Runs[0].Eval, r.Runs[1].Eval
	line := fmt.Sprintf("  %-20s%+9.1f%+10.1f%+8.1f%+11.2f", "gain", 100*(tree.MicroF1-flat.MicroF1), 100*(tree.MacroF1-flat.MacroF1),
		100*(tree.P1-flat.P1), tree.TreeLoss-flat.TreeLoss)
	fmt.Fprintf(w, "%s\n\n", s.bold(line))
	fmt.Fprintf(w, "  %s\n\n", s.dim("tree loss: half the steps in the hierarchy from the class given to the true.")+
		"\n  "+s.dim("gap: no weights whatever could lower the objective by more than this share."))
}

// printSizes draws one bar a bin: right of the axis a gain, left of it a loss.
func (r *demoReport) printSizes(w io.Writer, s style) {
	const barWidth = 24
	fmt.Fprintf(w, "%s\n\n", s.bold("Macro-F1 by the number of training documents of a class"))
	fmt.Fprintf(w, "  %-12s%8s%9s%9s%8s\n", "documents", "classes", demoFlat, demoTree, "gain")
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
			bar = s.red(strings.ReplaceAll(bar, "█", "░"))
		} else {
			bar = s.green(bar)
		}
		if bar != "" {
			bar = "  " + bar
		}
		fmt.Fprintf(w, "  %-12s%8d%9.1f%9.1f%+8.1f%s\n", sizeRange(b.From, b.To), b.Classes, 100*b.Flat, 100*b.Tree, 100*gain, bar)
	}
	fmt.Fprintln(w)
}

// sizeRange writes 6-10 or, without an upper end, 101+.
func sizeRange(from int, to *int) string {
	if to == nil {
		return fmt.Sprintf("%d+", from)
	}
	return fmt.Sprintf("%d-%d", from, *to)
}

func (r *demoReport) printAgreement(w io.Writer) {
	a := r.Agreement
	fmt.Fprintf(w, "  A true class first: both %s, rr-svm alone %s, bsvm alone %s, neither %s\n  (sign test over all decisions: p = %.1g).\n\n",
		formatCount(int64(a.Both)), formatCount(int64(a.Tree)), formatCount(int64(a.Flat)), formatCount(int64(a.Neither)), r.SignTest.P)
}

func (r *demoReport) printExamples(w io.Writer, s style) {
	if len(r.Examples) == 0 {
		return
	}
	fmt.Fprintf(w, "%s\n", s.bold("A few test documents"))
	for _, e := range r.Examples {
		fmt.Fprintf(w, "\n  %s\n", fold(e.Text, helpWidth, 2))
		fmt.Fprintf(w, "    true    %s\n", pathLine(e.Truth, helpWidth-12))
		printGuess(w, s, demoFlat, e.Flat, e.FlatRight)
		printGuess(w, s, demoTree, e.Tree, e.TreeRight)
	}
	fmt.Fprintln(w)
}

func printGuess(w io.Writer, s style, method string, path []string, right bool) {
	if right {
		fmt.Fprintf(w, "    %-8s%s\n", method, s.green("right"))
		return
	}
	fmt.Fprintf(w, "    %-8s%s\n", method, s.red(pathLine(path, helpWidth-12)))
}

// pathLine writes root > ... > label within width columns: the label's end matters
// most, so names are left out after the root.
func pathLine(path []string, width int) string {
	const arrow = " > "
	full := strings.Join(path, arrow)
	for cut := 2; len([]rune(full)) > width && cut < len(path); cut++ {
		full = path[0] + arrow + "..." + arrow + strings.Join(path[cut:], arrow)
	}
	return clip(full, width)
}

func (r *demoReport) printNext(w io.Writer, s style) {
	fmt.Fprintf(w, "%s\n\n", s.bold("Next"))
	if r.Keep == "" {
		fmt.Fprintf(w, "  taxon demo --keep demo       keeps the texts, the hierarchy and both models\n"+
			"  taxon help train             trains on your own files\n")
		return
	}
	fmt.Fprintf(w, "  cd %s\n", shellWord(r.Keep))
	for _, command := range demoNext() {
		fmt.Fprintf(w, "  %s\n", command)
	}
}

// demoNext are commands that work in the folder of a kept demo.
func demoNext() []string {
	return []string{
		fmt.Sprintf("taxon info %s", demoTree),
		fmt.Sprintf("taxon predict --model %s --text --data %s --out - --top 3", demoTree, demoTestFile),
		fmt.Sprintf("taxon eval --model %s --text --data %s --by-level --compare %s", demoTree, demoTestFile, demoFlat),
		fmt.Sprintf("taxon train --text --data %s --hierarchy %s --out mine", demoTrainFile, demoHierarchyFile),
	}
}

// shellWord quotes a path that a shell would take apart.
func shellWord(s string) string {
	if strings.ContainsAny(s, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
