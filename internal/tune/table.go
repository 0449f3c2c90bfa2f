package tune

import (
	"bytes"
	"fmt"

	"taxon/internal/eval"
	"taxon/internal/fs"
)

// Table is the outcome of a search: table.json, and what `taxon tune --json` prints.
type Table struct {
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
	Options   Point         `json:"options"` // the point chosen
	Points    []*TablePoint `json:"points"`
	Skipped   int           `json:"skipped"`     // points of paths that ended early
	CPU       float64       `json:"cpu_seconds"` // of the trainings behind the table, measuring not counted
	JobFile   string        `json:"job_file"`
	Plots     []string      `json:"plots,omitempty"`

	Measure *eval.Measure `json:"-"` // of Goal
}

// TablePoint is a line of the table.
type TablePoint struct {
	Point
	Value         float64   `json:"value"`          // of the goal, over the rows of the folds tried
	StandardError *float64  `json:"standard_error"` // of the mean of the folds' values; null: one fold has none
	FoldValues    []float64 `json:"fold_values"`
	MicroF1       float64   `json:"micro_f1"`
	MacroF1       float64   `json:"macro_f1"`
	Sweeps        int       `json:"sweeps"`      // of its folds
	Unfinished    int       `json:"above_gap"`   // folds that ended above the gap
	CPUSeconds    float64   `json:"cpu_seconds"` // of its trainings
	Tried         int       `json:"tried"`       // folds: fewer than all, it was dropped
}

func (p *TablePoint) score() Score {
	s := Score{Value: p.Value}
	if p.StandardError != nil {
		s.Spread = *p.StandardError
	}
	return s
}

// Error is the standard error as text, or what stands for an unknown one.
func (p *TablePoint) Error(goal *eval.Measure, unknown string) string {
	if p.StandardError == nil {
		return unknown
	}
	return goal.Text(*p.StandardError)
}

// choose applies the rule: the best of the points that were tried on all folds, or by oneSE.
func (r *Table) choose(oneSE bool) {
	r.Rule, r.Best = "best", -1
	for i, p := range r.Points {
		if p.Tried == r.Folds && (r.Best < 0 || Better(p.Value, r.Points[r.Best].Value, r.Low)) {
			r.Best = i
		}
		r.CPU += p.CPUSeconds
	}
	r.Chosen = r.Best
	if oneSE {
		var path []int
		scores := make([]Score, len(r.Points))
		for i, p := range r.Points {
			scores[i] = p.score()
			if p.Path() == r.Points[r.Best].Path() && p.Tried == r.Folds {
				path = append(path, i)
			}
		}
		r.Rule, r.Chosen = "one-se", OneStandardError(scores, r.Best, path, r.Low)
	}
	r.Options = r.Points[r.Chosen].Point
}

// lines are the paths as they are drawn: in percent where the goal is read so.
func (r *Table) lines() (lines []Line) {
	for _, p := range r.Points {
		if n := len(lines); n == 0 || lines[n-1].Name != p.Path() {
			lines = append(lines, Line{Name: p.Path()})
		}
		last, s := &lines[len(lines)-1], p.score()
		last.Marks = append(last.Marks, Mark{C: p.C, Score: Score{Value: r.Measure.Shown(s.Value), Spread: r.Measure.Shown(s.Spread)}})
	}
	return lines
}

// Sketch draws the chosen point's path as text; "": it is that point alone.
func (r *Table) Sketch() string {
	for _, l := range r.lines() {
		if l.Name == r.Options.Path() && len(l.Marks) > 1 {
			return Sketch(l.Marks, r.Measure.Title(), r.Options.C)
		}
	}
	return ""
}

// write puts the plots and the table into the folder.
func (r *Table) write(folder record) error {
	for _, format := range []string{"svg", "png"} {
		path := folder.join("tune." + format)
		var b bytes.Buffer
		if err := Draw(&b, format, r.Measure.Title(), r.lines(), r.Options); err != nil {
			return fmt.Errorf("draw %s: %w", path, err)
		}
		if err := fs.WriteFile(path, b.Bytes()); err != nil {
			return err
		}
		r.Plots = append(r.Plots, path)
	}
	return writeJSON(folder.join(tableFile), r)
}
