package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/train"
	"taxon/internal/tune"
)

// tuned is the outcome of a search: table.json, and what `taxon tune --json` prints.
type tuned struct {
	Goal      string        `json:"goal"` // key of eval --json
	Low       bool          `json:"lower_is_better"`
	Folds     int           `json:"folds"`    // that points are tried on
	OfFolds   int           `json:"of_folds"` // of the cross-validation
	Gap       float64       `json:"gap"`
	Instances int           `json:"instances"` // of the data
	Measured  int           `json:"measured"`  // of them, those of the folds tried: each is measured once
	Rule      string        `json:"rule"`      // best, one-se
	Best      int           `json:"best"`      // index in points of the best value
	Chosen    int           `json:"chosen"`
	Options   tune.Point    `json:"options"` // the point chosen
	Points    []*tunedPoint `json:"points"`
	Skipped   int           `json:"skipped"`                    // points of paths that ended early
	CPU       float64       `json:"cpu_seconds"`                // of the trainings behind the table, measuring not counted
	Cold      *float64      `json:"cold_cpu_seconds,omitempty"` // with --measure-cold: of the whole grid, each point alone and from nothing
	JobFile   string        `json:"job_file"`
	Plots     []string      `json:"plots,omitempty"`
}

// tunedPoint is a line of the table.
type tunedPoint struct {
	tune.Point
	Value         float64   `json:"value"`          // of the goal, over the rows of the folds tried
	StandardError *float64  `json:"standard_error"` // of the mean of the folds' values; null: one fold has none
	FoldValues    []float64 `json:"fold_values"`
	MicroF1       float64   `json:"micro_f1"`
	MacroF1       float64   `json:"macro_f1"`
	Sweeps        int       `json:"sweeps"`      // of its folds
	Unfinished    int       `json:"above_gap"`   // folds that ended above the gap
	CPUSeconds    float64   `json:"cpu_seconds"` // of its trainings
	Tried         int       `json:"tried"`       // folds: fewer than all, it was left behind
}

func (p *tunedPoint) score() tune.Score {
	s := tune.Score{Value: p.Value}
	if p.StandardError != nil {
		s.Spread = *p.StandardError
	}
	return s
}

// spread is the standard error as text, or what stands for an unknown one.
func (p *tunedPoint) spread(goal *eval.Measure, unknown string) string {
	if p.StandardError == nil {
		return unknown
	}
	return goal.Text(*p.StandardError)
}

// best is the point with the best value of those that were tried on all folds.
func (r *tuned) best() int {
	best := -1
	for i, p := range r.Points {
		if p.Tried == r.Folds && (best < 0 || tune.Better(p.Value, r.Points[best].Value, r.Low)) {
			best = i
		}
	}
	return best
}

// choose applies the rule.
func (r *tuned) choose(oneSE bool) {
	r.Best, r.Rule = r.best(), "best"
	r.Chosen = r.Best
	if oneSE {
		var path []int
		scores := make([]tune.Score, len(r.Points))
		for i, p := range r.Points {
			scores[i] = p.score()
			if p.Path() == r.Points[r.Best].Path() && p.Tried == r.Folds {
				path = append(path, i)
			}
		}
		r.Rule, r.Chosen = "one-se", tune.OneStandardError(scores, r.Best, path, r.Low)
	}
	r.Options = r.Points[r.Chosen].Point
	r.CPU = 0
	for _, p := range r.Points {
		r.CPU += p.CPUSeconds
	}
}

// finish writes the table and the plots.
func (s *search) finish(r *tuned) error {
	for _, ext := range []string{"svg", "png"} {
		path := s.join("tune." + ext)
		if err := r.draw(path, s.goal); err != nil {
			return err
		}
		r.Plots = append(r.Plots, path)
	}
	return writeJSON(s.join(tableFile), r)
}

// writeChosen writes the job file of the point chosen.
func (s *search) writeChosen(r *tuned) error {
	r.JobFile = s.join(jobFile)
	p := r.Points[r.Chosen]
	return s.writeJob(p.Point, fmt.Sprintf("chosen by taxon tune, %s: %s (standard error %s) on %s",
		map[bool]string{false: "the best value", true: "the smallest C within one standard error of the best value"}[s.o.oneSE],
		s.goal.Words(p.Value), p.spread(s.goal, "unknown: one fold has none"), s.rests(r.Folds)))
}

