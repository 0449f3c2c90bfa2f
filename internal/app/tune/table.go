package tune

import (
	"bytes"
	"encoding/json"
	"errors"

	"taxon/internal/model"
	"taxon/internal/model/measure"
)

// Table is the outcome of a search. It is stored as table.json and printed by tune as JSON.
type Table struct {
	// Goal is the key of the measure, as in the JSON output of eval.
	Goal string `json:"goal"`
	Low  bool   `json:"lower_is_better"`
	// Folds is the number of folds on which points are tried.
	Folds int `json:"folds"`
	// OfFolds is the number of folds of the cross-validation.
	OfFolds int     `json:"of_folds"`
	Gap     float64 `json:"gap"`
	// Instances is the number of instances of the data.
	Instances int `json:"instances"`
	// Measured is the number of instances in the folds tried. Each is measured once.
	Measured int `json:"measured"`
	// Rule is the rule by which a point was chosen: "best", "one-se" or "quickest". It is "only" if
	// there was nothing to search, and nothing is measured.
	Rule string `json:"rule"`
	// Best is the index in Points of the best value, or -1 if there is none.
	Best int `json:"best"`
	// Chosen is the index in Points of the chosen point, or -1 if there is none.
	Chosen int `json:"chosen"`
	// Options is the chosen point.
	Options Point         `json:"options"`
	Points  []*TablePoint `json:"points"`
	// Skipped is the number of points of paths that ended early.
	Skipped int `json:"skipped"`
	// CPU is the CPU time of the trainings behind the table, without measuring, in seconds.
	CPU     float64  `json:"cpu_seconds"`
	JobFile string   `json:"job_file"`
	Plots   []string `json:"plots,omitempty"`
	// TimeUp reports that the time limit ended the search.
	TimeUp bool `json:"time_up,omitempty"`
	// Sample reports that, for lack of time, everything was measured on a sample.
	Sample  bool      `json:"sample,omitempty"`
	Untried []Untried `json:"untried,omitempty"`
	Effects []Effect  `json:"effects,omitempty"`
	Borders []Border  `json:"borders,omitempty"`
	Runner  *Runner   `json:"runner_up,omitempty"`
	// Model is the folder of the chosen point's model. It is empty if none was trained.
	Model string `json:"model,omitempty"`
	// Report is the report of the model's training.
	Report *model.Report `json:"report,omitempty"`

	// Measure is the measure of Goal.
	Measure *measure.Measure `json:"-"`
}

// Untried is a point that was not tried, with the reason.
type Untried struct {
	Point
	Why string `json:"why"`

	// late is the stage in which there was no time for the point. It is nil for other reasons.
	late *stage
}

// MarshalJSON writes point and reason as one object.
func (u Untried) MarshalJSON() ([]byte, error) {
	return model.JoinObjects(u.Point, struct {
		Why string `json:"why"`
	}{u.Why})
}

// UnmarshalJSON reads what MarshalJSON writes.
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

// MarshalJSON writes point and figures as one object.
func (p *TablePoint) MarshalJSON() ([]byte, error) { return model.JoinObjects(p.Point, p.Figures) }

// UnmarshalJSON reads what MarshalJSON writes.
func (p *TablePoint) UnmarshalJSON(data []byte) error {
	return errors.Join(json.Unmarshal(data, &p.Point), json.Unmarshal(data, &p.Figures))
}

// Figures hold the performance and the cost of a point.
type Figures struct {
	// Value is the goal over the rows of all folds tried.
	Value float64 `json:"value"`
	// StandardError is the standard error of the mean of the folds' values. It is nil with a single
	// fold.
	StandardError *float64  `json:"standard_error"`
	FoldValues    []float64 `json:"fold_values"`
	MicroF1       float64   `json:"micro_f1"`
	MacroF1       float64   `json:"macro_f1"`
	// Sweeps is the sum over the folds.
	Sweeps int `json:"sweeps"`
	// Unfinished is the number of folds whose training ended above the gap.
	Unfinished int `json:"above_gap"`
	// CPUSeconds is the sum over the trainings.
	CPUSeconds float64 `json:"cpu_seconds"`
	// Tried is the number of folds. It is smaller than Table.Folds if the point was dropped.
	Tried int `json:"tried"`
}

// score returns the value and its spread.
func (p *TablePoint) score() Score {
	s := Score{Value: p.Value}
	if p.StandardError != nil {
		s.Spread = *p.StandardError
	}
	return s
}

// Error returns the standard error as text, or unknown if there is none.
func (p *TablePoint) Error(goal *measure.Measure, unknown string) string {
	if p.StandardError == nil {
		return unknown
	}
	return goal.Text(*p.StandardError)
}

// choose selects the best of the points that were tried on all folds or, with oneSE, applies the
// one-standard-error rule. It returns false if there is no such point.
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

// Leading reports by index which points matter most: those tried on the most folds, and the best of
// each method and loss. In a short table these are all points.
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

// shortTable is the number of points up to which all are shown.
const shortTable = 20

// lines returns the paths to draw, in percent if the goal is shown so.
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

// Sketch draws the chosen point's path as text. It is empty if the path has no other point.
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
