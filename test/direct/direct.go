// Package direct runs the outer loop by calling mapper and reducer directly, in one
// goroutine: no coordinator, no store, no RPC. It is the dumb twin that the machine is
// compared with, in bytes and in time.
package direct

import (
	"context"
	"math"
	"time"

	"taxon/internal/sparse"
	"taxon/mapper"
	"taxon/reducer"
)

// Problem is a trained tree over data: internal nodes and the terminals under them.
type Problem struct {
	X           *sparse.Matrix
	Forest      *reducer.Forest
	Parent      []int32    // terminal -> internal node, -1: zero vector
	Positive    [][]uint32 // terminal -> rows
	Loss        mapper.Loss
	C           float64
	Bias        float32
	Rule        reducer.Rule
	Fista       bool
	Epochs      int
	MaxEpochs   int
	Share       float64 // inner gap wanted, as a share of the outer gap per terminal
	Priced      func(sweep int) bool
	Seed        uint64
	InitBias    float32 // root's bias weight to start from
	Mode        int
	Stall       float64
	Band, Band1 float64
}

// Sweep is what is known after a sweep.
type Sweep struct {
	Sweep             int
	Primal, Dual, Gap float64
	Inner             float64
	Seconds           float64
	Epochs            float64
	Visits            int64
	Working, Support  int
	Entries           int64
	MapS, ReduceS     float64
	Restart           bool
}

// Run sweeps until the gap or the cap is reached.
func Run(p *Problem, tol float64, maxSweeps int, report func(Sweep)) {
	s := mapper.NewSolver(p.X, p.Loss, p.C, p.Bias)
	t := s.NewScratch()
	d := uint32(p.X.Cols + 1)
	nb := (len(p.Parent) + mapper.Lanes - 1) / mapper.Lanes
	states := make([]*mapper.State, nb)
	x, prev := reducer.Zero(len(p.Forest.Parent)), reducer.Zero(len(p.Forest.Parent))
	if p.InitBias != 0 {
		for i := range x.Begin {
			if i > 0 {
				x.Begin[i] = 1
			}
		}
		x.Feature, x.Value = []uint32{d - 1}, []float32{p.InitBias}
		prev = x
	}
	tm, beta := 1.0, float32(0)
	lastGap := math.Inf(1)
	last := math.Inf(1)
	innerTol := 0.0
	start := time.Now()
	for k := 1; k <= maxSweeps; k++ {
		price := p.Priced(k) || k == maxSweeps
		var rec Sweep
		rec.Sweep = k
		band := p.Band
		if k <= 1 {
			band = p.Band1
		}
		t0 := time.Now()
		var in []reducer.Contribution
		primal, dual := 0.0, 0.0
		paths := NewPaths(p.Forest, x, prev, beta, int(d))
		for b := range nb {
			blk := &mapper.Block{}
			lo, hi := b*mapper.Lanes, min((b+1)*mapper.Lanes, len(p.Parent))
			var slots []int32
			for l := lo; l < hi; l++ {
				par := p.Parent[l]
				if par >= 0 && (len(slots) == 0 || slots[len(slots)-1] != par) {
					slots = append(slots, par)
					blk.Mean = append(blk.Mean, paths.Vector(par))
				}
				blk.Slot = append(blk.Slot, len(slots)-1)
				if par < 0 {
					blk.Slot[len(blk.Slot)-1] = -1
				}
				blk.Positive = append(blk.Positive, p.Positive[l])
			}
			r, _ := s.SolveBlock(context.Background(), t, blk, states[b], mapper.Options{Epochs: p.Epochs, MaxEpochs: maxE(k, p), InnerGap: innerTol, Price: price, Band: band, Seed: p.Seed + uint64(k)*1e6 + uint64(b)})
			states[b] = &r.State
			for _, c := range r.Contributions {
				in = append(in, reducer.Contribution{Parent: slots[c.Slot], Feature: c.Feature, Sum: c.Sum, Stiff: c.Stiff})
			}
			primal += r.Sums.Primal
			dual += r.Sums.Dual
			rec.Inner += r.Sums.InnerGap
			rec.Epochs += float64(r.Sums.Epochs) / float64(nb)
			rec.Visits += r.Sums.Visits
			rec.Working += r.Sums.Working
			rec.Support += r.Sums.Support
		}
		rec.MapS = time.Since(t0).Seconds()
		t0 = time.Now()
		task := reducer.Task{Forest: p.Forest, Lo: 0, Hi: d, Rule: p.Rule, Certify: price, Beta: beta}
		next, sums := task.Run(in, x, prev)
		rec.ReduceS = time.Since(t0).Seconds()
		rec.Entries = sums.Entries
		if price {
			rec.Primal, rec.Dual = primal+sums.Primal, dual+sums.Dual
			rec.Gap = (rec.Primal - rec.Dual) / rec.Primal
			innerTol = p.Share * (rec.Primal - rec.Dual) / float64(len(p.Parent))
			if rec.Primal > last*(1+1e-12) && rec.Gap > tol && p.Rule == reducer.Support {
				task.Rule, task.Certify = reducer.Family, false
				next, sums = task.Run(in, x, prev)
				sums.Restart = 1
				rec.Restart = true
			}
			if !rec.Restart && p.Mode != 0 && k > 3 && rec.Gap > tol {
				stall := rec.Gap > p.Stall*lastGap
				if p.Mode == 1 && stall {
					task.Rule, task.Certify = reducer.Family, false
					next, sums = task.Run(in, x, prev)
					sums.Restart = 1
				}
				if p.Mode == 2 && stall {
					task.Rule, task.Certify = reducer.Family, false
					next, sums = task.Run(in, x, prev)
				}
				if p.Mode == 3 && stall {
					sums.Restart = 1
				}
			}
			lastGap = rec.Gap
			last = rec.Primal
		}
		if !p.Fista || sums.Restart > 0 {
			tm, beta = 1, 0
			if p.Fista {
				rec.Restart = true
			}
		} else {
			tn := (1 + math.Sqrt(1+4*tm*tm)) / 2
			beta = float32((tm - 1) / tn)
			tm = tn
		}
		prev, x = x, next
		rec.Seconds = time.Since(start).Seconds()
		report(rec)
		if price && rec.Gap <= tol {
			return
		}
	}
}

func maxE(k int, p *Problem) int {
	if k <= 2 {
		return p.Epochs
	}
	return p.MaxEpochs
}
