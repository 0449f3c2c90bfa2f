package reducer

import (
	"cmp"
	"slices"
	"testing"
)

// withBelow counts the terminals below each node.
func (s *system) withBelow() {
	s.forest.Below = append([]int32(nil), s.forest.Terminals...)
	for p := len(s.forest.Below) - 1; p > 0; p-- {
		if q := s.forest.Parent[p]; q >= 0 {
			s.forest.Below[q] += s.forest.Below[p]
		}
	}
}

// TestTiesStiffen: under full stiffness every terminal counts once, at the nearest node
// above it in the column, so that a step never goes beyond what the pulls justify.
func TestTiesStiffen(t *testing.T) {
	for seed := range uint64(6) {
		s := randomSystem(seed, 20, 8)
		s.withBelow()
		in := part(s.in, 0, uint32(s.width))
		slices.SortStableFunc(in, func(a, b Contribution) int { return cmp.Compare(a.Parent, b.Parent) })
		for f := range s.width {
			scratch := new(Scratch)
			task := Task{Forest: s.forest, Hi: uint32(s.width), Rule: Family, Beta: s.beta, Smooth: true, Ties: true}
			r := &run{Scratch: scratch, Task: task, unit: 1.0 / StiffUnit, prev: &scratch.prev, rigid: true}
			scratch.gather(&scratch.in, in, 0, uint32(s.width))
			scratch.transpose(&scratch.x, overrides(s.forest, s.x, 0, s.width), 0, uint32(s.width))
			scratch.transpose(&scratch.prev, overrides(s.forest, s.prev, 0, s.width), 0, uint32(s.width))
			scratch.at = make([]int32, len(s.forest.Parent))
			scratch.col.reset(len(s.forest.Parent))
			if r.empty(int32(f)) {
				continue
			}
			r.layOut(int32(f))
			scratch.col.stiffen(s.forest)
			total, want := 0.0, 0.0
			for i, p := range scratch.col.node {
				total += scratch.col.stiff[i]
				if s.forest.Parent[p] < 0 {
					want += float64(s.forest.Below[p])
				}
				if scratch.col.stiff[i] < float64(s.forest.Terminals[p]) {
					t.Errorf("seed %d feature %d node %d: stiffness %g of %d terminals", seed, f, p, scratch.col.stiff[i], s.forest.Terminals[p])
				}
			}
			if total != want {
				t.Errorf("seed %d feature %d: %g terminals are stiff of %g", seed, f, total, want)
			}
		}
	}
}
