package main

import (
	"fmt"
	"strings"

	"taxon/internal/drift"
	"taxon/internal/jobspec"
	"taxon/internal/model"
)

// driftNames bounds the classes that stand for their components.
const driftNames = 5

// findDrift tells, before any work, of an objective that has no least value: possible
// on a graph without an anchor and with the logistic loss alone. The job is told, too, and
// ends as "drift".
func (t *training) findDrift() {
	t.drift = nil
	if t.o.loss != "logistic" || !t.tree.IsGraph() || !jobspec.Uncertified(t.spec) {
		return
	}
	r := drift.Find(&drift.Problem{
		Graph: t.tree, Rows: t.set.Matrix, Bias: t.o.bias,
		Positives: func(n int32) []uint32 {
			l := t.tree.Label[n]
			return t.set.PosRows[t.set.PosBegin[l]:t.set.PosBegin[l+1]]
		},
	})
	if len(r.Drifting) == 0 {
		return
	}
	t.drift = &model.Drift{Components: len(r.Drifting), Of: r.Components}
	for i, c := range r.Drifting {
		t.spec.Drifting = append(t.spec.Drifting, uint32(c.Terminals[0]))
		t.drift.Classes += len(c.Terminals)
		if i < driftNames {
			t.drift.First = append(t.drift.First, t.tree.Name[c.Terminals[0]])
		}
	}
	t.a.ui.Warn("with --anchor 0 the objective has no minimum: it falls without end along %s; the weights will be those of the sweep at which training stops; give --anchor a value above 0 (default 0.01)", drifting(t.drift))
}

// drifting names what drifts.
func drifting(d *model.Drift) string {
	names := make([]string, len(d.First))
	for i, n := range d.First {
		names[i] = fmt.Sprintf("%q", n)
	}
	more := ""
	if d.Components > len(d.First) {
		more = ", ..."
	}
	parts := "the one component that has classes"
	if d.Of > 1 {
		parts = fmt.Sprintf("%d of %d components", d.Components, d.Of)
	}
	return fmt.Sprintf("%s, with %s (%s%s)", parts, counted(int64(d.Classes), "class", "classes"), strings.Join(names, ", "), more)
}
