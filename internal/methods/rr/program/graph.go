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

// graph holds the part of a job that exists on graphs only: the leaf groups (terminals with the
// same neighbours), which take the role of parents in a tree.
type graph struct {
	*reducer.Graph

	// leafGroupOf maps a node to its leaf group. It is -1 for an internal, and for a terminal
	// without edges.
	leafGroupOf []int32
	whole       bool // contributions carry whole vectors: see reducer.Task.Whole
}

// numberGraph numbers internals and leaf groups, in node order. unwanted is program.Job.Unwanted.
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

// pull returns S_n + lambda0 of a block's terminals, which is the same for all of them.
func (j *job) pull(block uint32) float64 {
	if j.graph == nil {
		return 1
	}
	return jobspec.Pull(j.tree, j.terminals(block)[0], j.options.Anchor)
}

// leafGroupMean returns the dense m_n of a leaf group's terminals, which has one entry more than
// the data has columns. It stores in s the terms with which a full pass computes the exact sum over
// the edges.
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

// edgeSums is the difference between the edge terms of a leaf group's terminals with their anchor,
// 1/2 sum_j ||w - w_j||^2 + lambda0/2 ||w||^2, and the mapper's S/2 ||w - m||^2 with its rounded m.
// With d = m - sum_j w_j / S it is, for each terminal at w = m + v,
//
//	1/2 sum_j ||w_j||^2 - S/2 ||m||^2 + S d.m + S d.v
type edgeSums struct {
	constant float64   // all terms but the last
	rounding []float64 // d
}

func cleared64(v []float64, n int) []float64 {
	if len(v) != n {
		return make([]float64, n)
	}
	clear(v)
	return v
}

// scale converts a block's sums from the scale of its subproblems, K = C/S, to the scale of the
// whole problem, and completes the edge terms.
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
		if k.job.form.gradients { // D is P minus a term of the gradient
			sums.Dual += add
		}
	}
}

// wholeVectors converts contributions of v to contributions of w = m + v.
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

// wholeWeights converts overrides of the leaf groups' means to overrides of zero, the form of
// graphs in models.
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
