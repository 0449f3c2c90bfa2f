package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// table trains the rows of a table and writes it as Markdown.
func (r *runner) table(ctx context.Context, w io.Writer, t *table) error {
	if _, err := os.Stat(filepath.Join(r.data, t.data)); err != nil {
		_, err := fmt.Fprintf(w, "### %s\n\nLeft out: there is no %s in TAXON_DATA.\n\n", t.heading(), t.data)
		return err
	}
	fmt.Fprintf(w, "### %s\n\n", t.heading())
	if t.note != "" {
		fmt.Fprintf(w, "%s\n\n", t.note)
	}
	var err error
	switch t.form {
	case statistics:
		err = r.statistics(ctx, w, t)
	case perLevel, perSize:
		err = r.across(ctx, w, t)
	default:
		err = r.methods(ctx, w, t)
	}
	fmt.Fprintln(w)
	return err
}

// statistics writes the statistics of the data.
func (r *runner) statistics(ctx context.Context, w io.Writer, t *table) error {
	train, test, tree := r.set(t.data)
	type document struct {
		Instances float64
		Features  float64
		Each      float64 `json:"labels_per_instance"`
		Structure struct{ Depth float64 }
		Tree      struct{ Terminals float64 }
	}
	var of, tested document
	for file, into := range map[string]*document{train: &of, test: &tested} {
		if err := r.call(ctx, []string{"info", "--plan", "--data", file, "--hierarchy", tree, "--json", "--quiet"},
			into); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "| training rows | test rows | classes | levels | features | labels a row |\n|%s\n|",
		strings.Repeat(" --- |", 6))
	for k, x := range []float64{of.Instances, tested.Instances, of.Tree.Terminals, of.Structure.Depth + 1, of.Features,
		of.Each} {
		fmt.Fprintf(w, " %.7g (%.10g) |", x, t.rows[0].printed[k])
	}
	fmt.Fprintln(w)
	return nil
}

// cell formats our figure, followed by the paper's.
func cell(x float64, scale float64, printed []float64, k int) string {
	s := fmt.Sprintf("%.2f", x*scale)
	if scale == 1 {
		s = fmt.Sprintf("%.3f", x)
	}
	if k < len(printed) {
		s += fmt.Sprintf(" (%g)", printed[k])
	}
	return s
}

// methods writes one line per method.
func (r *runner) methods(ctx context.Context, w io.Writer, t *table) error {
	models := map[string]*trained{}
	var lines []string
	columns := 0 // number of levels, which depends on the data
	for _, row := range t.rows {
		line := "| " + row.label + " |"
		switch m, err := r.row(ctx, t, &row); {
		case err != nil:
			return err
		case m == nil && row.tuned():
			line += " not run: needs -tune |" + strings.Repeat(" |", len(t.measures)-1)
		case m == nil && row.hours != "":
			line += " not run: " + row.hours + " |" + strings.Repeat(" |", len(t.measures)-1)
		case m == nil:
			for _, x := range row.printed {
				line += fmt.Sprintf(" (%g) |", x)
			}
		default:
			models[row.label] = m
			if t.form == levels {
				columns = len(m.test.Levels)
				for k, l := range m.test.Levels {
					var printed string
					if 3*k+3 <= len(row.printed) {
						p := row.printed[3*k:]
						printed = fmt.Sprintf(" (%g / %g / %g)", p[0], p[1], p[2])
					}
					line += fmt.Sprintf(" %.1f / %.1f / %.1f%s |", 100*l.Precision, 100*l.Recall, 100*l.F1, printed)
				}
			}
			for k, c := range t.measures {
				line += " " + cell(m.test.Value[c.key], c.scale, row.printed, k) + " |"
			}
			gap := "none"
			if m.gap != nil {
				gap = fmt.Sprintf("%.1e", *m.gap)
			}
			switch {
			case m.stopped == "max_time":
				gap += ", time was up"
			case m.gap == nil && m.stopped == "stationary":
				gap += ", stationary"
			}
			line += fmt.Sprintf(" %s | %s |", m.c, gap)
			if t.timed {
				line += fmt.Sprintf(" %.3g", m.cpu)
				if row.minutes > 0 {
					line += fmt.Sprintf(" (%g min)", row.minutes)
				}
				line += " |"
				var tests []string
				for _, a := range row.against {
					other := models[a.label]
					if other == nil {
						continue
					}
					sign, wilcoxon, err := r.compare(ctx, t.data, m, other)
					if err != nil {
						return err
					}
					tests = append(tests, fmt.Sprintf("%s %.1g / %.1g (%s)", a.label, wilcoxon, sign, a.printed))
				}
				line += " " + strings.Join(tests, "; ") + " |"
			}
		}
		lines = append(lines, line)
	}
	head := []string{"method"}
	for k := range columns {
		head = append(head, fmt.Sprintf("level %d", k+1))
	}
	for _, m := range t.measures {
		head = append(head, m.title)
	}
	head = append(head, "C", "gap")
	if t.timed {
		head = append(head, "CPU s", "p macro / micro against")
	}
	fmt.Fprintf(w, "| %s |\n|%s\n%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)),
		strings.Join(lines, "\n"))
	return nil
}

