package program

import (
	"cmp"
	"slices"

	"taxon/internal/jobspec"
	"taxon/internal/linalg/contribution"
	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	"taxon/reducer"
)

// graph is what a job on a graph has beside its forest: the leaf groups (terminals with the
// same neighbours) that stand where a tree's parents do.
type graph struct {
	*reducer.Graph
	// node -> leaf group; -1: internal, or a terminal without edges
	leafGroupOf []int32
	whole       bool // contributions carry whole vectors: see reducer.Task.Whole
}

// numberGraph gives internals and leaf groups their numbers, in node order. unwanted is
// program.Job's.
func (j *job) numberGraph(sets []uint32, unwanted func() bool) {
	t, o := j.tree, &j.options
	f := &reducer.Forest{Graph: &reducer.Graph{Weight: o.InternalWeight, Anchor: o.Anchor}}
	j.internal = make([]int32, t.Len())
	for n, leaf := range t.Leaf {
		j.internal[n] = -1
		if !leaf {
			j.internal[n] = int32(len(f.Parent))
			f.Parent, f.Set = append(f.Parent, -1), append(f.Set, int32(sets[n]))
			f.Graph.Linked = append(f.Graph.Linked, len(t.Adjacent.Of(int32(n))) > 0)
		}
	}
	f.Terminals, f.Children = make([]int32, len(f.Parent)), make([]int32, len(f.Parent))
	j.graph = &graph{Graph: f.Graph, leafGroupOf: make([]int32, t.Len()),
		whole: o.Schedule != params.ScheduleTwoblock}
	var terminals []int32
	for n, leaf := range t.Leaf {
		j.graph.leafGroupOf[n] = -1
		near := t.Adjacent.Of(int32(n))
		if leaf && len(near) > 0 {
			terminals = append(terminals, int32(n))
		}
		for _, m := range near {
			if m > int32(n) && !leaf && !t.Leaf[m] {
				f.Graph.Edges = append(f.Graph.Edges, [2]int32{j.internal[n], j.internal[m]})
			}
		}
	}
	slices.SortStableFunc(terminals, func(a, b int32) int {
		return cmp.Or(slices.Compare(t.Adjacent.Of(a), t.Adjacent.Of(b)), cmp.Compare(a, b))
	})
	for i, n := range terminals {
		if i == 0 || !slices.Equal(t.Adjacent.Of(n), t.Adjacent.Of(terminals[i-1])) {
			group := reducer.LeafGroup{Pull: jobspec.Pull(t, uint32(n), o.Anchor)}
			for _, m := range t.Adjacent.Of(n) {
				group.Nodes = append(group.Nodes, j.internal[m])
			}
			f.Graph.LeafGroups = append(f.Graph.LeafGroups, group)
		}
		last := len(f.Graph.LeafGroups) - 1
		f.Graph.LeafGroups[last].Terminals++
		j.graph.leafGroupOf[n] = int32(last)
	}
	f.Graph.Prepare(len(f.Parent), unwanted)
	j.forest = f
}

// pull is S_n + lambda0 of a block's terminals, the same for all of them.
func (j *job) pull(block uint32) float64 {
	if j.graph == nil {
		return 1
	}
	return jobspec.Pull(j.tree, j.terminals(block)[0], j.options.Anchor)
}

