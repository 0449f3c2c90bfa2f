package measure

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// names returns the names of the labels, by id.
func (l *labels) names() []string {
	out := make([]string, len(l.node))
	for name, id := range l.id {
		out[id] = name
	}
	return out
}

// perClass returns the measures of the class set, in the order of the ids.
func (a *Accumulator) perClass() []Class {
	out := []Class{}
	for id, name := range a.labels.names() {
		if t := a.tally(id); a.labels.used[id] {
			out = append(out, Class{name, t.truePos + t.falseNeg, t.truePos + t.falsePos, t.precision(), t.recall(), t.f1()})
		}
	}
	return out
}

// confuse counts the last row. A correct label is paired with itself. Every missed label is paired
// with every wrong one. If there are none on one side, they are paired with "none".
func (a *Accumulator) confuse() {
	if a.confused == nil {
		a.confused = map[[2]int32]int64{}
	}
	const none = -1
	wrong := 0
	for _, p := range a.predIDs {
		if a.truth.has(p) {
			a.confused[[2]int32{p, p}]++
		} else {
			wrong++
		}
	}
	missed := 0
	for _, t := range a.truthIDs {
		if a.predicted.has(t) {
			continue
		}
		if missed++; wrong == 0 {
			a.confused[[2]int32{t, none}]++
		}
		for _, p := range a.predIDs {
			if !a.truth.has(p) {
				a.confused[[2]int32{t, p}]++
			}
		}
	}
	for _, p := range a.predIDs {
		if missed == 0 && !a.truth.has(p) {
			a.confused[[2]int32{none, p}]++
		}
	}
}

// mistakes lists the pairs that confuse has counted, the most frequent first.
func (a *Accumulator) mistakes() []Mistaken {
	if a.confused == nil {
		return nil
	}
	names := a.labels.names()
	name := func(id int32) string {
		if id < 0 {
			return ""
		}
		return names[id]
	}
	var out []Mistaken
	for pair, n := range a.confused {
		out = append(out, Mistaken{name(pair[0]), name(pair[1]), n})
	}
	slices.SortFunc(out, func(x, y Mistaken) int {
		return cmp.Or(cmp.Compare(y.Instances, x.Instances), cmp.Compare(x.Truth, y.Truth), cmp.Compare(x.Predicted,
			y.Predicted))
	})
	return out
}

// WriteConfusion writes true and predicted labels with their counts as CSV, the most frequent
// first.
func (r *Result) WriteConfusion(w io.Writer) error {
	out := csv.NewWriter(w)
	err := out.Write([]string{"true", "predicted", "instances"})
	for _, m := range r.Mistakes {
		if err == nil {
			err = out.Write([]string{m.Truth, m.Predicted, strconv.FormatInt(m.Instances, 10)})
		}
	}
	out.Flush()
	return cmp.Or(err, out.Error())
}
