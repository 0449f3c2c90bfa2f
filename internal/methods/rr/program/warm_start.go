package program

import (
	"context"
	"math"
	"slices"

	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
	"taxon/worker/program"
)

// WarmStart returns the values with which a job begins. They are the values of the internals, one
// per range and group, and on a tree also the values of the blocks. A block of the logistic loss
// begins at v = w - w_parent; a block of a hinge begins at duals that match the weights
// (dualSeeder). It takes the memory of the sparse weights of the internals, the dense vectors of a
// block, and the duals. With a hinge it takes the time of one pass over all rows, which scores
// them.
func (j *job) WarmStart(ctx context.Context, from program.InitialWeights) (values []store.Value, families []string,
	err error) {
	full := j.seedVectors(from)
	count := uint32(len(j.groupOf))
	key := func(task uint32, name string) store.Key {
		return store.Key{Job: j.id, Step: program.SeedStep, Task: task, Attempt: 1, Name: name}
	}
	for k := range len(j.ranges()) - 1 {
		lo, hi := j.ranges()[k], j.ranges()[k+1]
		part := cutVectors(full, lo, hi)
		for g, nodes := range j.groups {
			values = append(values, store.Value{Key: key(count+uint32(k), rangeName(params.X, g)), Data: encodeVectors(part,
				nodes, lo)})
		}
	}
	if len(j.forest.Parent) > 0 {
		families = append(families, params.X)
	}
	if j.graph != nil {
		return values, families, nil
	}
	state := j.form.seeds(j, full, from)
	for b := range count {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		values = append(values, store.Value{Key: key(b, params.Dual), Data: j.form.encode(state(b))})
	}
	return values, append(families, params.Dual), nil
}

// sparseWeights holds a node's weights as InitialWeights returns them.
type sparseWeights struct {
	columns []uint32
	values  []float32
}

