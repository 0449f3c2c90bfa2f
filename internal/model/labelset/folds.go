package labelset

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
)

// Folds assigns the rows to k folds, evenly and so that each label is spread as evenly as possible,
// by iterative stratification (K. Sechidis, G. Tsoumakas, I. Vlahavas: On the stratification of
// multi-label data. ECML PKDD 2011, Algorithm 1). The rarest label goes first. A row goes to the
// fold that lacks most rows of the label, then to the one that lacks most rows, then to the first.
// If every row has one label, any two folds differ by at most one row of each label.
//
// Row i has the labels index[begin[i]:begin[i+1]], which are below labels. The result maps a row to
// its fold. The cost is O(entries (k + log labels)).
func Folds(begin []uint64, index []uint32, labels, k int, seed uint64) []int {
	d := newFoldAssigner(begin, index, labels, k, seed)
	for d.rare.Len() > 0 {
		l := heap.Pop(&d.rare).(rareLabel)
		if l.left != d.left[l.label] {
			continue // outdated: fewer rows remain
		}
		for _, r := range d.rows[l.label] {
			if d.fold[r] < 0 {
				d.assign(r, int(l.label))
			}
		}
	}
	for _, r := range d.order { // rows without labels
		if d.fold[r] < 0 {
			d.assign(r, -1)
		}
	}
	return d.fold
}

// foldAssigner is the state of Folds.
type foldAssigner struct {
	begin []uint64
	index []uint32
	k     int
	// order lists the rows in random order.
	order []int
	// rows lists the rows of each label, in that order.
	rows [][]int
	// left counts the rows of each label that are not assigned yet.
	left []int
	// lack holds, by label and fold, the number of rows of the label that the fold should still
	// get.
	lack [][]float64
	// room holds, by fold, the number of rows that it should still get.
	room []float64
	// fold maps a row to its fold, or to -1 if it has none yet.
	fold []int
	rare rareLabels
}

func newFoldAssigner(begin []uint64, index []uint32, labels, k int, seed uint64) *foldAssigner {
	n := max(len(begin)-1, 0)
	d := &foldAssigner{begin: begin, index: index, k: k, rows: make([][]int, labels), left: make([]int, labels),
		lack: make([][]float64, labels), room: make([]float64, k), fold: make([]int, n)}
	d.order = rand.New(rand.NewPCG(seed, 0x666f6c64)).Perm(n)
	for _, r := range d.order {
		d.fold[r] = -1
		for _, l := range d.labels(r) {
			d.rows[l] = append(d.rows[l], r)
		}
	}
	for f := range k {
		d.room[f] = float64(n) / float64(k)
	}
	for l, rows := range d.rows {
		d.left[l] = len(rows)
		d.lack[l] = make([]float64, k)
		for f := range k {
			d.lack[l][f] = float64(len(rows)) / float64(k)
		}
		if len(rows) > 0 {
			d.rare = append(d.rare, rareLabel{len(rows), uint32(l)})
		}
	}
	heap.Init(&d.rare)
	return d
}

func (d *foldAssigner) labels(r int) []uint32 { return d.index[d.begin[r]:d.begin[r+1]] }

// assign assigns row r to the fold that lacks most rows of a label. For label -1 it is the fold
// that lacks most rows.
func (d *foldAssigner) assign(r, label int) {
	best := 0
	for f := 1; f < d.k; f++ {
		c := 0
		if label >= 0 {
			c = cmp.Compare(d.lack[label][f], d.lack[label][best])
		}
		if c == 0 {
			c = cmp.Compare(d.room[f], d.room[best])
		}
		if c > 0 {
			best = f
		}
	}
	d.fold[r] = best
	d.room[best]--
	for _, l := range d.labels(r) {
		d.lack[l][best]--
		if d.left[l]--; d.left[l] > 0 && int(l) != label {
			heap.Push(&d.rare, rareLabel{d.left[l], l})
		}
	}
}

// rareLabel is a label with the number of its rows that are not assigned yet.
type rareLabel struct {
	left  int
	label uint32
}

// rareLabels is a heap of labels. The label with the fewest rows comes first and, among equals, the
// smallest label.
type rareLabels []rareLabel

func (h rareLabels) Len() int { return len(h) }
func (h rareLabels) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].left, h[j].left), cmp.Compare(h[i].label, h[j].label)) < 0
}
func (h rareLabels) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *rareLabels) Push(x any)   { *h = append(*h, x.(rareLabel)) }
func (h *rareLabels) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// Split returns two lists of rows in ascending order. The rows outside fold f are for training, and
// the rows in it for measuring.
func Split(fold []int, f int) (train, held []uint32) {
	for r, in := range fold {
		if in == f {
			held = append(held, uint32(r))
		} else {
			train = append(train, uint32(r))
		}
	}
	return train, held
}
