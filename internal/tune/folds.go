package tune

import (
	"context"
	"fmt"
	"sync"

	"taxon/internal/dataset"
	"taxon/internal/labelset"
	taxonv1 "taxon/proto/taxon/v1"
)

// Thin counts the labels with fewer rows than there are folds: some fold has none of them
// to measure, and one with a single row none to train on either.
func Thin(posBegin []uint64, k int) (fewer, single int) {
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

// partition is the data, dealt out to folds. Its methods may be called from several goroutines.
type partition struct {
	whole *dataset.Set
	fold  []int // row -> fold

	mu   sync.Mutex
	held map[int]*heldFold
}

// heldFold is a fold that is held out, and the other rows, which are shared by all trainings
// without it.
type heldFold struct {
	number int
	rest   *dataset.Set
	rows   []uint32
	users  int
}

// take gives a fold; release it when done. The other rows are copied while anyone uses them.
func (p *partition) take(number int) *heldFold {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[number]
	if h == nil {
		rest, rows := labelset.Split(p.fold, number)
		h = &heldFold{number: number, rest: p.whole.Subset(rest), rows: rows}
		p.held[number] = h
	}
	h.users++
	return h
}

func (p *partition) release(h *heldFold) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(p.held, h.number)
	}
}

// open gives the engine the rows that a job is trained on.
func (p *partition) open(_ context.Context, d *taxonv1.Data) (*dataset.Set, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.held {
		if h.rest.Fingerprint == d.GetFingerprint() {
			return h.rest, nil
		}
	}
	return nil, fmt.Errorf("no fold has the fingerprint %s", d.GetFingerprint())
}

// rowsOf counts the rows of the first folds.
func (p *partition) rowsOf(folds int) (n int) {
	for _, f := range p.fold {
		if f < folds {
			n++
		}
	}
	return n
}
