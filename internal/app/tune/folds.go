package tune

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"taxon/internal/app/train"
	"taxon/internal/data/dataset"
	"taxon/internal/model/labelset"
	taxonv1 "taxon/proto/taxon/v1"
)

// CountRareLabels counts the labels with fewer rows than folds, which some fold can't measure,
// and those with a single row, which some training lacks.
func CountRareLabels(posBegin []uint64, k int) (fewer, single int) {
	for l := range max(len(posBegin)-1, 0) {
		n := posBegin[l+1] - posBegin[l]
		if n > 0 && n < uint64(k) {
			fewer++
		}
		if n == 1 {
			single++
		}
	}
	return fewer, single
}

// partition is the data, dealt out to folds. Several goroutines may call its methods.
type partition struct {
	whole *dataset.Set
	fold  []int // row -> fold
	// A sample of the rows stands for all rows under a negative fold number; its first fold is
	// held out.
	sample int    // the number; 0: there is none
	in     []bool // row: in the sample
	// work of a training on the sample, as a share of one on all rows
	work  float64
	share float64 // of a class's rows that the sample has

	mu    sync.Mutex
	taken map[foldOf]*heldFold
}

// foldOf is a fold of the data with some features.
type foldOf struct {
	whole  *train.Training
	number int
}

// heldFold is a fold that is held out, and the other rows, shared by all trainings without it.
type heldFold struct {
	number  int
	whole   *train.Training // the data with the features that the fold's have
	rest    *dataset.Set
	trained []uint32 // rows of rest
	rows    []uint32 // in the fold
	users   int
}

// split lists, ascending, the rows to train on without a fold, and the rows in it.
func (p *partition) split(number int) (train, held []uint32) {
	train, held = labelset.Split(p.fold, max(number, 0))
	if number < 0 {
		outside := func(r uint32) bool { return !p.in[r] }
		train, held = slices.DeleteFunc(train, outside), slices.DeleteFunc(held, outside)
	}
	return train, held
}

// take gives a fold of the data with its features; release it when done. The other rows are copied while
// anyone uses them.
func (p *partition) take(whole *train.Training, number int) *heldFold {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.taken[foldOf{whole, number}]
	if h == nil {
		rest, rows := p.split(number)
		h = &heldFold{number: number, whole: whole, rest: whole.Set.Subset(rest), trained: rest, rows: rows}
		p.taken[foldOf{whole, number}] = h
	}
	h.users++
	return h
}

func (p *partition) release(h *heldFold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(p.taken, foldOf{h.whole, h.number})
	}
}

const (
	// manyClasses: with more classes, and one label a row, classes are sampled instead of rows. A
	// sample of rows would leave rare classes with hardly any.
	manyClasses = 100
	// minSampled is the least number of rows in a sample.
	minSampled = 2000
	// kin is how many classes next to each other in the tree are sampled together. A class alone,
	// without those that it is mixed up with, is easy to tell, and a parent has nothing to share.
	kin = 32
)

// draw samples rows so that a training takes a given share of the work of one on all rows. It
// returns the number under which take finds them. With many classes it takes all rows of some
// classes; else, and on a graph, some rows of each class. inTree are the labels in the order of
// the tree, if there is one: what is drawn then is runs of it.
func (p *partition) draw(work float64, graph bool, inTree []int32, seed uint64) (number int) {
	s, rows := p.whole, p.whole.Matrix.Rows
	p.in, p.share = make([]bool, rows), 1
	count, classes, used, r := 0, 0, 0, rand.New(rand.NewPCG(seed, 0x73616d70))
	for l := range s.Labels {
		if s.PosBegin[l] < s.PosBegin[l+1] {
			used++
		}
	}
	if graph || used < manyClasses || s.Stats.LabelEntries > int64(rows)*11/10 {
		parts := max(int(1/work), 1)
		// seed: other folds than those of the search
		for row, part := range labelset.Folds(s.LabelBegin, s.LabelIndex, len(s.Labels), max(min(parts, rows/minSampled), 1),
			^seed) {
			if p.in[row] = part == 0; part == 0 {
				count++
			}
		}
		p.work = float64(count) / float64(rows)
		p.share = p.work
	} else {
		for _, l := range shuffled(r, len(s.Labels), inTree) {
			if part := float64(count) / float64(rows) * float64(classes) / float64(used); part >= work && count >= minSampled {
				break
			}
			if s.PosBegin[l] < s.PosBegin[l+1] {
				classes++
			}
			for _, row := range s.PosRows[s.PosBegin[l]:s.PosBegin[l+1]] {
				if !p.in[row] {
					p.in[row] = true
					count++
				}
			}
		}
		p.work = float64(count) / float64(rows) * float64(classes) / float64(used)
	}
	p.sample = -count
	return p.sample
}

// shuffled returns the labels in random order, or runs of `kin` of those in a tree.
func shuffled(r *rand.Rand, labels int, inTree []int32) (out []int) {
	if inTree == nil {
		return r.Perm(labels)
	}
	for _, run := range r.Perm((len(inTree) + kin - 1) / kin) {
		for _, l := range inTree[kin*run : min(kin*(run+1), len(inTree))] {
			out = append(out, int(l))
		}
	}
	return out
}

// open returns the rows on which a job is trained, for the engine.
func (p *partition) open(_ context.Context, d *taxonv1.Data) (*dataset.Set, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.taken {
		if h.rest.Fingerprint == d.GetFingerprint() {
			return h.rest, nil
		}
	}
	return nil, fmt.Errorf("no fold has the fingerprint %s", d.GetFingerprint())
}

// rows counts the rows of folds from..to-1.
func (p *partition) rows(from, to int) (n int) {
	if from < 0 {
		_, held := p.split(from)
		return len(held)
	}
	for _, f := range p.fold {
		if f >= from && f < to {
			n++
		}
	}
	return n
}
