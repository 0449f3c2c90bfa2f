package worker

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/coordinator"
	"taxon/internal/jobspec"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/test/jobs"
)

// foldingJob is a small job with logistic loss, and random vectors of its internals.
func foldingJob(t *testing.T, seed uint64) (*job, *reducer.Vectors, *rand.Rand) {
	t.Helper()
	small := jobs.Small(seed, 400, 150)
	o := jobs.Defaults()
	o.Method, o.Loss, o.InternalWeight = "rr-lr", "logistic", []float64{0, 3}[seed%2]
	spec := small.Spec(o)
	tree, _, err := jobspec.Tree(spec)
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJob(context.Background(), "j", &taxonv1.JobResult{Spec: spec, Plan: coordinator.NewPlan(tree, spec)}, of(small.Set))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 12))
	held := make([][]uint32, len(j.forest.Parent))
	for p := len(held) - 1; p >= 0; p-- {
		for f := range j.features {
			if _, in := slices.BinarySearch(held[p], f); !in && r.IntN(8) == 0 {
				held[p] = union(held[p], []uint32{f})
			}
		}
		if up := j.forest.Parent[p]; up >= 0 {
			held[up] = union(held[up], held[p])
		}
	}
	x := &reducer.Vectors{Begin: make([]int64, 1)}
	for p := range held {
		for _, f := range held[p] {
			x.Feature, x.Value = append(x.Feature, f), append(x.Value, float32(r.NormFloat64()))
		}
		x.Begin = append(x.Begin, int64(len(x.Feature)))
	}
	return j, x, r
}

// drawn is what the block's parents get, of all sizes.
func (j *job) drawn(r *rand.Rand, block uint32) (cs []mapper.Contribution, parents []int32) {
	for _, n := range j.terminals(block) {
		p := j.parent(n)
		if slices.Contains(parents, p) {
			continue
		}
		c := mapper.Contribution{Slot: len(parents)}
		parents = append(parents, p)
		for f := range j.features {
			if r.IntN(5) > 0 {
				c.Feature, c.Stiff = append(c.Feature, f), append(c.Stiff, uint8(r.IntN(15)))
				c.Sum = append(c.Sum, r.NormFloat64()*math.Exp2(float64(-r.IntN(12))))
			}
		}
		cs = append(cs, c)
	}
	return cs, parents
}

// TestFold: what blocks fold changes neither the certificate, with their own share of it, nor
// what anything above gets; nodes with values of their own keep what is theirs.
func TestFold(t *testing.T) {
	folded, all := 0, 0
	for seed := range uint64(6) {
		j, x, r := foldingJob(t, seed)
		group := &reducer.Internals{Parts: []*reducer.Vectors{x}}
		for p := range j.forest.Parent {
			group.Nodes = append(group.Nodes, int32(p))
		}
		k, s := &task{job: j}, &scratch{x: group, prev: group}
		var plain, sent, steps []reducer.Contribution
		cost := 0.0
		to := func(cs []mapper.Contribution, parents []int32, first int32) (out []reducer.Contribution) {
			for _, c := range cs {
				out = append(out, reducer.Contribution{Parent: parents[c.Slot] + first, Feature: c.Feature, Sum: c.Sum, Stiff: c.Stiff})
			}
			return out
		}
		first := int32(len(j.forest.Parent))
		for b := range j.groupOf {
			cs, parents := j.drawn(r, uint32(b))
			plain = append(plain, to(cs, parents, first)...)
			g, of, c := k.fold(s, uint32(b), cs, parents, 0, true)
			sent, cost = append(sent, to(g, of, first)...), cost+c
			v, vof, _ := k.fold(s, uint32(b), cs, parents, 1e-3, false)
			j.checkFold(t, x, to(cs, parents, 0), to(v, vof, 0))
			steps = append(steps, to(v, vof, 0)...)
		}
		if len(s.folding.lines) > 0 {
			t.Errorf("%d lines are still open", len(s.folding.lines))
		}
		certify := reducer.Task{Forest: j.forest, Hi: j.features, Rule: reducer.None, Certify: true, Smooth: true, Ties: true}
		_, want := certify.Run(slices.Clone(plain), x, x)
		_, got := certify.Run(slices.Clone(sent), x, x)
		if d := got.Dual - cost; got.Primal != want.Primal || math.Abs(d-want.Dual) > 1e-10*math.Abs(want.Dual) || cost == 0 {
			t.Errorf("seed %d: P %.15g and D %.15g (%g of it the blocks'), want %.15g and %.15g", seed, got.Primal, d, cost, want.Primal, want.Dual)
		}
		for _, c := range plain {
			all += len(c.Feature)
		}
		for _, c := range steps {
			folded += len(c.Feature)
		}
	}
	if folded > all*9/10 {
		t.Errorf("%d entries of %d are left", folded, all)
	}
}

// checkFold compares what each node and all below it get, before and after.
func (j *job) checkFold(t *testing.T, x *reducer.Vectors, before, after []reducer.Contribution) {
	t.Helper()
	type at struct {
		node    int32
		feature uint32
	}
	total := func(cs []reducer.Contribution) (sum map[at]float64, stiff map[at]int, own map[at]bool) {
		sum, stiff, own = map[at]float64{}, map[at]int{}, map[at]bool{}
		for _, c := range cs {
			for i, f := range c.Feature {
				own[at{c.Parent, f}] = true
				for p := c.Parent; p >= 0; p = j.forest.Parent[p] {
					sum[at{p, f}] += c.Sum[i]
					stiff[at{p, f}] += int(c.Stiff[i])
				}
			}
		}
		return sum, stiff, own
	}
	was, stiffWas, ownWas := total(before)
	is, stiffIs, ownIs := total(after)
	for p := range j.forest.Parent {
		held := x.Feature[x.Begin[p]:x.Begin[p+1]]
		for f := range j.features {
			e := at{int32(p), f}
			_, has := slices.BinarySearch(held, f)
			if fixed := has || j.home[p] < 0 || ownIs[e] && ownWas[e]; !fixed {
				continue
			}
			if math.Abs(was[e]-is[e]) > 1e-12*(1+math.Abs(was[e])) || stiffWas[e] != stiffIs[e] {
				t.Fatalf("internal %d feature %d gets %g (%d), not %g (%d)", p, f, is[e], stiffIs[e], was[e], stiffWas[e])
			}
		}
	}
}

// TestFoldable: a node's home is the one block with terminals below it.
func TestFoldable(t *testing.T) {
	j, _, _ := foldingJob(t, 3)
	homes := 0
	for p := range j.forest.Parent {
		blocks, terminals := map[int]bool{}, int32(0)
		for b := range j.groupOf {
			for _, n := range j.terminals(uint32(b)) {
				for q := j.parent(n); q >= 0; q = j.forest.Parent[q] {
					if q == int32(p) {
						blocks[b] = true
						terminals++
					}
				}
			}
		}
		want := int32(-1)
		if len(blocks) == 1 && j.forest.Parent[p] >= 0 {
			homes++
			for b := range blocks {
				want = int32(b)
			}
		}
		if j.home[p] != want || j.forest.Below[p] != terminals {
			t.Errorf("internal %d: block %d and %d terminals, want %d and %d", p, j.home[p], j.forest.Below[p], want, terminals)
		}
	}
	if homes < 5 {
		t.Errorf("%d nodes have a home", homes)
	}
}
