package mapper

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"taxon/internal/sparse"
)

// Solver holds what all blocks of a job share. It is read-only after NewSolver and
// may be used by many goroutines, each with a Scratch of its own.
type Solver struct {
	X    *sparse.Matrix
	Loss Loss
	C    float64
	Bias float32 // value of the bias feature; 0: none

	// PositiveWeight multiplies C for positive instances, C_in = C PositiveWeight where
	// y_in = +1; 0 is 1, the papers' objective. A block's own weights come first.
	PositiveWeight float64
	// Weight of each row multiplies C for it, in all lanes; each is above 0. nil: all are 1.
	Weight []float64
	// Kernel is the implementation of the inner loops; NewSolver takes the fastest.
	Kernel Kernel

	norm  []float64
	slack []float32 // per chunk of scoreChunk rows: greatest rounding bound of a score over ||w||
	nzero int       // rows without any nonzero

	outside int // the first instance with an index beyond the columns, from 1; 0: none

	negative bool // some value is below zero
}

// StartRows bounds the rows that a fresh block begins with, beside its positives: an
// even sample is enough to settle the bias and the common words, and the first pricing
// pass finds the rows that were missed. Measured on 44 k rows: half the time of the
// first two sweeps for all of them.
const StartRows = 8192

// NewSolver computes the rows' squared norms (bias included).
func NewSolver(x *sparse.Matrix, loss Loss, c float64, bias float32) *Solver {
	s := &Solver{X: x, Loss: loss, C: c, Bias: bias, Kernel: Kernels()[0], norm: make([]float64, x.Rows)}
	s.slack = make([]float32, (x.Rows+scoreChunk-1)/scoreChunk)
	for i := range s.norm {
		idx, val := x.Row(i)
		if s.outside == 0 && len(idx) > 0 && int(slices.Max(idx)) >= x.Cols {
			s.outside = i + 1
		}
		n := float64(bias) * float64(bias)
		for _, v := range val {
			n += float64(float64(v) * float64(v))
			s.negative = s.negative || v < 0
		}
		s.norm[i] = n
		s.slack[i/scoreChunk] = max(s.slack[i/scoreChunk], math.Nextafter32(float32(rounding(len(val), n)), float32(math.Inf(1))))
		if n == 0 {
			s.nzero++
		}
	}
	return s
}

// maxSquaredNorm keeps every product of the float32 kernels finite.
const maxSquaredNorm = 1e36

// Check reports the first instance whose values are too large to compute with, or that
// has a feature beyond the matrix's columns: the kernels in assembly do not look.
func (s *Solver) Check() error {
	if s.outside > 0 {
		return fmt.Errorf("instance %d has a feature beyond the %d of the data: ingest the data again", s.outside, s.X.Cols)
	}
	for i, n := range s.norm {
		if n > maxSquaredNorm {
			return fmt.Errorf("instance %d has values too large to compute with (length %.3g): scale the data", i+1, math.Sqrt(n))
		}
	}
	return nil
}

// Scratch is the memory of one SolveBlock at a time: dense tiles that are reused from
// block to block. 196 bytes a feature (64 more with a hierarchy and the squared hinge, 16 with
// few lanes) and 240 bytes a visited row.
type Scratch struct {
	w         [][Lanes]float32       // [d+1] weights
	w64       [][Lanes]float64       // [d+1] weights of precise solves, made when first needed
	narrow    [][narrowLanes]float32 // [d+4] weights of descents of few lanes, made when first needed
	v         [][Lanes]float64       // [d+1] v = sum a y x; zero outside touched
	stiff     []uint16               // [d+1] lanes with support on the feature
	touched   []uint32               // features with stiff != 0, ascending once sorted
	curve     [][Lanes]float32       // squared hinge: bound of the loss's curvature by feature, where touched; nil: wholly stiff
	curves    [][Lanes]float32       // what curve lies in, made when first needed
	kernel    Kernel
	list                       // the working list
	spare     list             // the one that a pricing pass draws
	refs      []rowRef         // the list as kernels see it
	a32       [][Lanes]float32 // duals of a float32 descent
	nudge     [Lanes]uint8
	cPos      [Lanes]float64 // C of each lane's positive rows
	order     []uint32
	sign      []uint16  // [N] positive lanes of every row
	zero      []float32 // [d+1] the zero parent
	sweep32   *sweep[float32]
	sweep64   *sweep[float64]
	scoring   *scoring
	exacting  *exacting
	gathering *gathering
	starting  *starting
	spreading *spreading
	mark      []uint8  // [d] of listed rows' features, while they are sought
	needed    []uint32 // the features that listed rows have
	chunk     *[scoreChunk][Lanes]float32
	low       *[scoreChunk]uint16
	lanes     uint16          // of the block at hand
	newton    *newton         // of squared hinges on few columns, made when first needed
	dense32   *dense[float32] // of descents on dense rows, made when first needed
	dense64   *dense[float64]
	logit     *logit // of smooth solves, made when first needed
}