// row trains a row. It returns nil if there is nothing to train, or if it takes too long.
func (r *runner) row(ctx context.Context, t *table, row *row) (*trained, error) {
	switch {
	case row.flags == "" || row.hours != "" && !r.long || row.tuned() && !r.tune:
		return nil, nil
	case row.flat && row.flags == ofSVM:
		return r.perNode(ctx, t)
	case row.flat:
		return r.train(ctx, t, row.flags, false)
	}
	return r.train(ctx, t, row.flags, true)
}

// across writes one line per level or class size. The rows are two methods, the second compared
// with the first.
func (r *runner) across(ctx context.Context, w io.Writer, t *table) error {
	var m [2]*trained
	for k := range m {
		var err error
		if m[k], err = r.row(ctx, t, &t.rows[k]); err != nil {
			return err
		}
	}
	title, classes := "level", "nodes"
	if t.form == perSize {
		title, classes = "training instances", "classes"
	}
	fmt.Fprintf(w, "| %s | %s | %s | gain %% (paper's) | %s |\n|%s\n", title, t.rows[0].label, t.rows[1].label, classes,
		strings.Repeat(" --- |", 5))
	line := func(name string, k, count int, a, b float64) {
		gain := "-"
		if a > 0 {
			gain = fmt.Sprintf("%.2f", 100*(b/a-1))
		}
		if x, y := t.rows[0].printed, t.rows[1].printed; k < len(x) {
			gain += fmt.Sprintf(" (%.2f)", 100*(y[k]/x[k]-1))
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %d |\n", name, cell(a, 100, t.rows[0].printed, k),
			cell(b, 100, t.rows[1].printed, k), gain, count)
	}
	if t.form == perLevel {
		for k, l := range m[0].test.Levels {
			line(fmt.Sprint(l.Level), k, l.Classes, l.MacroF1, m[1].test.Levels[k].MacroF1)
		}
		return nil
	}
	// The papers count the classes with one document with those of 2 to 5.
	few, ones := 0, [2]float64{}
	for i, s := range m[0].test.Sizes { // only sizes that some class has
		other := m[1].test.Sizes[i].MacroF1
		switch {
		case s.From == 1:
			ones = [2]float64{s.MacroF1, other}
			few = s.Classes
			continue
		case s.From == 2:
			n := float64(few + s.Classes)
			s.MacroF1 = (ones[0]*float64(few) + s.MacroF1*float64(s.Classes)) / n
			other = (ones[1]*float64(few) + other*float64(s.Classes)) / n
			s.From, s.Classes = 1, few+s.Classes
		}
		k := slices.Index([]int{1, 6, 11, 21, 51, 101}, s.From)
		name := fmt.Sprintf("%d to %d", s.From, s.To)
		if s.To == 0 {
			name = fmt.Sprintf("%d and more", s.From)
		}
		line(name, k, s.Classes, s.MacroF1, other)
	}
	return nil
}
