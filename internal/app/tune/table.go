package tune

import (
	"bytes"
	"encoding/json"
	"errors"

	"taxon/internal/model"
	"taxon/internal/model/measure"
)

// Table is the outcome of a search: table.json, and the output of `taxon tune --json`.
type Table struct {
	Goal      string  `json:"goal"` // key of eval --json
	Low       bool    `json:"lower_is_better"`
	Folds     int     `json:"folds"`    // on which points are tried
	OfFolds   int     `json:"of_folds"` // of the cross-validation
	Gap       float64 `json:"gap"`
	Instances int     `json:"instances"` // of the data
	Measured  int     `json:"measured"`  // instances in the folds tried; each is measured once
	// best, one-se, quickest; only: there was nothing to search, and nothing is measured
	Rule    string        `json:"rule"`
	Best    int           `json:"best"` // index in points of the best value; -1: none
	Chosen  int           `json:"chosen"`
	Options Point         `json:"options"` // the point chosen
	Points  []*TablePoint `json:"points"`
	Skipped int           `json:"skipped"`     // points of paths that ended early
	CPU     float64       `json:"cpu_seconds"` // of the trainings behind the table, without measuring
	JobFile string        `json:"job_file"`
	Plots   []string      `json:"plots,omitempty"`
	TimeUp  bool          `json:"time_up,omitempty"` // the time ended the search
	Sample  bool          `json:"sample,omitempty"`  // everything was measured on a sample, for lack of time
	Untried []Untried     `json:"untried,omitempty"`
	Effects []Effect      `json:"effects,omitempty"`
	Borders []Border      `json:"borders,omitempty"`
	Runner  *Runner       `json:"runner_up,omitempty"`
	Model   string        `json:"model,omitempty"`  // of the point chosen
	Report  *model.Report `json:"report,omitempty"` // of its training

	Measure *measure.Measure `json:"-"` // of Goal
}

// Untried is a point that was left out, with the reason.
type Untried struct {
	Point
	Why string `json:"why"`

	// in which there was no time for it; nil: it was something else
	late *stage
}

// MarshalJSON writes both as one object.
func (u Untried) MarshalJSON() ([]byte, error) {
	return model.JoinObjects(u.Point, struct {
		Why string `json:"why"`
	}{u.Why})
}

// UnmarshalJSON is the way back.
func (u *Untried) UnmarshalJSON(data []byte) error {
	var rest struct{ Why string }
	err := errors.Join(json.Unmarshal(data, &u.Point), json.Unmarshal(data, &rest))
	u.Why = rest.Why
	return err
}

// TablePoint is a line of the table.
type TablePoint struct {
	Point
	Figures
}

// MarshalJSON writes both as one object.
func (p *TablePoint) MarshalJSON() ([]byte, error) { return model.JoinObjects(p.Point, p.Figures) }

// UnmarshalJSON is the way back.
func (p *TablePoint) UnmarshalJSON(data []byte) error {
	return errors.Join(json.Unmarshal(data, &p.Point), json.Unmarshal(data, &p.Figures))
}

// Figures are what a point reached, and its cost.
type Figures struct {
	Value         float64   `json:"value"`          // of the goal, over the rows of all folds tried
	StandardError *float64  `json:"standard_error"` // of the mean of the folds' values; null: there is one fold
	FoldValues    []float64 `json:"fold_values"`
	MicroF1       float64   `json:"micro_f1"`
	MacroF1       float64   `json:"macro_f1"`
	Sweeps        int       `json:"sweeps"`      // of its folds
	Unfinished    int       `json:"above_gap"`   // folds that ended above the gap
	CPUSeconds    float64   `json:"cpu_seconds"` // of its trainings
	Tried         int       `json:"tried"`       // folds; fewer than all: it was dropped
}

func (p *TablePoint) score() Score {
	s := Score{Value: p.Value}
	if p.StandardError != nil {
		s.Spread = *p.StandardError
	}
	return s
}

// Error is the standard error as text, or `unknown`.
func (p *TablePoint) Error(goal *measure.Measure, unknown string) string {
	if p.StandardError == nil {
		return unknown
	}
	return goal.Text(*p.StandardError)
}

// choose applies the rule: the best of the points that were tried on all folds, or with oneSE the
// one-standard-error rule. false: there is none.
func (r *Table) choose(oneSE bool) bool {
	r.Rule, r.Best = "best", -1
	for i, p := range r.Points {
		if p.Tried == r.Folds && (r.Best < 0 || Better(p.Value, r.Points[r.Best].Value, r.Low)) {
			r.Best = i
		}
		r.CPU += p.CPUSeconds
	}
	if r.Chosen = r.Best; r.Best < 0 {
		return false
	}
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
	return true
}

// Leading says, by index, which points matter most: those tried on the most folds, and the best
// of each method and loss. In a short table it is all of them.
func (r *Table) Leading() []bool {
	in := make([]bool, len(r.Points))
	best := map[[2]string]int{}
	for i, p := range r.Points {
		family := [2]string{p.Method, p.Values["loss"]}
		if b, ok := best[family]; !ok || Better(p.Value, r.Points[b].Value, r.Low) {
			best[family] = i
		}
		in[i] = len(r.Points) <= shortTable || p.Tried > 1
	}
	for _, i := range best {
		in[i] = true
	}
	return in
}

// shortTable: up to this many points all are shown.
const shortTable = 20

// lines are the paths to draw, in percent if the goal is shown so.
func (r *Table) lines() (lines []Line) {
	for _, p := range r.Points {
		if n := len(lines); n == 0 || lines[n-1].Name != p.Path() {
			lines = append(lines, Line{Name: p.Path()})
		}
		last, s := &lines[len(lines)-1], p.score()
		last.Marks = append(last.Marks, Mark{C: p.C(), Score: Score{Value: r.Measure.Shown(s.Value),
			Spread: r.Measure.Shown(s.Spread)}})
	}
	return lines
}

// Sketch draws the chosen point's path as text; "": the path has no other point.
func (r *Table) Sketch() string {
	for _, l := range r.lines() {
		if l.Name == r.Options.Path() && len(l.Marks) > 1 {
			return Sketch(l.Marks, r.Measure.Title(), r.Options.C())
		}
	}
	return ""
}

// write writes the plot and the table into the folder.
func (r *Table) write(folder record) error {
	if len(r.Points) > 0 {
		path := folder.join("tune.svg")
		var b bytes.Buffer
		_ = Draw(&b, r.Measure.Title(), r.lines(), r.Options) // a buffer takes all
		if err := folder.disk.WriteFile(path, b.Bytes()); err != nil {
			return err
		}
		r.Plots = append(r.Plots, path)
	}
	return folder.writeJSON(folder.join(tableFile), r)
}
