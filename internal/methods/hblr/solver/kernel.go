package solver

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// Kernel holds the loops that take the time, in assembly. The zero value uses Go's. Both give equal
// bits: products are rounded before they are added, in the same order. Fields over float64 are
// indexed by the number of quarters of a line, and those over float32 by its eighths.
type Kernel struct {
	scores                                       [Lanes / quarter]func(*pass)
	gather, gatherSquare, gatherSize, gatherBoth [Lanes / quarter]func(*pass)
	weighs                                       [Lanes / quarter]func(*weighing)
	loops                                        [Lanes / quarter]*loops
	products                                     [Lanes / eighth]func(*product)
	turns, advances, turnsFar, advancesFar       [Lanes / eighth]func(*columnLoop)
}

// loops holds the loops over lines of float64.
type loops struct {
	differentiate, differentiateFar, slopes, step, eliminate, follow, spans, bends, totals, doubts func(*lineLoop)
}

// quarter is the number of lanes that assembly takes at a time. Lines have a multiple of it.
const quarter = 4

// Kernels returns the kernels that this CPU supports, the fastest first.
func Kernels() []Kernel { return append(native(), Kernel{}) }

// KernelOf returns the kernel that matches a kernel of package mapper, by its name. It is Go's for
// "go", AVX2's for "avx2", and the fastest for all other names.
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

// of returns the kernel for lines of this many lanes. A nil one stands for Go's.
func (Kernel) of(kernels *[Lanes / quarter]func(*pass), lanes int) func(*pass) {
	if lanes%quarter != 0 {
		return nil
	}
	return kernels[lanes/quarter-1]
}

// product, turn and advance run the kernel's loop, or Go's if it has none.
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

// over returns the loops over lines of this many lanes.
func (k *Kernel) over(line int) *loops {
	if f := k.loops[line/quarter-1]; f != nil {
		return f
	}
	return &loopsGo
}

// Check returns an error if a row has a feature beyond the columns, because assembly does not
// check.
func (r Rows) Check() error {
	for i := range r.X.Rows {
		if index, _ := r.X.Row(i); len(index) > 0 && int(slices.Max(index)) >= r.X.Cols {
			return fmt.Errorf("instance %d has a feature beyond the %d of the data: ingest the data again", i+1, r.X.Cols)
		}
	}
	return nil
}

// pass is the argument of a kernel over the rows of a shard. Assembly knows its layout.
type pass struct {
	begin   *uint64  // n+1 bounds of the rows' entries
	n       int      //
	idx     *uint32  // the shard's entries
	val     *float32 //
	entries int      //
	// tile has a line for each column, last points to the line of the bias feature, and rows has a
	// line for each row.
	tile, last, rows *float64
	// tile2, last2 and rows2 are the same for the squares of gatherBoth.
	tile2, last2, rows2 *float64
	// size is the size of each row, for gatherSize.
	size *float64
	// bias and bias2 are factors of the bias feature.
	bias, bias2 float64
}

// weighing is the argument of weigh, over n rows of quarters*4 lanes. Assembly knows its layout.
type weighing struct {
	score, move, trial, coef, curve *float64
	// positive is the mask of each row's positive lanes.
	positive *uint16
	// weight holds the weight of each row, at intervals of stride bytes.
	weight      *float64
	stride      int
	n, quarters int
	// The kernel adds the losses to loss.
	length, loss [Lanes]float64
}

// one is the weight of rows without weights.
var one = 1.0

// run calls a kernel for each shard, set up for a tile of lines and one line per row.
func (r Rows) run(kernel func(*pass), lanes int, tile, rows []float64, set func(e *pass, from int)) {
	// The line of the bias feature where there is none.
	none := [Lanes]float64{}
	for k := range r.X.Shards {
		shard, from := &r.X.Shards[k], k<<sparse.RowShift
		e := &pass{begin: &shard.Begin[0], n: len(shard.Begin) - 1, idx: unsafe.SliceData(shard.Index),
			val: unsafe.SliceData(shard.Value), entries: len(shard.Index),
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

// weigh runs the kernel, or the same loop in Go, over lines of `lanes` numbers. lanes must be a
// multiple of quarter.
func (r Rows) weigh(lanes int, score, move, trial, coef, curve []float64, positive []uint16,
	length *[Lanes]float64) (loss [Lanes]float64) {
	if len(positive) == 0 {
		return loss
	}
	e := &weighing{score: &score[0], move: &move[0], trial: &trial[0], coef: &coef[0], curve: &curve[0],
		positive: &positive[0],
		weight:   &one, n: len(positive), quarters: lanes / quarter, length: *length}
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

// expNegative returns Exp of a number that is not positive, and 0 below -690.
func expNegative(x float64) float64 {
	if !(x > -690) {
		return 0
	}
	k := int(float64(x*math.Log2E) - 0.5)
	return fraction(x, k) * power(k)
}