// leafGroupMean is the dense m_n of a leaf group's terminals, one longer than the data has columns.
// It notes in s what a pricing pass needs to add the edges up exactly.
func (k *task) leafGroupMean(s *scratch, slot int, group int32) []float32 {
	if s.mean[slot] == nil {
		s.mean[slot] = make([]float32, k.job.set.Matrix.Cols+1)
	}
	f := &k.job.graph.LeafGroups[group]
	sum := cleared64(s.sum, int(k.job.features))
	s.sum = sum
	squares := 0.0
	for _, p := range f.Nodes {
		s.walk.EachY(p, func(i uint32, y float32) {
			sum[i] += float64(y)
			squares += float64(float64(y) * float64(y))
		})
	}
	mean := s.mean[slot]
	e := edgeSums{constant: squares / 2}
	if s.rounding[slot] == nil {
		s.rounding[slot] = make([]float64, k.job.set.Matrix.Cols+1)
	}
	d := s.rounding[slot]
	clear(d)
	for i, v := range sum {
		m := reducer.MeanAt(v, f.Pull)
		mean[i] = m
		d[i] = float64(m) - v/f.Pull
		e.constant += float64(f.Pull * float64(float64(m)*(d[i]-float64(m)/2)))
	}
	clear(mean[len(sum):])
	e.rounding = d
	s.edges = append(s.edges, e)
	return mean
}

// edgeSums are what the mapper's S/2 ||w - m||^2, m rounded, lacks of the edges of a leaf group's
// terminals and their anchor, 1/2 sum_j ||w - w_j||^2 + lambda0/2 ||w||^2: with
// d = m - sum_j w_j / S it is, for each terminal at w = m + v,
//
//	1/2 sum_j ||w_j||^2 - S/2 ||m||^2 + S d.m + S d.v
type edgeSums struct {
	constant float64   // all but the last term
	rounding []float64 // d
}

func cleared64(v []float64, n int) []float64 {
	if len(v) != n {
		return make([]float64, n)
	}
	clear(v)
	return v
}

// scale brings a block's sums from its subproblems' scale, K = C/S, to the whole
// problem's, and completes the edges.
func (k *task) scale(sums *mapper.Sums, s *scratch, b *mapper.Block, cs []contribution.Contribution, pull float64) {
	sums.Primal *= pull
	sums.Dual *= pull
	sums.InnerGap *= pull
	for i, e := range s.edges {
		lanes := 0
		for _, slot := range b.Slot {
			if slot == i {
				lanes++
			}
		}
		dot := 0.0
		for n, f := range cs[i].Feature {
			dot += float64(e.rounding[f] * cs[i].Sum[n])
		}
		add := float64(float64(lanes)*e.constant) + float64(pull*dot)
		sums.Primal += add
		if k.job.form.gradients { // D is P less what the gradient says
			sums.Dual += add
		}
	}
}

// wholeVectors turns contributions of v into those of w = m + v.
func wholeVectors(cs []contribution.Contribution, b *mapper.Block, features uint32) []contribution.Contribution {
	out := make([]contribution.Contribution, len(cs))
	for slot, c := range cs {
		lanes := 0.0
		for _, s := range b.Slot {
			if s == slot {
				lanes++
			}
		}
		w, at := contribution.Contribution{Parent: c.Parent}, 0
		for f := range features {
			sum, curvature, held := float64(lanes*float64(b.Mean[slot][f])), uint8(0), false
			if at < len(c.Feature) && c.Feature[at] == f {
				sum += c.Sum[at]
				curvature, held = c.Curvature[at], true
				at++
			}
			if held || sum != 0 {
				w.Feature, w.Sum, w.Curvature = append(w.Feature, f), append(w.Sum, sum), append(w.Curvature, curvature)
			}
		}
		out[slot] = w
	}
	return out
}

// wholeWeights turns overrides of the leaf groups' means into those of zero, as models of graphs
// store them.
func wholeWeights(os []mapper.Override, b *mapper.Block, features uint32) []mapper.Override {
	out := make([]mapper.Override, len(os))
	for l, o := range os {
		if b.Slot[l] < 0 {
			out[l] = o
			continue
		}
		mean, at := b.Mean[b.Slot[l]], 0
		for f := range features {
			w := mean[f]
			if at < len(o.Feature) && o.Feature[at] == f {
				w = o.Value[at]
				at++
			}
			if w != 0 {
				out[l].Feature, out[l].Value = append(out[l].Feature, f), append(out[l].Value, w)
			}
		}
	}
	return out
}