// list is a working list: rows, ascending, with their lanes, signs and duals.
type list struct {
	rows []uint32
	work []uint16
	pos  []uint16 // positive lanes of each listed row
	live []uint16 // lanes with a dual
	a    [][Lanes]float64
}

func (t *list) clear() {
	t.rows, t.work, t.pos, t.live, t.a = t.rows[:0], t.work[:0], t.pos[:0], t.live[:0], t.a[:0]
}

// put appends a row.
func (t *list) put(i uint32, work, pos, live uint16, a *[Lanes]float64) {
	t.rows, t.work, t.pos, t.live = append(t.rows, i), append(t.work, work), append(t.pos, pos), append(t.live, live)
	t.a = append(t.a, *a)
}

// NewScratch sizes a scratch for the solver's matrix.
func (s *Solver) NewScratch() *Scratch {
	d := s.X.Cols + 1
	return &Scratch{
		w:       make([][Lanes]float32, d),
		v:       make([][Lanes]float64, d),
		stiff:   make([]uint16, d),
		sign:    make([]uint16, s.X.Rows),
		zero:    make([]float32, d),
		sweep32: &sweep[float32]{}, sweep64: &sweep[float64]{}, scoring: &scoring{}, exacting: &exacting{}, gathering: &gathering{},
		starting: &starting{}, spreading: &spreading{}, mark: make([]uint8, s.X.Cols),
		chunk: &[scoreChunk][Lanes]float32{}, low: &[scoreChunk]uint16{},
	}
}

// SolveBlock improves the block's duals from warm by epochs of dual coordinate
// descent, then prices if asked to. The result shares no memory with t or warm.
// Only ctx's cancellation is an error.
func (s *Solver) SolveBlock(ctx context.Context, t *Scratch, b *Block, warm *State, o Options) (*Result, error) {
	if s.Loss == Logistic {
		return s.solveLogistic(ctx, t, b, warm, o)
	}
	t.load(s, b, warm)
	defer t.unload(b)
	s.prepare(t)
	res := &Result{}
	if o.Epochs > 0 {
		if err := s.improve(ctx, t, b, o, &res.Sums); err != nil {
			return nil, err
		}
	}
	s.rebuild(t)
	if s.Loss == SquaredHinge && len(b.Mean) > 0 { // flat classes have no parent to tell
		s.bendSquared(t, o.Stiffness)
	}
	if o.Price {
		if t.nudge = [Lanes]uint8{}; o.Precise && s.Loss == Hinge {
			s.chooseNudges(t, b)
		}
		t.fillWeights(b)
		if err := s.price(ctx, t, b, o.Band, warm != nil && !warm.Priced, &res.Sums); err != nil {
			return nil, err
		}
	}
	res.Contributions = s.contributions(t, b)
	res.State = t.save(o.Price || (warm != nil && warm.Priced))
	for k := range res.State.Rows {
		res.Sums.Support += bits.OnesCount16(res.State.Live[k])
		res.Sums.Working += bits.OnesCount16(res.State.Work[k])
	}
	return res, nil
}

// improve descends in the arithmetic asked for, and goes on by Newton's method where that
// is faster.
func (s *Solver) improve(ctx context.Context, t *Scratch, b *Block, o Options, sums *Sums) error {
	later := s.byNewton(o)
	if later {
		o.MaxEpochs = newtonAfter
	}
	running, err := s.descend(ctx, t, b, o, sums)
	if err == nil && later && running != 0 {
		err = s.solveNewton(ctx, t, b, running, o, sums)
	}
	return err
}

// descend returns the lanes that have not reached their aim.
func (s *Solver) descend(ctx context.Context, t *Scratch, b *Block, o Options, sums *Sums) (uint16, error) {
	if o.Precise {
		s.rebuild(t)
		t.fillPrecise(b)
		t.sweep64.onTile(t.w64)
		running, err := descend(ctx, s, t, t.sweep64, t.a, len(b.Slot), o, sums)
		for k := range t.refs {
			if t.refs[k].moved != 0 {
				t.live[k] = liveLanes(&t.a[k])
			}
		}
		return running, err
	}
	s.roundDuals(t)
	s.startWeights(t, b)
	t.sweep32.onTile(t.w)
	if len(b.Slot) <= narrowLanes && s.Kernel.narrow != nil && !s.byLane() {
		t.narrowTile()
	}
	running, err := descend(ctx, s, t, t.sweep32, t.a32, len(b.Slot), o, sums)
	for k := range t.refs {
		if t.refs[k].moved != 0 || t.live[k] != 0 {
			for l, a := range &t.a32[k] {
				t.a[k][l] = float64(a)
			}
			t.live[k] = liveLanes(&t.a[k])
		}
	}
	return running, err
}