// rests says what a value is measured on: the rows of the first folds.
func (s *search) rests(folds int) string {
	return fmt.Sprintf("%d of %d folds, %s of %s", folds, s.o.folds, formatCount(int64(s.rowsOf(folds))), counted(int64(len(s.folds)), "instance", "instances"))
}

// rowsOf counts the rows of the first folds.
func (s *search) rowsOf(folds int) int {
	n := 0
	for _, f := range s.folds {
		if f < folds {
			n++
		}
	}
	return n
}

// writeJob writes a point as lines `flag: value`, for train and submit, under a comment on
// where it comes from.
func (s *search) writeJob(p tune.Point, origin string) error {
	var b strings.Builder
	t := &s.o.train
	fmt.Fprintf(&b, "# %s\n", origin)
	line := func(flag string, value any) { fmt.Fprintf(&b, "%s: %v\n", flag, value) }
	b.WriteString("data:\n")
	for _, d := range t.data {
		fmt.Fprintf(&b, "  - %s\n", yamlPath(d))
	}
	if t.text {
		line("text", true)
	}
	if t.zeroBased {
		line("zero-based", true)
	}
	if t.hierarchy != "" {
		line("hierarchy", yamlPath(t.hierarchy))
		line("dag", t.dag)
	}
	if t.graph != "" {
		line("graph", yamlPath(t.graph))
	}
	line("method", p.Method)
	line("loss", p.Loss)
	line("C", number(p.C))
	line("bias", number(p.Bias))
	line("positive-weight", p.Positive)
	line("internal-weight", number(p.Internal))
	if s.onGraph(p.Method) {
		line("anchor", number(t.anchor))
	}
	if p.Shift != 0 {
		line("prior-shift", number(p.Shift))
	}
	line("prune", t.prune)
	line("gap", number(t.gap))
	line("seed", t.seed)
	return fs.WriteFile(s.join(jobFile), []byte(b.String()))
}

