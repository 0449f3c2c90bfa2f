package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"taxon/internal/eval"
	"taxon/internal/human"
	"taxon/internal/tune"
)

// printTuned shows the table, and a plot of the chosen point's path.
func printTuned(a *app, dir string, r *tune.Table) {
	w, goal := a.stdout, r.Measure
	fmt.Fprintf(w, "%s: %s, on %d of %d folds: %s of %s measured, each by a training without it\n\n", a.style.Bold(dir), goal.Title(),
		r.Folds, r.OfFolds, human.Count(int64(r.Measured)), human.Counted(int64(r.Instances), "instance", "instances"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := tunedColumns(r)
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	fmt.Fprint(t, "\t\n")
	dropped := false
	for i, p := range r.Points {
		for _, c := range columns {
			fmt.Fprintf(t, "%s\t", c.value(p))
		}
		mark := ""
		switch {
		case p.Tried < r.Folds:
			dropped = true
			mark = fmt.Sprintf("dropped after %s", human.Counted(int64(p.Tried), "fold", "folds"))
		case i == r.Chosen:
			mark = "< chosen"
		case i == r.Best:
			mark = "< best"
		}
		if p.Unfinished > 0 {
			mark += fmt.Sprintf(" (%s ended above the gap)", human.Counted(int64(p.Unfinished), "training", "trainings"))
		}
		fmt.Fprintf(t, "%s\t\n", mark)
	}
	t.Flush()
	fmt.Fprintf(w, "\n  ±: the standard error over the folds; - where there is but one, which has none\n")
	if dropped {
		fmt.Fprintf(w, "  dropped: so far behind the best point that more folds would hardly change it; its figures are of fewer instances\n")
	}
	if sketch := r.Sketch(); sketch != "" {
		fmt.Fprintf(w, "\n%s", sketch)
	}
	fmt.Fprintf(w, "\n  trainings   %s of CPU", human.Seconds(r.CPU))
	if r.Skipped > 0 {
		fmt.Fprintf(w, "; %s not tried, beyond a path's best C", human.Counted(int64(r.Skipped), "point", "points"))
	}
	fmt.Fprintf(w, "\n  plot        %s\n", strings.Join(r.Plots, ", "))
	fmt.Fprintf(w, "  train it    taxon train --job %s --out MODEL\n", human.ShellWord(r.JobFile))
}

// tunedColumn is a column of the table.
type tunedColumn struct {
	name  string
	value func(p *tune.TablePoint) string
}

// tunedColumns are the options that are not the same at all points, C, the goal, both F1 unless
// one of them is the goal, and what the trainings took.
func tunedColumns(r *tune.Table) (out []tunedColumn) {
	for _, c := range []tunedColumn{
		{"method", func(p *tune.TablePoint) string { return p.Method }},
		{"loss", func(p *tune.TablePoint) string { return p.Loss }},
		{"bias", func(p *tune.TablePoint) string { return fmt.Sprint(p.Bias) }},
		{"positive", func(p *tune.TablePoint) string { return p.Positive }},
		{"internal", func(p *tune.TablePoint) string { return fmt.Sprint(p.Internal) }},
		{"shift", func(p *tune.TablePoint) string { return fmt.Sprint(p.Shift) }},
	} {
		for _, p := range r.Points {
			if c.value(p) != c.value(r.Points[0]) {
				out = append(out, c)
				break
			}
		}
	}
	goal := r.Measure
	out = append(out,
		tunedColumn{"C", func(p *tune.TablePoint) string { return fmt.Sprint(p.C) }},
		tunedColumn{goal.Title(), func(p *tune.TablePoint) string { return goal.Text(p.Value) }},
		tunedColumn{"±", func(p *tune.TablePoint) string { return p.Error(goal, "-") }})
	for _, c := range []tunedColumn{
		{"micro F1 %", func(p *tune.TablePoint) string { return eval.Percent(p.MicroF1) }},
		{"macro F1 %", func(p *tune.TablePoint) string { return eval.Percent(p.MacroF1) }},
	} {
		if c.name != goal.Title() {
			out = append(out, c)
		}
	}
	return append(out,
		tunedColumn{"sweeps", func(p *tune.TablePoint) string { return fmt.Sprint(p.Sweeps) }},
		tunedColumn{"CPU", func(p *tune.TablePoint) string { return human.Seconds(p.CPUSeconds) }})
}
