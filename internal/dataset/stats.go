package dataset

import "fmt"

// Stats counts a data set and what was unusual about its source.
type Stats struct {
	Counts
	Columns      int64 `json:"columns"`       // features that occur
	Nonzeros     int64 `json:"nonzeros"`      // stored values
	Labels       int64 `json:"labels"`        // distinct names
	LabelEntries int64 `json:"label_entries"` // (row, label) pairs
	MaxLabels    int64 `json:"max_labels"`    // most labels of a row
	MaxFeatures  int64 `json:"max_features"`  // most features of a row
	Text         bool  `json:"text"`

	LeftOut int64   `json:"left_out,omitempty"` // rows of weight 0, which are not counted above
	Weight  float64 `json:"weight,omitempty"`   // sum of the rows' weights; 0: none has one other than 1
}

// Warnings are what a user should know about, one line each, in a fixed order.
func (s Stats) Warnings() []string {
	var out []string
	for _, w := range []struct {
		n         int64
		one, many string
	}{
		{s.EmptyLines, "empty line skipped", "empty lines skipped"},
		{s.Broken, "broken row left out", "broken rows left out"},
		{s.Unlabelled, "instance has no label: it is negative for every class", "instances have no label: they are negative for every class"},
		{s.ZeroRows, "instance has no features", "instances have no features"},
		{s.RepeatedLabels, "repeated label within a line, taken once", "repeated labels within a line, taken once"},
		{s.ExplicitZeros, "explicit zero value left out", "explicit zero values left out"},
	} {
		switch {
		case w.n == 1:
			out = append(out, "1 "+w.one)
		case w.n > 1:
			out = append(out, fmt.Sprintf("%d %s", w.n, w.many))
		}
	}
	return out
}
