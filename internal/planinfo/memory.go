package planinfo

import (
	"math"
	"runtime"

	"taxon/coordinator/method"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// Memory estimates what an embedded training holds in memory, in bytes.
type Memory struct {
	Data    int64 `json:"data_bytes"`    // mapped instances
	State   int64 `json:"state_bytes"`   // duals, contributions and internals' vectors, two versions
	Scratch int64 `json:"scratch_bytes"` // dense tiles and rows, all threads
	Process int64 `json:"process_bytes"` // the program itself, and garbage not yet collected
	Total   int64 `json:"total_bytes"`
}

// Figures behind the estimate. Bytes of an entry were fitted to the peaks of trainings, less
// the rest: a terminal's contribution lies coded in the store, of two sweeps, and as it grows
// in a block and a range; an internal's entries lie coded and decoded, but are fewer than the
// bound below, as its classes share words. Go lets as much garbage gather as is live.
const (
	tileClasses   = 16 // classes solved side by side
	pairBytes     = 8  // of a nonzero or a dual: index and value
	versions      = 2  // of a sweep's duals that a store holds
	terminalBytes = 52 // an entry of a terminal's contribution
	internalBytes = 14 // an entry of an internal's vectors

	slotFeatureBytes = 404     // see coordinator/method/recursive: tiles, parents and the walk
	slotRowBytes     = 18      // signs, and tiles of the rows visited
	slotBytes        = 6 << 20 // buffers of a slot, whatever the data
	garbage          = 2       // the heap over what is live
	baseBytes        = 36 << 20

	// With a bias feature a class has tens to hundreds of support vectors beside its positives.
	supportBase        = 20
	supportPerPositive = 8
)

// visitNanos is the time of one thread for a nonzero and a class, from the start to a gap
// of 1e-2 at C = 1: 35 (63 classes of images, 3,383 of short texts) to 80 (20 of long texts).
const visitNanos = 50

// EstimateSeconds is meant to be right within a factor of three at train's defaults.
func EstimateSeconds(d *taxonv1.Data, t *taxonomy.Tree, threads int) float64 {
	threads = max(1, min(threads, runtime.NumCPU(), (len(t.Terminals())+tileClasses-1)/tileClasses))
	return visitNanos * 1e-9 * float64(d.Nonzeros+d.Instances) * float64(len(t.Terminals())) / float64(threads)
}

// EstimateMemory is meant to be 1 to 1.6 times what the process takes, short texts of 13
// nonzeros and multi-label ones of 42 alike. Features that m random nonzeros touch are taken
// as F (1 - exp(-m/F)), an upper bound for skewed frequencies. The loss is hinge or squared-hinge.
func EstimateMemory(d *taxonv1.Data, t *taxonomy.Tree, loss string, threads int) *Memory {
	rows, features, nonzeros := float64(d.Instances), float64(d.Features), float64(d.Nonzeros)
	perRow := nonzeros / math.Max(1, rows)
	distinct := func(m float64) float64 { return features * -math.Expm1(-m/math.Max(1, features)) }
	touched := make([]float64, t.Len()) // nonzeros of support vectors at or below a node
	state := 0.0
	for n := t.Len() - 1; n >= 0; n-- {
		if t.Leaf[n] {
			support := 0.0
			if l := t.Label[n]; l >= 0 {
				support = math.Min(rows, supportBase+supportPerPositive*float64(d.LabelInstances[l]))
			}
			touched[n] = support * perRow
			state += versions*pairBytes*support + terminalBytes*distinct(touched[n])
		} else {
			state += internalBytes * distinct(touched[n])
		}
		if p := t.Parent[n]; p >= 0 {
			touched[p] += touched[n]
		}
	}
	entries := int64(0) // pairs of an instance and a label
	for _, n := range d.LabelInstances {
		entries += int64(n)
	}
	m := &Memory{
		Data:    pairBytes*int64(nonzeros) + 8*(int64(d.Instances)+1) + 8*entries,
		State:   int64(state),
		Scratch: int64(threads) * (slotFeatureBytes*(int64(features)+1) + slotRowBytes*int64(d.Instances) + slotBytes + denseBytes(d, loss)),
	}
	live := m.Data + m.State + m.Scratch
	m.Process = baseBytes + (garbage-1)*live
	m.Total = live + m.Process
	return m
}

// denseBytes is what each thread lays rows out in that have few zeros, for the hinge.
func denseBytes(d *taxonv1.Data, loss string) int64 {
	if loss != "hinge" {
		return 0
	}
	return int64(method.DenseRows(d.Instances, d.Features, d.Nonzeros))
}
