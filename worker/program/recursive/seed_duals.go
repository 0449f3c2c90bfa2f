package recursive

import (
	"math"
	"slices"

	"taxon/mapper"
	"taxon/reducer"
	"taxon/worker/program"
)

// Constants of the duals that a hinge loss begins with. They change the path, never the optimum.
const (
	// nearCorner: the hinge's duals of rows whose margin is this close to 1 may be anything in
	// their box: they are fitted to the weights.
	nearCorner = 0.05
	// cornerPasses of coordinate descent fit them.
	cornerPasses = 6
	// seedBand: rows whose margin is below 1 + seedBand are in the first working sets.
	seedBand = 0.15
)

// A dualSeeder draws duals and working sets of blocks from weights. What weights say of duals is the
// optimality condition a = -C loss'(z): 2C(1-z)_+ of the squared hinge; C below the
// hinge's corner and 0 above it. At the corner the duals are those whose sum comes closest
// to v = w - w_parent.
type dualSeeder struct {
	*job
	full  *reducer.Vectors
	from  program.Weights0
	w     [][mapper.Lanes]float32     // of a block's lanes
	own   [mapper.Lanes]sparseWeights // what they are made of
	rest  []float64                   // scratch of fit
	norm  []float64
	dense []float32 // the parent of the lane under way
}

func (j *job) newDualSeeder(full *reducer.Vectors, from program.Weights0) *dualSeeder {
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

// corner is a row whose dual is to be fitted.
type corner struct {
	row  int
	sign float64
	c    float64
	at   int // among the lane's duals
}

// lane is a terminal's rows: those to visit, ascending, with their duals, 0 for none.
type lane struct {
	row     []uint32
	dual    []float64
	corners []corner
}

// block draws the state of a block: a lane that begins at its parent has no duals yet.
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

// parentOf lays the vector of terminal n's parent out in d.dense.
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

// score passes over the rows: margins give duals and working sets.
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

// row is w.x_i of the block's lanes.
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

// dual is the one that a margin tells of; at the hinge's corner between the two that it could be.
func (d *dualSeeder) dual(z, c float64) float64 {
	if d.problem.Loss == mapper.SquaredHinge {
		return float64(float32(2 * c * max(1-z, 0)))
	}
	return float64(float32(c * inside * min(max((1+nearCorner-z)/(2*nearCorner), 0), 1)))
}

// fit chooses the corner's duals so that sum a y x comes close to v = w - w_parent, by
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

// move adds a row to what is left to be explained.
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

// joined merges the lanes' rows.
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
