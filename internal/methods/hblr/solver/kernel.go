package solver

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// Kernel has the loops that take the time, in assembly. The zero value is Go's. Both give equal
// bits: products are rounded before they are added, in the same order.
type Kernel struct {
	scores                                       [Lanes / quarter]func(*pass) // by the lines' quarters
	gather, gatherSquare, gatherSize, gatherBoth [Lanes / quarter]func(*pass)
	weighs                                       [Lanes / quarter]func(*weighing)
	loops                                        [Lanes / quarter]*loops
	products                                     [Lanes / eighth]func(*product) // by the lines' eighths
	turns, advances, turnsFar, advancesFar       [Lanes / eighth]func(*columnLoop)
}

// loops are the loops over lines of float64.
type loops struct {
	differentiate, differentiateFar, slopes, step, eliminate, follow, spans, bends, totals, doubts func(*lineLoop)
}

// quarter is the number of lanes that assembly takes at a time. Its lines have a multiple of it.
const quarter = 4

// Kernels are those that this CPU supports, the fastest first.
func Kernels() []Kernel { return append(native(), Kernel{}) }

// KernelOf is the kernel for a kernel of package mapper: Go's for "go", AVX2's for "avx2", and the fastest for
// others.
func KernelOf(name string) Kernel {
	switch all := Kernels(); {
	case name == "go":
		return Kernel{}
	case name == "avx2" && len(all) > 1:
		return all[len(all)-2]
	default:
		return all[0]
	}
}

// of is the kernel for lines of this many lanes. nil: Go's.
func (Kernel) of(kernels *[Lanes / quarter]func(*pass), lanes int) func(*pass) {
	if lanes%quarter != 0 {
		return nil
	}
	return kernels[lanes/quarter-1]
}

func (k *Kernel) product(e *product, line int) {
	if f := k.products[line/eighth-1]; f != nil {
		f(e)
		return
	}
	productRows(e, line)
}

func (k *Kernel) turn(e *columnLoop, line int) {
	f := k.turns[line/eighth-1]
	if e.pull != nil {
		f = k.turnsFar[line/eighth-1]
	}
	if f != nil {
		f(e)
		return
	}
	turnColumns(e, line)
}

func (k *Kernel) advance(e *columnLoop, line int) {
	f := k.advances[line/eighth-1]
	if e.pull != nil {
		f = k.advancesFar[line/eighth-1]
	}
	if f != nil {
		f(e)
		return
	}
	advanceColumns(e, line)
}

// over are the loops over lines of this many lanes.
func (k *Kernel) over(line int) *loops {
	if f := k.loops[line/quarter-1]; f != nil {
		return f
	}
	return &loopsGo
}

// Check refuses rows with a feature beyond the columns, because assembly does not check.
func (r Rows) Check() error {
	for i := range r.X.Rows {
		if index, _ := r.X.Row(i); len(index) > 0 && int(slices.Max(index)) >= r.X.Cols {
			return fmt.Errorf("instance %d has a feature beyond the %d of the data: ingest the data again", i+1, r.X.Cols)
		}
	}
	return nil
}

// pass is the argument of a kernel over the rows of a shard. Its layout is known to assembly.
type pass struct {
	begin               *uint64  // n+1 bounds of the rows' entries
	n                   int      //
	idx                 *uint32  // the shard's entries
	val                 *float32 //
	entries             int      //
	tile, last, rows    *float64 // a line a column, the bias feature's line, and a line a row
	tile2, last2, rows2 *float64 // gatherBoth: of squares
	size                *float64 // gatherSize: of each row
	bias, bias2         float64  // factors of the bias feature
}

// weighing is the argument of weigh, over n rows of quarters*4 lanes. Its layout is known to
// assembly.
type weighing struct {
	score, move, trial, coef, curve *float64
	positive                        *uint16  // of each row, the lanes that it is positive in
	weight                          *float64 // of each row
	stride                          int      // bytes from one to the next
	n, quarters                     int
	length, loss                    [Lanes]float64 // loss is added to
}

// one is the weight of rows without weights.
var one = 1.0

// run calls a kernel for each shard, set up for a tile of lines and one line a row.
func (r Rows) run(kernel func(*pass), lanes int, tile, rows []float64, set func(e *pass, from int)) {
	none := [Lanes]float64{} // the bias feature's line where there is none
	for k := range r.X.Shards {
		shard, from := &r.X.Shards[k], k<<sparse.RowShift
		e := &pass{begin: &shard.Begin[0], n: len(shard.Begin) - 1, idx: unsafe.SliceData(shard.Index), val: unsafe.SliceData(shard.Value), entries: len(shard.Index),
			tile: unsafe.SliceData(tile), last: &none[0], bias: r.Bias}
		if e.n <= 0 {
			continue
		}
		e.rows = &rows[from*lanes]
		if r.Bias > 0 {
			e.last = &tile[r.X.Cols*lanes]
		}
		if set != nil {
			set(e, from)
		}
		kernel(e)
	}
}

// weigh runs the kernel, or its Go twin, over lines of `lanes`, a multiple of quarter.
func (r Rows) weigh(lanes int, score, move, trial, coef, curve []float64, positive []uint16, length *[Lanes]float64) (loss [Lanes]float64) {
	if len(positive) == 0 {
		return loss
	}
	e := &weighing{score: &score[0], move: &move[0], trial: &trial[0], coef: &coef[0], curve: &curve[0], positive: &positive[0],
		weight: &one, n: len(positive), quarters: lanes / quarter, length: *length}
	if r.Weight != nil {
		e.weight, e.stride = &r.Weight[0], 8
	}
	if f := r.Kernel.weighs[lanes/quarter-1]; f != nil {
		f(e)
	} else {
		weighLines(e)
	}
	return e.loss
}

// weighLines sets, at the trial score z = score + length move of each row and lane, with t = 1
// where the lane is positive and 0 elsewhere and p = 1/(1+exp(-z)), coef to t - p and curve to
// p (1-p), and adds the losses up, all by the rows' weights.
func weighLines(e *weighing) {
	lanes := quarter * e.quarters
	size := e.n * lanes
	score, move, trial := unsafe.Slice(e.score, size), unsafe.Slice(e.move, size), unsafe.Slice(e.trial, size)
	coef, curve := unsafe.Slice(e.coef, size), unsafe.Slice(e.curve, size)
	for i, positive := range unsafe.Slice(e.positive, e.n) {
		weight := *(*float64)(unsafe.Add(unsafe.Pointer(e.weight), i*e.stride))
		for l := range lanes {
			at, own := i*lanes+l, positive>>l&1 != 0
			z := score[at] + float64(e.length[l]*move[at])
			trial[at] = z
			if own {
				z = -z
			}
			x := expNegative(-math.Abs(z))
			u := 1 + x
			q := 1 / u
			p := x * q
			curve[at] = weight * float64(p*q)
			if z > 0 {
				p = q
			}
			if !own {
				p = -p
			}
			coef[at] = weight * p
			e.loss[l] += float64(weight * (logarithm(u) + float64((x-(u-1))*q) + max(z, 0)))
		}
	}
}

// expNegative is Exp of a number that is not positive; below -690 it is 0.
func expNegative(x float64) float64 {
	if !(x > -690) {
		return 0
	}
	k := int(float64(x*math.Log2E) - 0.5)
	return fraction(x, k) * power(k)
}
