package plan

import (
	"errors"
	"fmt"
	"math"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// stage identifies a step within its sweep.
type stage uint8

const (
	// stageLeaves updates the leaves' means. With schedule parity it updates the leaves of even
	// depth.
	stageLeaves stage = iota
	// stageInternals updates the internals' means. With schedule parity it updates the internals of
	// odd depth.
	stageInternals
	// stageLeaves2 updates the leaves of odd depth, with schedule parity only.
	stageLeaves2
	// stageInternals2 updates the internals of even depth, with schedule parity only.
	stageInternals2
	// stageGamma updates the precisions, and computes the length of the whole move.
	stageGamma
	stageMove     // computes the next point
	stageEvaluate // writes weights, which are then evaluated
	stageSummary  // computes statistics of the precisions
	stageEmit     // writes the final weights
	stageEnd      // nothing is left to do
	// stagePartition combines the messages of the blocks of a soft-max, whose leaves are then
	// solved again.
	stagePartition
	// stageContribute computes the contributions of a soft-max's leaves to their parents.
	stageContribute
	// stageFit computes the rates of the priors by logistic regressions. It runs once.
	stageFit
	stages
)

// phases are the names of the stages in progress reports.
var phases = [...]string{"leaves", "internals", "leaves", "internals", "gamma", "move", "evaluate", "summary", "emit",
	"end", "partition", "contributions", "priors"}

const (
	// The relative tolerance of the leaves' solves is leafShare times the last change of the means,
	// limited to the interval from tightest to loosest.
	leafShare         = 1e-2
	loosest, tightest = 5e-2, 1e-14
	// boundLeafTolerance is the tolerance with variational inference. Inexact leaves then lower the
	// bound by far less than minFall.
	boundLeafTolerance = 1e-7
	// minFall is the relative decrease of the bound above which it is not due to rounding.
	minFall                            = 1e-12
	stationaryChange, stationaryRounds = 1e-13, 20
	// If the residual of hblr-m2 has not halved for `lost` sweeps, the step of each precision gets
	// a factor of its own. The factors are in use for `paced` sweeps, and each further time for
	// twice as many sweeps as before.
	lost, paced = 30, 100
)

// state is the iteration between two steps, and the driver's part of a checkpoint.
type state struct {
	Sweep  uint32 // the current sweep, from 1
	Stage  stage  // the stage of the current step
	TimeUp bool   `json:",omitempty"`
	Points int    // points with stored values, the current one included
	// Piece is the piece of the stage's tasks that the current step runs.
	Piece uint32 `json:",omitempty"`
	// History describes the last points.
	History history
	// OfMeans is the history of the means alone. It is nil unless only the means are extrapolated.
	OfMeans *history `json:",omitempty"`
	// Mix holds the coefficients of the next point: see Move.
	Mix []float64 `json:",omitempty"`
	// Products holds the inner products of the current residual with past ones, as far as they are
	// known.
	Products  [Memory + 1]float64
	Norm      float64 // ||means of internals||^2
	Length    float64 // squared length of the last move
	Objective float64
	// Moved is the largest relative change of a precision of M2 in this round.
	Moved float64
	// Change is the largest relative change of a mean or precision in the last round.
	Change float64
	Means  float64 // largest relative change of a mean
	// Reached is Change / (1 - rate), an estimate of the total further change. It is 0 if unknown.
	Reached    float64
	Before     float64 // Reached of the previous sweep
	StallCount uint32  // consecutive sweeps that changed nothing but rounding
	Least      float64 // the squared residual when it last halved
	LeastAt    uint32  // the sweep in which it last halved
	// Paced is the number of remaining sweeps in which each of M2's precisions has a factor for its
	// steps. At 0 there are no factors.
	Paced     uint32 `json:",omitempty"`
	Span      uint32 `json:",omitempty"` // M2: length of the last period of such sweeps
	Certified bool
	Last      float64 // objective of the last certificate
	// Back is not 0 if the last point was dropped. It then names the part of the previous point
	// that is updated.
	Back           Back
	Turn           bool    // the next Back updates the precisions, not the means
	Low, Mid, High float64 // least, median and largest precision
	Summed         bool
	StoppedBy      string
	Partition      *partition `json:",omitempty"` // variational soft-max only
	Jointly        *joint     `json:",omitempty"` // soft-max by partial MAP only
}

// driver is the scalar part of the iteration. The vectors stay in the store.
type driver struct {
	state
	plan      *Plan
	lists     [3]uint32
	parity    bool
	tolerance float64
	maxSweeps uint32
	evalEvery uint32
}

func newDriver(o *Settings, plan *method.Plan, detail *Plan) *driver {
	d := &driver{state: state{Sweep: 1, Points: 1}, plan: detail, parity: len(detail.Sets) > 0, tolerance: o.Tolerance,
		maxSweeps: o.MaxSweeps, evalEvery: o.EvalEvery}
	for l := range d.lists {
		d.lists[l] = uint32(plan.Items[l].Count)
	}
	switch {
	case detail.Softmax && detail.Bounded:
		d.Partition = &partition{First: true}
	case detail.Softmax:
		d.Jointly = newJoint(false)
	}
	if d.enter(stageLeaves); detail.Fitted {
		d.Stage = stageFit
	}
	return d
}

// State implements method.Driver.
func (d *driver) State() method.State { return method.Encode(&d.state) }

// Progress implements method.Driver.
func (d *driver) Progress() method.Progress {
	p := method.Progress{Sweep: d.Sweep, StoppedBy: d.StoppedBy, Tolerance: d.tolerance, MaxSweeps: d.maxSweeps}
	if d.Certified {
		p.Certificate = &method.Certificate{Objective: d.Last, PrimalOnly: true, Left: d.Reached, Kind: d.kind()}
		report := map[string]any{"tolerance_reached": nil}
		if d.plan.Bounded {
			report["bound"] = -d.Last
		}
		if d.Change == 0 {
			report["tolerance_reached"] = 0
		} else if d.Reached > 0 {
			report["tolerance_reached"] = d.Reached
		}
		if d.Summed {
			report["alpha_min"], report["alpha_median"], report["alpha_max"] = d.Low, d.Mid, d.High
		}
		p.Report = method.Encode(report)
	}
	return p
}

// Next implements method.Driver. If the time is up before the next point is computed, the job ends
// with the current one.
func (d *driver) Next() (method.Step, bool) {
	if d.state.TimeUp && d.Stage == stageMove && d.Piece == 0 && d.Back == 0 {
		d.Sweep--
		d.StoppedBy, d.Stage = method.StoppedByMaxTime, stageSummary
	}
	return d.Step()
}

// enter begins a stage. With schedule parity it skips a set that has no leaves.
func (d *driver) enter(s stage) {
	if d.Stage = s; d.parity && (s == stageLeaves || s == stageLeaves2) && d.plan.Sets[s/2] == d.plan.Sets[s/2+1] {
		d.Stage++
	}
}

// kind returns the kind of the certificate.
func (d *driver) kind() string {
	if d.plan.Bounded {
		return method.LowerBound
	}
	return method.Stationarity
}

// pieces returns the number of steps in which the stage's tasks run. The store drops a step's old
// values only when all its new values are there. With several pieces, it therefore holds both
// versions of one piece only.
func (d *driver) pieces() uint32 {
	if d.Stage == stageLeaves || d.Stage == stageMove {
		return d.plan.Pieces
	}
	return 1
}

// piece restricts a list's tasks to the tasks of the current piece.
func (d *driver) piece(tasks *method.Tasks) {
	if n := d.pieces(); n > 1 {
		first := tasks.Count * d.Piece / n
		tasks.First, tasks.Count = first, tasks.Count*(d.Piece+1)/n-first
	}
}

// m2 reports whether the precisions are stored with the means, by feature range.
func (d *driver) m2() bool { return d.plan.Variant == "m2" }

// past returns the number of older points whose values the current step reads.
func (d *driver) past() int { return min(d.Points-1, d.plan.Memory) }

// Step implements method.Driver.
func (d *driver) Step() (method.Step, bool) {
	s := method.Step{Sweep: d.Sweep, Phase: phases[d.Stage]}
	if d.Jointly != nil && (d.Stage == stageLeaves || d.Stage == stagePartition) { // a round may take minutes
		s.Phase = d.Jointly.phase()
	}
	blocks := method.Tasks{Items: Blocks, Count: d.lists[Blocks], Timed: true}
	ranges := method.Tasks{Items: Ranges, Count: d.lists[Ranges], Timed: true}
	whole := method.Tasks{Items: Whole, Count: d.lists[Whole]}
	alphas := method.Read{Value: XAlpha, All: true}
	switch d.Stage {
	case stageLeaves, stageLeaves2:
		blocks.Op, blocks.Params = OpLeaves, method.Encode(Leaves{Tolerance: d.leafTolerance()})
		blocks.Reads = []method.Read{{Value: Above, All: true}, alphas, {Value: Leaf}}
		blocks.Writes = []string{Leaf, Contribution, Trace}
		if d.plan.Bounded {
			blocks.Reads, blocks.Writes = append(blocks.Reads, method.Read{Value: Sigma}), append(blocks.Writes, Sigma)
		}
		if d.parity {
			set := int(d.Stage) / 2
			blocks.First, blocks.Count = d.plan.Sets[set], d.plan.Sets[set+1]-d.plan.Sets[set]
		}
		d.piece(&blocks)
		if d.Partition != nil {
			d.softmax(&blocks)
		}
		if d.Jointly != nil {
			d.jointLeaves(&blocks)
		}
		s.Tasks = []method.Tasks{blocks}
	case stageFit:
		blocks.Op, blocks.Params, blocks.Writes = OpFit, method.Encode(struct{}{}), []string{Rate}
		s.Tasks = []method.Tasks{blocks}
	case stagePartition:
		if d.Partition != nil {
			whole = d.partition(whole)
		} else {
			whole = d.exchange(whole)
		}
		s.Tasks = []method.Tasks{whole}
	case stageContribute:
		s.Tasks = []method.Tasks{d.contribute(blocks)}
	case stageInternals, stageInternals2:
		p := Internals{Set: -1, End: true, Past: d.past()}
		if d.parity { // the parents of leaves of even depth have odd depth
			p = Internals{Set: 1 - int(d.Stage)/2, Half: d.Stage == stageInternals2, End: d.Stage == stageInternals2,
				Past: d.past()}
		}
		ranges.Op, ranges.Params = OpInternals, method.Encode(p)
		ranges.Reads = []method.Read{{Value: Contribution, All: true}, alphas, {Value: X}}
		if p.Half {
			ranges.Reads = append(ranges.Reads, method.Read{Value: Half})
		}
		ranges.Writes = []string{Half, Above}
		if p.End {
			if d.plan.Fitted && d.m2() {
				ranges.Reads = append(ranges.Reads, method.Read{Value: Rate, All: true})
			}
			for back := range p.Past {
				ranges.Reads = append(ranges.Reads, method.Read{Value: F, Back: back})
			}
			ranges.Writes = []string{G, F, Part}
			if d.plan.Bounded && d.m2() {
				ranges.Writes = append(ranges.Writes, EM)
			}
		}
		s.Tasks = []method.Tasks{ranges}
	case stageGamma:
		whole.Op, whole.Params = OpGamma, method.Encode(Gamma{Past: d.past()})
		whole.Reads = []method.Read{{Value: Trace, All: true}, {Value: Part, All: true}, {Value: XAlpha}}
		for back := range d.past() {
			whole.Reads = append(whole.Reads, method.Read{Value: FAlpha, Back: back})
		}
		if d.plan.Fitted && !d.m2() {
			whole.Reads = append(whole.Reads, method.Read{Value: Rate, All: true})
		}
		whole.Writes = []string{GAlpha, FAlpha}
		if d.plan.Bounded {
			whole.Writes = append(whole.Writes, EMAlpha)
		}
		s.Tasks = []method.Tasks{whole}
	case stageMove:
		params := method.Encode(Move{d.Mix, d.Back, d.Paced > 0, d.plan.Apart()})
		ranges.Op, ranges.Params, ranges.Writes = OpMove, params, []string{X, Above}
		whole.Op, whole.Params, whole.Writes = OpMove, params, []string{XAlpha}
		ranges.Reads, whole.Reads = []method.Read{{Value: X}}, []method.Read{{Value: XAlpha}}
		for back := range d.Mix {
			ranges.Reads = append(ranges.Reads, method.Read{Value: G, Back: back})
			whole.Reads = append(whole.Reads, method.Read{Value: GAlpha, Back: back})
		}
		if d.Back > 0 {
			ranges.Reads = []method.Read{{Value: X}, {Value: X, Back: 1}, {Value: G, Back: 1}}
			whole.Reads = []method.Read{{Value: XAlpha}, {Value: XAlpha, Back: 1}, {Value: EMAlpha, Back: 1}}
			if d.m2() {
				ranges.Reads = append(ranges.Reads, method.Read{Value: EM, Back: 1})
			}
		}
		if d.plan.Apart() {
			whole.Reads = []method.Read{{Value: XAlpha}, {Value: FAlpha}, {Value: FAlpha, Back: 1}, {Value: Slope}}
			whole.Writes = append(whole.Writes, Slope)
		}
		if d.Paced > 0 {
			ranges.Reads = append(ranges.Reads, method.Read{Value: F}, method.Read{Value: F, Back: 1}, method.Read{Value: Pace})
			ranges.Writes = append(ranges.Writes, Pace)
		}
		d.piece(&ranges)
		if s.Tasks = []method.Tasks{ranges}; d.Piece+1 == d.pieces() {
			s.Tasks = append(s.Tasks, whole)
		}
	case stageSummary:
		whole.Op, whole.Params, whole.Reads = OpSummary, method.Encode(struct{}{}), []method.Read{alphas}
		if d.m2() {
			whole.Reads = append(whole.Reads, method.Read{Value: X, All: true})
		}
		s.Tasks = []method.Tasks{whole}
	case stageEvaluate, stageEmit:
		s.Emit, s.Show = d.Stage == stageEmit, d.Stage == stageEvaluate
		s.Tasks = d.emit(blocks, ranges, whole)
	default:
		return method.Step{}, false
	}
	return s, true
}

// emit returns the tasks that write weights. The columns of a node ascend from task to task: means,
// variances, precisions.
func (d *driver) emit(blocks, ranges, whole method.Tasks) []method.Tasks {
	alphas := method.Read{Value: XAlpha, All: true}
	none := method.Encode(struct{}{})
	blocks.Op, blocks.Params = OpEmit, none
	blocks.Reads = []method.Read{{Value: Above, All: true}, alphas, {Value: Leaf}}
	if d.plan.Bounded {
		blocks.Reads = append(blocks.Reads, method.Read{Value: Sigma})
	}
	if d.plan.Softmax {
		blocks.Reads = append(blocks.Reads, method.Read{Value: Offset, All: true})
	}
	ranges.Op, ranges.Params, ranges.Reads = OpEmitMean, none, []method.Read{{Value: X}}
	last := whole
	if d.m2() {
		last = ranges
	} else {
		last.Reads = []method.Read{alphas}
	}
	last.Op, last.Params = OpEmitAlpha, none
	return []method.Tasks{blocks, ranges, last}
}

// leafTolerance returns the tolerance of the leaves' solves, tight enough not to disturb the
// iteration.
func (d *driver) leafTolerance() float64 {
	most := loosest
	if d.plan.Bounded {
		most = boundLeafTolerance
	}
	if d.Means == 0 {
		return most
	}
	return max(min(leafShare*d.Means, most), tightest)
}

var errNotFinite = errors.New("the posterior is not finite: scale the instances to unit length")

// Commit implements method.Driver.
func (d *driver) Commit(all []method.Sums) (method.Outcome, error) {
	total, most := make(method.Sums, Figures), 0.0
	for _, s := range all {
		if s == nil {
			continue
		}
		for i := range total {
			total[i] += s[i]
		}
		most = max(most, s[SumChange])
	}
	if d.Stage == stageMove {
		d.Length += total[SumStep]
	}
	if d.Piece++; d.Piece < d.pieces() {
		d.Objective += total[SumObjective]
		return method.Outcome{}, nil
	}
	d.Piece = 0
	switch d.Stage {
	case stageLeaves, stageLeaves2:
		if d.Jointly != nil {
			d.endJoint(total, most)
			break
		}
		d.Objective += total[SumObjective]
		if d.Stage++; d.Partition != nil {
			d.Stage = stagePartition
		}
	case stageFit:
		d.enter(stageLeaves)
	case stagePartition:
		if d.Jointly != nil {
			d.endExchange(total)
			break
		}
		d.Objective += total[SumObjective]
		d.endSolve(total)
	case stageContribute:
		d.Stage = stageInternals
	case stageInternals, stageInternals2:
		if d.parity && d.Stage == stageInternals {
			d.enter(stageLeaves2)
			return method.Outcome{}, nil
		}
		d.Objective += total[SumObjective]
		d.Norm, d.Moved = total[SumNorm], most
		copy(d.Products[:], total[sumProducts:])
		d.Stage = stageGamma
	case stageGamma:
		return d.close(total)
	case stageMove:
		if d.Paced > 0 {
			if d.Paced--; d.Paced == 0 {
				d.LeastAt = d.Sweep
			}
		}
		d.open()
		return method.Outcome{Forget: []string{G, F}}, nil
	case stageEvaluate:
		d.stopOrMove()
		return method.Outcome{SweepDone: true, Certified: true, Phase: phases[stageGamma]}, nil
	case stageSummary:
		d.Low, d.Mid, d.High, d.Summed = total[SumLow], total[SumMedian], total[SumHigh], true
		d.Stage = stageEmit
	case stageEmit:
		d.Stage = stageEnd
	}
	return method.Outcome{}, nil
}

// close ends a round: it sets the certificate, estimates the distance to a fixed point, and decides
// on the next step.
func (d *driver) close(total method.Sums) (method.Outcome, error) {
	if math.IsNaN(d.Objective) || math.IsInf(d.Objective, 0) {
		return method.Outcome{}, errNotFinite
	}
	d.Objective += total[SumObjective]
	if d.plan.Bounded && d.Certified && d.Back == 0 && d.Objective > d.Last+minFall*math.Abs(d.Last) {
		d.goBack()
		return method.Outcome{}, nil
	}
	d.Last, d.Objective, d.Certified, d.Back = d.Objective, 0, true, 0
	var products [Memory + 1]float64
	for j := range products {
		products[j] = d.Products[j] + total[Product(j)]
	}
	past := d.past()
	d.History.accept(products, past, d.Length)
	if d.plan.Apart() {
		if d.OfMeans == nil {
			d.OfMeans = &history{}
		}
		d.OfMeans.accept(d.Products, past, 0)
	}
	d.Change, d.Means = max(d.Moved, total[SumChange]), total[SumMeans]
	d.Before, d.Reached = d.Reached, 0
	if d.Change == 0 {
		d.Reached = math.SmallestNonzeroFloat64
	} else if c := d.History.contraction(); c > 0 {
		d.Reached = d.Change / c
	}
	if d.Jointly != nil && d.Jointly.Short { // the point is not the result of complete updates
		d.Reached = 0
	}
	d.follow()
	if d.Change <= stationaryChange {
		d.StallCount++
	} else {
		d.StallCount = 0
	}
	if d.evalEvery > 0 && d.Sweep%d.evalEvery == 0 {
		d.Stage = stageEvaluate
		return method.Outcome{}, nil
	}
	d.stopOrMove()
	return method.Outcome{SweepDone: true, Certified: true, Phase: phases[stageGamma]}, nil
}

// follow checks whether the residual still decreases. Some of M2's many precisions may move far by
// small, steady steps, or oscillate around a fixed point. A common extrapolation does not help
// them, so each gets a factor of its own for a while.
func (d *driver) follow() {
	if r := d.History.FF[0][0]; d.LeastAt == 0 || r < d.Least/4 {
		d.Least, d.LeastAt = r, d.Sweep
	}
	if d.m2() && !d.plan.Bounded && d.Paced == 0 && d.Sweep-d.LeastAt >= lost {
		d.Span = max(paced, 2*d.Span)
		d.Paced = d.Span
	}
}

// goBack drops a point at which the bound has decreased. It updates only one part of the previous
// point, which never lowers the bound.
func (d *driver) goBack() {
	d.Objective, d.Length, d.Mix, d.Stage = 0, 0, nil, stageMove
	if d.Back = BackMeans; d.Turn {
		d.Back = BackPrecisions
	}
	d.Turn = !d.Turn
}

// stopOrMove ends the job or begins the move to the next sweep's point.
func (d *driver) stopOrMove() {
	if d.stop() {
		d.Stage = stageSummary
		return
	}
	d.move()
}

// open begins the first step of a sweep, at the new point.
func (d *driver) open() {
	d.Points = min(len(d.Mix), d.plan.Memory) + 1
	if d.Back > 0 {
		d.Points = 1
	}
	d.Mix = nil
	if d.Partition != nil {
		d.Partition = &partition{Mix: []float64{1}}
	}
	if d.Jointly != nil {
		d.Jointly = newJoint(d.Jointly.Plain)
	}
	d.enter(stageLeaves)
}

// stop applies the stopping criteria, the tolerance first.
func (d *driver) stop() bool {
	within := func(reached float64) bool { return reached > 0 && reached <= d.tolerance }
	d.StoppedBy = method.StoppedByStationary
	if !(within(d.Before) && within(d.Reached)) && d.StallCount < stationaryRounds {
		d.StoppedBy = method.StoppedBy(false, d.Sweep, d.maxSweeps, d.state.TimeUp, false)
	}
	return d.StoppedBy != ""
}

// TimeUp implements method.Driver. A round that has begun is completed, because only a complete
// round has a certificate.
func (d *driver) TimeUp(up bool) method.DeadlinePolicy {
	d.state.TimeUp = up
	return method.RunFull
}

// Resume implements method.Driver.
func (d *driver) Resume(bool) {
	if d.Stage < stageSummary || d.Stage > stageEnd || d.StoppedBy != method.StoppedByStationary &&
		!method.ByCriteria(d.StoppedBy) {
		return
	}
	if d.StoppedBy = ""; !d.stop() {
		d.Summed = false
		d.move()
	}
}

// Driver implements method.Method.
func (Method) Driver(spec *taxonv1.JobSpec, plan *method.Plan, s method.State) (method.Driver, error) {
	detail, err := Detail(plan.Detail)
	if err != nil {
		return nil, err
	}
	settings, err := SettingsOf(spec.GetOptions())
	if err != nil {
		return nil, err
	}
	d := newDriver(&settings, plan, detail)
	if err := method.Restore(s, &d.state, &d.Stage, stages-1); err != nil {
		return nil, err
	}
	if (d.Partition != nil || d.Jointly != nil) != detail.Softmax {
		return nil, errors.New("its likelihood is not the job's")
	}
	for _, h := range []*history{&d.History, d.OfMeans} {
		if h != nil && (h.Older < 0 || h.Older > Memory) || d.Points < 0 {
			return nil, fmt.Errorf("it has the products of %d of %d points: it is damaged, or was changed by hand",
				d.History.Older, d.Points)
		}
	}
	return d, nil
}
