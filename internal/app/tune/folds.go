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

// CountRareLabels counts the labels with fewer than k documents, which some fold cannot measure, and
// the labels with a single one, which some training lacks.
func CountRareLabels(sizes []int, k int) (fewer, single int) {
	for _, n := range sizes {
		if n > 0 && n < k {
			fewer++
		}
		if n == 1 {
			single++
		}
	}
	return fewer, single
}

// partition assigns the rows of the data to folds. Its methods may be called concurrently.
type partition struct {
	whole *dataset.Set
	// fold maps a row to its fold, and a term to -1.
	fold []int
	// sample is the negative fold number under which a sample of the rows is used like all rows,
	// with its first fold held out. It is zero if there is no sample.
	sample int
	// in reports whether a row is in the sample.
	in []bool
	// work is the cost of a training on the sample, relative to one on all rows.
	work float64
	// share is the share of a class's rows that is in the sample.
	share float64

	mu    sync.Mutex
	taken map[foldOf]*heldFold
}

// foldOf identifies a fold of the data with particular features.
type foldOf struct {
	whole  *train.Training
	number int
}

// heldFold is a fold that is held out. It includes the other rows, which are shared by all
// trainings without the fold.
type heldFold struct {
	number int
	// whole is the data with the features of the fold.
	whole *train.Training
	rest  *dataset.Set
	// trained lists the rows of rest.
	trained []uint32
	// rows lists the rows of the fold.
	rows  []uint32
	users int
}

// split lists, in ascending order, the rows to train on without a fold, and the rows of the fold.
func (p *partition) split(number int) (train, held []uint32) {
	train, held = labelset.Split(p.fold, max(number, 0))
	if number < 0 {
		outside := func(r uint32) bool { return !p.in[r] }
		train, held = slices.DeleteFunc(train, outside), slices.DeleteFunc(held, outside)
	}
	return train, held
}

// acquire returns a fold of the data with the features of whole. The caller must release it. The copy
// of the other rows exists while there are users.
func (p *partition) acquire(whole *train.Training, number int) *heldFold {
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

// release ends the use of a fold.
func (p *partition) release(h *heldFold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(p.taken, foldOf{h.whole, h.number})
	}
}

const (
	// manyClasses is the number of classes above which, for single-label data, classes are sampled
	// instead of rows. A sample of rows would leave hardly any rows to rare classes.
	manyClasses = 100
	// minSampled is the smallest number of rows in a sample.
	minSampled = 2000
	// kin is the number of adjacent classes of the tree that are sampled together. A class without
	// those with which it is confused is easy to predict, and its parent has nothing to share.
	kin = 32
)

// draw samples rows and returns the fold number of the sample. A training on the sample costs the
// fraction work of a training on all rows. With many classes, draw takes all rows of some classes.
// With few classes, and on a graph, it takes some rows of each class. inTree lists the labels in
// the order of the tree, if there is one, so that adjacent classes are sampled together.
func (p *partition) draw(work float64, graph bool, inTree []int32, seed uint64) (number int) {
	s, rows, sizes := p.whole, p.whole.Documents(), p.whole.LabelSizes()
	p.in, p.share = make([]bool, s.Matrix.Rows), 1
	count, classes, used, r := 0, 0, 0, rand.New(rand.NewPCG(seed, 0x73616d70))
	for _, n := range sizes {
		if n > 0 {
			used++
		}
	}
	if graph || used < manyClasses || s.LabelBegin[rows] > uint64(rows)*11/10 {
		parts := max(int(1/work), 1)
		// The seed gives other folds than those of the search.
		for row, part := range train.Folds(s, max(min(parts, rows/minSampled), 1), ^seed) {
			if p.in[row] = part <= 0; part == 0 {
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
			if sizes[l] > 0 {
				classes++
			}
			for _, row := range s.PosRows[s.PosBegin[l]:s.PosBegin[l+1]] {
				if !p.in[row] && int(row) < rows {
					count++
				}
				p.in[row] = true
			}
		}
		p.work = float64(count) / float64(rows) * float64(classes) / float64(used)
	}
	p.sample = -count
	return p.sample
}

// shuffled returns the labels in random order or, with a tree, runs of kin labels in random order.
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

// open returns the rows on which a job is trained. It serves the engine.
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
