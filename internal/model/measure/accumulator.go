package measure

// Accumulator accumulates rows into the sums that measures need. It takes O(classes + nodes)
// memory, and per row O(labels of the row and nodes above them) time. It belongs to one goroutine.
type Accumulator struct {
	labels    *labels
	instances int
	// inexact counts rows whose label set is not exactly right.
	inexact int
	// class is by label id.
	class   []tally
	ranking *rankingSums
	tree    *treeSums
	// probable is nil until the first probabilities are added.
	probable *probabilitySums
	// confused counts pairs of true and predicted label, where -1 stands for none. It is nil
	// without Options.Confusion.
	confused map[[2]int32]int64

	truth, predicted marks
	// truthIDs and predIDs are those of the last row, without repeats.
	truthIDs, predIDs []int32
	// ranked and row are scratch memory.
	ranked, row []int32
}

// NewAccumulator returns an empty accumulator.
func NewAccumulator(o Options) (*Accumulator, error) {
	l, err := newLabels(o)
	if err != nil {
		return nil, err
	}
	return newAccumulator(l), nil
}

func newAccumulator(l *labels) *Accumulator {
	a := &Accumulator{labels: l}
	if l.o.Ranked {
		a.ranking = newRankingSums(&l.o)
	}
	if l.o.Structure != nil {
		a.tree = newTreeSums(l.o.Structure)
	}
	return a
}

// Part returns an empty accumulator for some of the same rows. Both have the same label ids.
func (a *Accumulator) Part() *Accumulator { return newAccumulator(a.labels) }

// IDs appends the ids of label names to dst. Class i of Options.Classes has id i. Other names get
// the next free id when they first appear.
func (a *Accumulator) IDs(dst []int32, names []string) []int32 { return a.labels.numbers(dst, names) }

// Add adds one row as label ids: true labels, predicted labels, and the ranking, best first, which
// is ignored without Options.Ranked. The slices are not retained.
func (a *Accumulator) Add(truth, predicted, ranked []int32) {
	n := len(a.labels.node)
	a.class = append(a.class, make([]tally, n-len(a.class))...)
	a.truthIDs = distinct(a.truthIDs, truth, &a.truth, n)
	a.predIDs = distinct(a.predIDs, predicted, &a.predicted, n)
	a.labels.met(a.truthIDs)
	a.instances++
	right := 0
	for _, id := range a.predIDs {
		if a.truth.has(id) {
			a.class[id].truePos++
			right++
		} else {
			a.class[id].falsePos++
		}
	}
	for _, id := range a.truthIDs {
		if !a.predicted.has(id) {
			a.class[id].falseNeg++
		}
	}
	if right != len(a.truthIDs) || right != len(a.predIDs) {
		a.inexact++
	}
	if a.tree != nil {
		a.tree.add(a.labels.node, a.truthIDs, a.predIDs)
	}
	if a.labels.o.Confusion {
		a.confuse()
	}
	if a.ranking != nil { // last, because it reuses the set of predicted labels
		a.ranked = distinct(a.ranked, ranked, &a.predicted, n)
		a.ranking.add(a.ranked, &a.truth, a.truthIDs)
	}
}

// AddProbabilities adds the probabilities of a row's classes, each class once, and its true labels,
// as label ids.
func (a *Accumulator) AddProbabilities(truth, classes []int32, p []float64) {
	if a.probable == nil {
		a.probable = &probabilitySums{}
	}
	a.truthIDs = distinct(a.truthIDs, truth, &a.truth, len(a.labels.node))
	right, absent := make([]bool, len(classes)), len(a.truthIDs)
	for k, id := range classes {
		if right[k] = a.truth.has(id); right[k] {
			absent--
		}
	}
	a.probable.add(p, right, absent)
}

// AddNames does what Add does, for label names.
func (a *Accumulator) AddNames(truth, predicted, ranked []string) {
	ids := a.IDs(a.row[:0], truth)
	t := len(ids)
	ids = a.IDs(ids, predicted)
	p := len(ids)
	ids = a.IDs(ids, ranked)
	a.row = ids
	a.Add(ids[:t], ids[t:p], ids[p:])
}

// distinct appends ids without repeats to dst, and leaves them in set.
func distinct(dst, ids []int32, set *marks, n int) []int32 {
	set.reset(n)
	dst = dst[:0]
	for _, id := range ids {
		if set.put(id) {
			dst = append(dst, id)
		}
	}
	return dst
}

// Result returns the measures of the rows so far.
func (a *Accumulator) Result() Result {
	var total tally
	for _, t := range a.class {
		total.add(t)
	}
	r := Result{
		Instances: a.instances, ClassSet: a.labels.source(),
		MicroF1: total.f1(), MicroPrecision: total.precision(), MicroRecall: total.recall(),
		ZeroOne: mean(float64(a.inexact), a.instances),
	}
	r.MacroF1, r.Classes = macro(a.ClassF1())
	if a.ranking != nil {
		r.Ranking = a.ranking.result(a.instances)
		r.PropensityScored = a.ranking.scored.result()
	}
	if a.probable != nil {
		r.Probability, r.Reliability = a.probable.result()
	}
	if a.tree != nil {
		r.Hierarchy = a.tree.result(a.instances)
		if a.labels.o.ByLevel {
			r.ByLevel = a.tree.byLevel(a.labels)
		}
	}
	if a.labels.o.BySize {
		r.BySize = a.bySize()
	}
	if a.labels.o.PerClass {
		r.PerClass = a.perClass()
	}
	r.Mistakes = a.mistakes()
	return r
}

// ClassF1 returns the F1 of each class of the class set, in the order of their ids.
func (a *Accumulator) ClassF1() []float64 {
	var f []float64
	for id, used := range a.labels.used {
		if used {
			f = append(f, a.tally(id).f1())
		}
	}
	return f
}

// tally returns the counts of a label. It is zero if the label never occurred.
func (a *Accumulator) tally(id int) tally {
	if id >= len(a.class) {
		return tally{}
	}
	return a.class[id]
}

// macro returns the mean of f and the number of values.
func macro(f []float64) (float64, int) {
	sum := 0.0
	for _, v := range f {
		sum += v
	}
	return mean(sum, len(f)), len(f)
}

// sizeBins are the upper ends of the bins: no document, one, and those of Table IX; the last bin is
// open.
var sizeBins = [...]int{0, 1, 5, 10, 20, 50, 100}

// bySize averages F1 over the classes of each bin. A label that is not in the training data, but one
// of a row, is a class without documents. Bins without classes are omitted.
func (a *Accumulator) bySize() []Size {
	var bins [len(sizeBins) + 1][]float64
	for id, size := range a.labels.o.TrainSizes {
		b := 0
		for b < len(sizeBins) && size > sizeBins[b] {
			b++
		}
		bins[b] = append(bins[b], a.tally(id).f1())
	}
	for id := len(a.labels.o.TrainSizes); id < len(a.class); id++ {
		if t := a.tally(id); t.truePos+t.falseNeg > 0 {
			bins[0] = append(bins[0], t.f1())
		}
	}
	table := []Size{}
	from := 0
	for b, f := range bins {
		row := Size{From: from}
		if b < len(sizeBins) {
			to := sizeBins[b]
			row.To, from = &to, to+1
		}
		if row.MacroF1, row.Classes = macro(f); row.Classes > 0 {
			table = append(table, row)
		}
	}
	return table
}
