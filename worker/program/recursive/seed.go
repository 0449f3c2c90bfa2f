package recursive

import (
	"context"
	"slices"

	params "taxon/coordinator/method/recursive"
	"taxon/mapper"
	"taxon/reducer"
	"taxon/store"
	"taxon/worker/program"
)

// WarmStart makes the values of the internals that a job begins with, one a range and group, and
// on a tree those of the blocks: v = w - w_parent of a smooth loss, the duals that the weights
// tell of (dualSeeder) of others. Memory: the
// sparse weights of the internals, the dense vectors of a block, and the duals. Time: for a hinge
// loss, that of scoring all rows once.
func (j *job) WarmStart(ctx context.Context, from program.Weights0) (values []store.Value, families []string, err error) {
	full := j.seedVectors(from)
	count := uint32(len(j.groupOf))
	key := func(task uint32, name string) store.Key {
		return store.Key{Job: j.id, Step: program.SeedStep, Task: task, Attempt: 1, Name: name}
	}
	for k := range len(j.ranges()) - 1 {
		lo, hi := j.ranges()[k], j.ranges()[k+1]
		part := cutVectors(full, lo, hi)
		for g, nodes := range j.groups {
			values = append(values, store.Value{Key: key(count+uint32(k), rangeName(params.X, g)), Data: encodeVectors(part, nodes, lo)})
		}
	}
	if len(j.forest.Parent) > 0 {
		families = append(families, params.X)
	}
	if j.graph != nil {
		return values, families, nil
	}
	state := func(b uint32) *mapper.State { return j.seedBlock(b, full, from) }
	if !j.smooth() {
		state = j.newDualSeeder(full, from).block
	}
	for b := range count {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		values = append(values, store.Value{Key: key(b, params.Dual), Data: j.encodeState(state(b))})
	}
	return values, append(families, params.Dual), nil
}

// sparseWeights is what Weights0 gives for a node.
type sparseWeights struct {
	columns []uint32
	values  []float32
}

// seedVectors lists the internals' overrides. A node that overrides a feature has all its
// ancestors override it too (reducer.Vectors): they get what they inherit.
func (j *job) seedVectors(from program.Weights0) *reducer.Vectors {
	parent := j.forest.Parent
	nodeOf := make([]int, len(parent))
	for n, p := range j.internal {
		if p >= 0 {
			nodeOf[p] = n
		}
	}
	need, own := make([][]uint32, len(parent)), make([]sparseWeights, len(parent))
	for p := len(parent) - 1; p >= 0; p-- { // children before parents
		own[p].columns, own[p].values = from(nodeOf[p])
		need[p] = union(need[p], own[p].columns)
		if up := parent[p]; up >= 0 {
			need[up] = union(need[up], need[p])
		}
	}
	v := &reducer.Vectors{Begin: make([]int64, 1, len(parent)+1)}
	for p := range parent {
		columns, values := own[p].columns, own[p].values
		up, last := []uint32(nil), []float32(nil)
		if q := parent[p]; q >= 0 {
			up, last = v.Feature[v.Begin[q]:v.Begin[q+1]], v.Value[v.Begin[q]:v.Begin[q+1]]
		}
		for _, c := range need[p] {
			x := float32(0)
			if i, ok := slices.BinarySearch(columns, c); ok {
				x = values[i]
			} else if i, ok := slices.BinarySearch(up, c); ok {
				x = last[i]
			}
			v.Feature, v.Value = append(v.Feature, c), append(v.Value, x)
		}
		v.Begin = append(v.Begin, int64(len(v.Feature)))
	}
	return v
}

// union merges two ascending lists.
func union(a, b []uint32) []uint32 {
	if len(a) == 0 {
		return b
	}
	out := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			out, a = append(out, a[0]), a[1:]
		case b[0] < a[0]:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// cutVectors keeps the features in [lo, hi).
func cutVectors(v *reducer.Vectors, lo, hi uint32) *reducer.Vectors {
	out := &reducer.Vectors{Begin: make([]int64, 1, len(v.Begin))}
	for p := range len(v.Begin) - 1 {
		features := v.Feature[v.Begin[p]:v.Begin[p+1]]
		a, b := lowerBound(features, lo), lowerBound(features, hi)
		out.Feature = append(out.Feature, features[a:b]...)
		out.Value = append(out.Value, v.Value[v.Begin[p]+int64(a):v.Begin[p]+int64(b)]...)
		out.Begin = append(out.Begin, int64(len(out.Feature)))
	}
	return out
}

// seedBlock is v = w - w_parent of a block's lanes.
func (j *job) seedBlock(b uint32, full *reducer.Vectors, from program.Weights0) *mapper.State {
	lanes := j.terminals(b)
	s := &mapper.State{Priced: true}
	for _, n := range lanes {
		columns, _ := from(int(n))
		s.Feature = union(s.Feature, columns)
	}
	s.Value = make([]float32, len(s.Feature)*len(lanes))
	for l, n := range lanes {
		columns, values := from(int(n))
		for i, c := range columns {
			at, _ := slices.BinarySearch(s.Feature, c)
			s.Value[at*len(lanes)+l] = values[i] - j.seeded(full, j.parent(n), c)
		}
	}
	return s
}

// seeded is internal node p's value of a feature; -1: 0.
func (j *job) seeded(full *reducer.Vectors, p int32, c uint32) float32 {
	for ; p >= 0; p = j.forest.Parent[p] {
		if i, ok := slices.BinarySearch(full.Feature[full.Begin[p]:full.Begin[p+1]], c); ok {
			return full.Value[full.Begin[p]+int64(i)]
		}
	}
	return 0
}