// onGraph says whether method is trained on a graph, which alone has an anchor.
func (s *search) onGraph(method string) bool {
	t, given := s.o.train, s.whole.Structure
	return !train.Flat(method) && (t.graph != "" || given != nil && given.IsDAG() && t.dag == "graph")
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// yamlPath is a path that means the same from any folder.
func yamlPath(path string) string {
	if whole, err := filepath.Abs(path); err == nil && !fs.IsRemote(path) {
		path = whole
	}
	return strconv.Quote(path)
}

// printTuned shows the table and a plot of the chosen point's path.
func printTuned(a *app, o *tuneOptions, goal *eval.Measure, r *tuned) {
	w := a.stdout
	fmt.Fprintf(w, "%s: %s, on %d of %d folds: %s of %s measured, each by a training without it\n\n", a.style.bold(o.train.out), title(goal),
		r.Folds, r.OfFolds, formatCount(int64(r.Measured)), counted(int64(r.Instances), "instance", "instances"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	varied := variedColumns(r)
	for _, c := range varied {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	fmt.Fprintf(t, "C\t%s\t±\t", title(goal))
	for _, f := range bothF1(goal) {
		fmt.Fprintf(t, "%s\t", f.name)
	}
	fmt.Fprint(t, "sweeps\tCPU\t\t\n")
	dropped := false
	for i, p := range r.Points {
		for _, c := range varied {
			fmt.Fprintf(t, "%s\t", c.value(p))
		}
		mark := ""
		if i == r.Chosen {
			mark = "< chosen"
		} else if i == r.Best {
			mark = "< best"
		}
		if p.Tried < r.Folds {
			dropped = true
			mark = fmt.Sprintf("dropped after %s", counted(int64(p.Tried), "fold", "folds"))
		}
		if p.Unfinished > 0 {
			mark += fmt.Sprintf(" (%s ended above the gap)", counted(int64(p.Unfinished), "training", "trainings"))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t", number(p.C), goal.Text(p.Value), p.spread(goal, "-"))
		for _, f := range bothF1(goal) {
			fmt.Fprintf(t, "%s\t", f.value(p))
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t\n", p.Sweeps, formatSeconds(p.CPUSeconds), mark)
	}
	t.Flush()
	fmt.Fprintf(w, "\n  ±: the standard error over the folds; - where there is but one, which has none\n")
	if dropped {
		fmt.Fprintf(w, "  dropped: so far behind the best point that more folds would hardly change it; its figures are of fewer instances\n")
	}
	if path := r.path(goal); len(path) > 1 {
		fmt.Fprintf(w, "\n%s", tune.Sketch(path, title(goal), r.Points[r.Chosen].C))
	}
	fmt.Fprintf(w, "\n  trainings   %s of CPU", formatSeconds(r.CPU))
	if r.Cold != nil {
		fmt.Fprintf(w, "; all points on all folds, each from nothing: %s, of which this is %.0f %%", formatSeconds(*r.Cold), 100*r.CPU / *r.Cold)
	}
	if r.Skipped > 0 {
		fmt.Fprintf(w, "; %s not tried, beyond a path's best C", counted(int64(r.Skipped), "point", "points"))
	}
	fmt.Fprintf(w, "\n  plot        %s\n", strings.Join(r.Plots, ", "))
	fmt.Fprintf(w, "  train it    taxon train --job %s --out MODEL\n", shellWord(r.JobFile))
}

// title is a measure with its unit.
func title(m *eval.Measure) string {
	if m.Percent {
		return m.Name + " %"
	}
	return m.Name
}

// bothF1 are the columns of the F1 that is not the goal, or of both.
func bothF1(goal *eval.Measure) (out []variedColumn) {
	for _, c := range []variedColumn{
		{"micro F1 %", func(p *tunedPoint) string { return eval.Percent(p.MicroF1) }},
		{"macro F1 %", func(p *tunedPoint) string { return eval.Percent(p.MacroF1) }},
	} {
		if c.name != title(goal) {
			out = append(out, c)
		}
	}
	return out
}

// mark is a point as it is drawn: in percent where the goal is read so.
func (p *tunedPoint) mark(goal *eval.Measure) tune.Mark {
	s := p.score()
	return tune.Mark{C: p.C, Score: tune.Score{Value: goal.Shown(s.Value), Spread: goal.Shown(s.Spread)}}
}

// draw makes the picture of all paths, whole or not at all.
func (r *tuned) draw(path string, goal *eval.Measure) error {
	var lines []tune.Line
	for _, p := range r.Points {
		if n := len(lines); n == 0 || lines[n-1].Name != p.Path() {
			lines = append(lines, tune.Line{Name: p.Path()})
		}
		last := &lines[len(lines)-1]
		last.Marks = append(last.Marks, p.mark(goal))
	}
	var b bytes.Buffer
	if err := tune.Draw(&b, strings.TrimPrefix(filepath.Ext(path), "."), title(goal), lines, r.Options); err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return fs.WriteFile(path, b.Bytes())
}

// path is the chosen point's path, for plots.
func (r *tuned) path(goal *eval.Measure) []tune.Mark {
	var out []tune.Mark
	for _, p := range r.Points {
		if p.Path() == r.Options.Path() {
			out = append(out, p.mark(goal))
		}
	}
	return out
}

// variedColumn is a column of the table, of an option that is not the same at all points.
type variedColumn struct {
	name  string
	value func(p *tunedPoint) string
}

func variedColumns(r *tuned) []variedColumn {
	var out []variedColumn
	for _, c := range []variedColumn{
		{"method", func(p *tunedPoint) string { return p.Method }},
		{"loss", func(p *tunedPoint) string { return p.Loss }},
		{"bias", func(p *tunedPoint) string { return number(p.Bias) }},
		{"positive", func(p *tunedPoint) string { return p.Positive }},
		{"internal", func(p *tunedPoint) string { return number(p.Internal) }},
		{"shift", func(p *tunedPoint) string { return number(p.Shift) }},
	} {
		for _, p := range r.Points {
			if c.value(p) != c.value(r.Points[0]) {
				out = append(out, c)
				break
			}
		}
	}
	return out
}
