package reducer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
)

// tied runs a random update of a smooth loss, stiffness in StiffUnits, whose nodes may
// follow their parents.
func (s *system) tied(rule Rule, least float64) (*Vectors, Sums) {
	in := part(s.in, 0, uint32(s.width))
	for _, c := range in {
		for e := range c.Stiff {
			c.Stiff[e] *= StiffUnit
		}
	}
	below := append([]int32(nil), s.forest.Terminals...)
	for p := len(below) - 1; p > 0; p-- {
		if q := s.forest.Parent[p]; q >= 0 {
			below[q] += below[p]
		}
	}
	s.forest.Below = below
	t := Task{Forest: s.forest, Hi: uint32(s.width), Rule: rule, Certify: true, Beta: s.beta, Smooth: true, Ties: true, Least: least}
	return t.Run(in, overrides(s.forest, s.x, 0, s.width), overrides(s.forest, s.prev, 0, s.width))
}

// TestTies: without a bound they change nothing; with one, each node that has a value of its
// own stands, with those that follow it, where their common system has its solution, and
// the certificate stays what it was.
func TestTies(t *testing.T) {
	fewer := 0
	for seed := range uint64(12) {
		s := randomSystem(seed, 30, 24)
		plain, before := s.tied(Support, 0)
		want, _ := s.run(Support, 0, s.width, true)
		if fmt.Sprint(plain) != fmt.Sprint(want) {
			t.Errorf("seed %d: ties without a bound move the internals", seed)
		}
		const least = 0.7
		got, sums := s.tied(Support, least)
		if sums.Primal != before.Primal || sums.Dual != before.Dual {
			t.Errorf("seed %d: %+v, without ties %+v", seed, sums, before)
		}
		fewer += len(plain.Feature) - len(got.Feature)
		s.checkTied(t, fmt.Sprint("seed ", seed), got, least)
	}
	if fewer < 100 {
		t.Errorf("ties left out %d entries", fewer)
	}
}

// checkTied adds the residuals of each group of nodes with one value: they vanish, but for
// what nodes that were let go afterwards had, less than the bound each times their degree.
func (s *system) checkTied(t *testing.T, name string, got *Vectors, least float64) {
	t.Helper()
	w, y := expand(s.forest, got, s.width), s.y()
	for f := range s.width {
		group := make([]int, len(s.forest.Parent)) // the node that each one follows
		residual, allowed := make([]float64, len(group)), make([]float64, len(group))
		for p := range group {
			group[p] = p
			at := func(x []float32) float64 { return float64(x[f]) }
			up, edge := 0.0, s.forest.Edge(int32(p))
			if q := s.forest.Parent[p]; q >= 0 {
				up = at(w[q])
				if same(w[p][f], w[q][f]) {
					group[p] = group[q]
				}
				residual[group[q]] += edge * (up - at(w[p]))
			}
			g := group[p]
			residual[g] += edge*(at(w[p])-up) + s.stiff[p][f]*(at(w[p])-at(y[p])) - s.v[p][f]
			allowed[g] += least * (edge + s.stiff[p][f] + 3)
		}
		for p, r := range residual {
			exact := 1e-5
			for q := range group { // a follower may have been let go after the solve
				if group[q] == p && q != p {
					exact = allowed[p]
				}
			}
			if up := s.forest.Parent[p]; up >= 0 && group[p] == p || up < 0 {
				if math.Abs(r) > exact+1e-5*allowed[p] {
					t.Errorf("%s feature %d node %d: residual %g", name, f, p, r)
				}
			}
		}
	}
}

// TestTiesStiffen: under full stiffness every terminal counts once, at the nearest node
// above it in the column, so that a step never goes beyond what the pulls justify.
func TestTiesStiffen(t *testing.T) {
	for seed := range uint64(6) {
		s := randomSystem(seed, 20, 8)
		s.tied(Family, 0)
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
			r.stiffen()
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