// seedVectors lists the internals' overrides. If a node overrides a feature, all its ancestors must
// override it too (reducer.Vectors); they get the value that they inherit.
func (j *job) seedVectors(from program.InitialWeights) *reducer.Vectors {
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
		if i, ok := slices.BinarySearch(own[p].columns, j.forest.Apart-1); ok && j.forest.Apart > 0 {
			own[p].columns = slices.Delete(slices.Clone(own[p].columns), i, i+1)
			own[p].values = slices.Delete(slices.Clone(own[p].values), i, i+1)
		}
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

// cutVectors returns the part of v with features in [lo, hi).
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

// seedBlock returns v = w - w_parent of a block's lanes.
func (j *job) seedBlock(b uint32, full *reducer.Vectors, from program.InitialWeights) *mapper.State {
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

// seeded returns the value of a feature at internal node p. It is 0 if p is -1.
func (j *job) seeded(full *reducer.Vectors, p int32, c uint32) float32 {
	for ; p >= 0; p = j.forest.Parent[p] {
		if i, ok := slices.BinarySearch(full.Feature[full.Begin[p]:full.Begin[p+1]], c); ok {
			return full.Value[full.Begin[p]+int64(i)]
		}
	}
	return 0
}

// These constants determine the duals with which a hinge loss begins. They change the path, but not
// the optimum.
const (
	// nearCorner is the distance of a margin from 1 within which the hinge's dual may have any
	// value in its box. These duals are fitted to the weights.
	nearCorner = 0.05

	// cornerPasses is the number of coordinate descent passes that fit them.
	cornerPasses = 6

	// seedBand determines the first working sets: they contain the rows whose margin is below 1 +
	// seedBand.
	seedBand = 0.15
)

// dualSeeder finds duals and working sets of blocks for given weights, by the optimality condition
// a = -C loss'(z). The squared hinge's duals are 2C(1-z)_+. The hinge's are C below the corner z =
// 1 and 0 above it. At the corner, the duals are chosen so that their sum comes closest to v = w -
// w_parent.
type dualSeeder struct {
	*job
	full  *reducer.Vectors
	from  program.InitialWeights
	w     [][mapper.Lanes]float32     // weights of a block's lanes
	own   [mapper.Lanes]sparseWeights // the sparse form of w
	rest  []float64                   // scratch memory of fit
	norm  []float64
	dense []float32 // dense vector of the current lane's parent
}

func (j *job) newDualSeeder(full *reducer.Vectors, from program.InitialWeights) *dualSeeder {
	x := j.set.Matrix
	d := &dualSeeder{
		job: j, full: full, from: from, w: make([][mapper.Lanes]float32, x.Cols+1),
		rest: make([]float64, x.Cols+1), dense: make([]float32, x.Cols+1), norm: make([]float64, x.Rows),
	}
	for i := range d.norm {
		_, value := x.Row(i)
		d.norm[i] = float64(d.problem.Bias) * float64(d.problem.Bias)
		for _, v := range value {
			d.norm[i] += float64(v) * float64(v)
		}
	}
	return d
}

// corner is a row whose dual is fitted.
type corner struct {
	row  int
	sign float64
	c    float64
	at   int // index among the lane's duals
}

// lane holds the rows of a terminal's working set, ascending, and their duals, which may be 0.
type lane struct {
	row     []uint32
	dual    []float64
	corners []corner
}

// block computes the state of a block. A lane that begins at its parent has no duals.
func (d *dualSeeder) block(b uint32) *mapper.State {
	terminals := d.terminals(b)
	clear(d.w)
	lanes := make([]lane, len(terminals))
	known := uint16(0)
	for l, n := range terminals {
		d.parentOf(n)
		columns, values := d.from(int(n))
		d.own[l] = sparseWeights{columns, values}
		if len(columns) > 0 {
			known |= 1 << l
		}
		for i, c := range columns {
			d.dense[c] = values[i]
		}
		for c, v := range d.dense {
			d.w[c][l] = v
		}
	}
	d.score(terminals, lanes, known)
	for l, n := range terminals {
		if len(lanes[l].corners) > 0 {
			d.fit(n, &lanes[l], d.own[l])
		}
	}
	return joined(lanes)
}

// parentOf copies the vector of terminal n's parent to d.dense.
func (d *dualSeeder) parentOf(n uint32) {
	clear(d.dense)
	var path []int32
	for p := d.parent(n); p >= 0; p = d.forest.Parent[p] {
		path = append(path, p)
	}
	for _, p := range slices.Backward(path) {
		for k := d.full.Begin[p]; k < d.full.Begin[p+1]; k++ {
			d.dense[d.full.Feature[k]] = d.full.Value[k]
		}
	}
}

// score passes over the rows and computes duals and working sets from the margins.
func (d *dualSeeder) score(terminals []uint32, lanes []lane, known uint16) {
	positive := make([][]uint32, len(lanes))
	weight := make([]float64, len(lanes))
	for l, n := range terminals {
		positive[l] = d.positives(n)
		weight[l] = d.positiveWeight(n)
	}
	for i := range d.set.Matrix.Rows {
		if d.norm[i] == 0 {
			continue
		}
		sum := d.row(i)
		for l := range lanes {
			sign, c := -1.0, d.problem.C
			if d.problem.Weight != nil {
				c *= d.problem.Weight[i]
			}
			if p := positive[l]; len(p) > 0 && p[0] == uint32(i) {
				sign, c, positive[l] = 1, c*weight[l], p[1:]
			}
			z := sign * float64(sum[l])
			if sign < 0 && z > 1+seedBand {
				continue
			}
			a := 0.0
			if known>>l&1 != 0 {
				a = d.dual(z, c)
				if d.problem.Loss == mapper.Hinge && math.Abs(z-1) < nearCorner {
					lanes[l].corners = append(lanes[l].corners, corner{i, sign, c, len(lanes[l].dual)})
				}
			}
			lanes[l].row, lanes[l].dual = append(lanes[l].row, uint32(i)), append(lanes[l].dual, a)
		}
	}
}

// row returns w.x_i of the block's lanes.
func (d *dualSeeder) row(i int) (sum [mapper.Lanes]float32) {
	index, value := d.set.Matrix.Row(i)
	for k, c := range index {
		v, w := value[k], &d.w[c]
		for l := range sum {
			sum[l] += float32(v * w[l])
		}
	}
	if bias := d.problem.Bias; bias != 0 {
		w := &d.w[d.set.Matrix.Cols]
		for l := range sum {
			sum[l] += float32(bias * w[l])
		}
	}
	return sum
}

// dual returns the dual for a margin. At the hinge's corner, it is the value between 0 and C from
// which fit begins.
func (d *dualSeeder) dual(z, c float64) float64 {
	if d.problem.Loss == mapper.SquaredHinge {
		return float64(float32(2 * c * max(1-z, 0)))
	}
	return float64(float32(c * inside * min(max((1+nearCorner-z)/(2*nearCorner), 0), 1)))
}

// fit chooses the duals at the corner so that sum a y x comes close to v = w - w_parent, by
// coordinate descent within the box.
func (d *dualSeeder) fit(n uint32, l *lane, own sparseWeights) {
	d.parentOf(n)
	clear(d.rest)
	for i, c := range own.columns {
		d.rest[c] = float64(own.values[i]) - float64(d.dense[c])
	}
	positive := d.positives(n)
	for k, i := range l.row {
		sign := -1.0
		if _, ok := slices.BinarySearch(positive, i); ok {
			sign = 1
		}
		d.move(int(i), -sign*l.dual[k])
	}
	for range cornerPasses {
		for _, c := range l.corners {
			a := l.dual[c.at]
			next := min(max(a+float64(c.sign*d.dot(c.row))/d.norm[c.row], 0), c.c*inside)
			next = float64(float32(next))
			d.move(c.row, c.sign*(a-next))
			l.dual[c.at] = next
		}
	}
}

// move adds a multiple of a row to the residual.
func (d *dualSeeder) move(i int, by float64) {
	if by == 0 {
		return
	}
	index, value := d.set.Matrix.Row(i)
	for k, c := range index {
		d.rest[c] += float64(by * float64(value[k]))
	}
	d.rest[len(d.rest)-1] += float64(by * float64(d.problem.Bias))
}

func (d *dualSeeder) dot(i int) float64 {
	index, value := d.set.Matrix.Row(i)
	sum := float64(d.rest[len(d.rest)-1] * float64(d.problem.Bias))
	for k, c := range index {
		sum += float64(d.rest[c] * float64(value[k]))
	}
	return sum
}

// joined merges the lanes' rows into a state.
func joined(lanes []lane) *mapper.State {
	s := &mapper.State{Priced: true}
	at := make([]int, len(lanes))
	for {
		row, left := uint32(math.MaxUint32), false
		for l := range lanes {
			if at[l] < len(lanes[l].row) {
				row, left = min(row, lanes[l].row[at[l]]), true
			}
		}
		if !left {
			return s
		}
		var work, live uint16
		for l := range lanes {
			if k := at[l]; k < len(lanes[l].row) && lanes[l].row[k] == row {
				work |= 1 << l
				if a := lanes[l].dual[k]; a > 0 {
					live |= 1 << l
					s.Dual = append(s.Dual, a)
				}
				at[l]++
			}
		}
		s.Rows, s.Work, s.Live = append(s.Rows, row), append(s.Work, work), append(s.Live, live)
	}
}

// ConvertedFamilies implements program.StateConverter.
func (m Method) ConvertedFamilies() []string { return []string{params.Dual, params.X} }

// ConvertValue implements program.StateConverter. It keeps the internals unchanged.
func (m Method) ConvertValue(name string, data []byte, from, to *taxonv1.Options) ([]byte, error) {
	if name != params.Dual {
		return data, nil
	}
	before, err := params.SettingsOf(from)
	if err != nil {
		return nil, err
	}
	o, err := params.SettingsOf(to)
	if err != nil {
		return nil, err
	}
	return rescaleState(data, o.Loss, before.C, o.C)
}

// rescaleState converts the state in which a block ended under one C to an initial state under
// another. Duals at the hinge's old bound move to its new one, and those beyond the squared hinge's
// C grow in proportion. The others are kept, limited to the new box: where most duals are free, as
// on text with a large C, they hardly grow with C, and scaled they would overshoot. The logistic
// loss has no duals: its v = w - y is kept. Working sets are kept as well, because the first sweep
// begins with a full pass that selects new ones.
func rescaleState(data []byte, loss string, from, to float64) ([]byte, error) {
	l, err := mapper.ParseLoss(loss)
	if err != nil {
		return nil, err
	}
	if l == mapper.Logistic {
		return data, nil
	}
	s, err := decodeState(data, math.MaxUint32)
	if err != nil {
		return nil, err
	}
	for i, a := range s.Dual {
		if a >= atBound*from || to < from {
			a *= to / from
		}
		if from != to {
			s.Dual[i] = float64(float32(a * inside))
		}
	}
	return encodeState(s), nil
}

// atBound is the share of C from which on a dual counts as being at its bound.
const atBound = 0.999

// inside keeps scaled duals within their box in spite of rounding. A dual that ends up slightly
// below its bound moves there when its row is visited.
const inside = 1 - 2.4e-7