// roundDuals copies the duals for a descent in float32, within the box.
func (s *Solver) roundDuals(t *Scratch) {
	t.a32 = slices.Grow(t.a32[:0], len(t.a))[:len(t.a)]
	clear(t.a32)
	for k, live := range t.live {
		for m := live; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			t.a32[k][l] = min(float32(t.a[k][l]), s.Loss.Bound(s.rowC(t, t.rows[k], t.pos[k], l)))
		}
	}
}

// load lays out the working list: the rows to visit, their lanes, signs and duals.
func (t *Scratch) load(s *Solver, b *Block, warm *State) {
	for l, rows := range b.Positive {
		for _, i := range rows {
			t.sign[i] |= 1 << l
		}
	}
	t.nudge, t.kernel = [Lanes]uint8{}, s.Kernel
	all := uint16(1)<<len(b.Slot) - 1
	t.lanes = all
	for l := range t.cPos {
		t.cPos[l] = s.positiveC(b, l)
	}
	t.clear()
	var none [Lanes]float64
	if warm == nil || !warm.Priced {
		stride := s.sampleStride()
		for i := range s.norm {
			if s.norm[i] > 0 && (i%stride == 0 || t.sign[i] != 0) {
				t.put(uint32(i), all, t.sign[i], 0, &none)
			}
		}
		if warm != nil {
			t.scatterDuals(warm)
		}
		return
	}
	for k, i := range warm.Rows {
		t.put(i, warm.Work[k]|warm.Live[k], t.sign[i], 0, &none)
	}
	t.scatterDuals(warm)
}

// positiveC is C of lane l's positive rows.
func (s *Solver) positiveC(b *Block, l int) float64 {
	switch {
	case l < len(b.Weight):
		return s.C * b.Weight[l]
	case s.PositiveWeight != 0:
		return s.C * s.PositiveWeight
	}
	return s.C
}

// rowC is C of row i, listed or not, with these positive lanes, in lane l.
func (s *Solver) rowC(t *Scratch, i uint32, pos uint16, l int) float64 {
	c := s.C
	if pos>>l&1 != 0 {
		c = t.cPos[l]
	}
	return s.weighted(i, c)
}

// weighted is c times row i's weight.
func (s *Solver) weighted(i uint32, c float64) float64 {
	if s.Weight != nil {
		return s.Weight[i] * c
	}
	return c
}

// Count is the number of the rows, each counted by its weight.
func (s *Solver) Count(rows []uint32) (n float64) {
	if s.Weight == nil {
		return float64(len(rows))
	}
	for _, i := range rows {
		n += s.Weight[i]
	}
	return n
}

// Total is Count of all rows.
func (s *Solver) Total() (n float64) {
	if s.Weight == nil {
		return float64(s.X.Rows)
	}
	for _, w := range s.Weight {
		n += w
	}
	return n
}

// scatterDuals copies the state's duals into the listed rows, a superset of its rows.
func (t *Scratch) scatterDuals(warm *State) {
	at, k := 0, 0
	for j, i := range warm.Rows {
		for t.rows[k] != i {
			k++
		}
		t.live[k] = warm.Live[j]
		for m := warm.Live[j]; m != 0; m &= m - 1 {
			t.a[k][bits.TrailingZeros16(m)] = warm.Dual[at]
			at++
		}
	}
}

// unload leaves the scratch clean for the next block.
func (t *Scratch) unload(b *Block) {
	for _, rows := range b.Positive {
		for _, i := range rows {
			t.sign[i] = 0
		}
	}
	t.clearV()
}

func (t *Scratch) clearV() {
	for _, f := range t.touched {
		t.v[f] = [Lanes]float64{}
		t.stiff[f] = 0
	}
	t.touched = t.touched[:0]
}

// save gathers the state: rows that have work or duals. Where no pricing pass has drawn the
// working set all rows are visited anyway, and only duals are kept.
func (t *Scratch) save(priced bool) State {
	st := State{Priced: priced, Nudge: t.nudge}
	rows, duals := 0, 0
	for k, live := range t.live {
		if live != 0 || priced && t.work[k] != 0 {
			rows++
			duals += bits.OnesCount16(live)
		}
	}
	st.Rows, st.Work, st.Live, st.Dual = make([]uint32, 0, rows), make([]uint16, 0, rows), make([]uint16, 0, rows), make([]float64, 0, duals)
	for k, live := range t.live {
		if live == 0 && !(priced && t.work[k] != 0) {
			continue
		}
		st.Rows, st.Work, st.Live = append(st.Rows, t.rows[k]), append(st.Work, t.work[k]), append(st.Live, live)
		for m := live; m != 0; m &= m - 1 {
			st.Dual = append(st.Dual, t.a[k][bits.TrailingZeros16(m)])
		}
	}
	return st
}

// liveLanes are those with a dual.
func liveLanes(duals *[Lanes]float64) (live uint16) {
	for l, a := range duals {
		if a != 0 {
			live |= 1 << l
		}
	}
	return live
}
