package tune

import (
	"cmp"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
)

// Effect is the change of the goal if one option has another value and all others are as chosen. It
// can also be the change of the goal if another method or loss is used at its best point. Both
// points are measured on the same rows.
type Effect struct {
	// Option is the option's name. It may be method or loss.
	Option string `json:"option"`
	// Value is the other value.
	Value      string  `json:"value"`
	Difference float64 `json:"difference"`
	// StandardError is the standard error of Difference, by the jackknife over groups of rows.
	StandardError float64 `json:"standard_error"`
}

// Words returns the effect as text.
func (e *Effect) Words(goal *measure.Measure) string {
	sign := ""
	if e.Difference > 0 {
		sign = "+"
	}
	return sign + goal.Text(e.Difference) + " ± " + goal.Text(e.StandardError)
}

// Border is an option whose chosen value is the smallest or largest that was tried.
type Border struct {
	Option string `json:"option"`
	Value  string `json:"value"`
	// End is smallest or largest.
	End string `json:"end"`
}

// Runner is a point that is not clearly worse than the chosen one, but far cheaper or smaller.
type Runner struct {
	Point Point `json:"point"`
	Effect
	// Times is the ratio of the trainings' CPU times.
	Times float64 `json:"times_cheaper"`
	// Smaller is the ratio of the models' sizes.
	Smaller float64 `json:"times_smaller"`
}

// Explanation returns the outcome in sentences.
func (r *Table) Explanation() (lines []string) {
	say := func(head, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-11s "+format, append([]any{head}, args...)...))
	}
	for i, e := range r.Effects {
		head := ""
		if i == 0 {
			head = "instead"
		}
		say(head, "%s %s: %s", e.Option, e.Value, e.Words(r.Measure))
	}
	for _, b := range r.Borders {
		say("border", "%s %s is the %s value that was tried: others beyond may be better", b.Option, b.Value, b.End)
	}
	if u := r.Runner; u != nil {
		say("runner-up", "%s: %s; its training takes %.2g of the time, its model %.2g of the bytes", u.Point.Name(),
			u.Words(r.Measure), 1/u.Times, 1/u.Smaller)
	}
	methods, points := map[string]bool{}, 0
	for _, p := range r.Points {
		methods[p.Method] = true
	}
	for _, u := range r.Untried {
		if methods[u.Method] {
			points++
			continue
		}
		say("not tried", "%s: %s", u.Name(), u.Why)
	}
	if points > 0 {
		say("not tried", "%s of methods that were, for want of time: see table.json", format.Counted(int64(points), "point",
			"points"))
	}
	if r.Sample {
		say("measured", "on a sample alone: the time did not last for more")
	}
	if r.TimeUp {
		say("ended by", "the time limit: the same command continues")
	}
	return lines
}

// muchCheaper is the smallest factor at which a point counts as far cheaper or smaller.
const muchCheaper = 4

// explain adds a description of the options that mattered to the table.
func (c *hillClimb) explain(t *Table) {
	at := slices.IndexFunc(c.trials, func(r *trial) bool { return r.top.point.Equal(t.Options) })
	if at < 0 {
		return
	}
	chosen := c.trials[at]
	effect := func(option, value string, jack *Jackknife) Effect {
		d := difference(jack, chosen.first)
		return Effect{option, value, d[0], d.error()}
	}
	for _, f := range c.families {
		if best := c.bestOf(func(r *trial) bool { return r.family == f }); best != nil && f != chosen.family {
			option, value := "method", f.start.Method
			if loss := f.start.Values["loss"]; f.start.Method == chosen.base.Method {
				option, value = "loss", loss
			} else if loss != "" {
				value += " " + loss
			}
			t.Effects = append(t.Effects, effect(option, value, best.first))
		}
	}
	t.Effects = append(t.Effects, c.compared...)
	slices.SortStableFunc(t.Effects, func(a, b Effect) int {
		if t.Low {
			a, b = b, a
		}
		return cmp.Compare(b.Difference, a.Difference)
	})
	for _, o := range tunable(chosen.base.Method) {
		if o.Name != "loss" {
			c.explainOption(t, chosen, &o, effect)
		}
	}
	for _, r := range c.trials {
		cheaper, smaller := chosen.cpu/max(r.cpu, 1e-3), float64(chosen.bytes)/float64(max(r.bytes, 1))
		if r == chosen || cheaper < muchCheaper && smaller < muchCheaper || Out(chosen.first, r.first, 1, t.Low, false) {
			continue
		}
		if t.Runner == nil || Better(r.first[0], t.Runner.Difference+chosen.first[0], t.Low) {
			t.Runner = &Runner{r.top.point, effect("point", r.top.point.Name(), r.first), cheaper, smaller}
		}
	}
}

// explainOption adds the effects of the values next to the chosen one, and a Border if the chosen
// one is the smallest or largest.
func (c *hillClimb) explainOption(t *Table, chosen *trial, o *method.Option, effect func(option, value string,
	jack *Jackknife) Effect) {
	if o.Carried {
		for _, p := range chosen.points {
			if p.first != nil && p.point.Values[o.Name] != chosen.top.point.Values[o.Name] {
				t.Effects = append(t.Effects, effect(o.Name, p.point.Values[o.Name], p.first))
			}
		}
		return
	}
	value := chosen.base.Values[o.Name]
	least, most := value, value
	for _, r := range c.trials {
		v, ok := r.base.Values[o.Name]
		if !ok || r.family != chosen.family {
			continue
		}
		if r != chosen && r.base.with(o.Name, value).Equal(chosen.base) {
			t.Effects = append(t.Effects, effect(o.Name, v, r.first))
		}
		if o.Kind != method.Choice {
			all := Canonical(o, []string{least, v, most})
			least, most = all[0], all[len(all)-1]
		}
	}
	switch {
	case least == most:
	case value == least:
		t.Borders = append(t.Borders, Border{o.Name, value, "smallest"})
	case value == most:
		t.Borders = append(t.Borders, Border{o.Name, value, "largest"})
	}
}

// bestOf returns the best of the fully measured trials that in selects. It is nil if there is none.
func (c *hillClimb) bestOf(in func(*trial) bool) (best *trial) {
	for _, r := range c.trials {
		if in(r) && (best == nil || Better(r.first[0], best.first[0], c.goal.Low)) {
			best = r
		}
	}
	return best
}
