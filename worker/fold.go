package worker

import (
	"math"
	"slices"

	"taxon/internal/jobspec"
	"taxon/mapper"
	"taxon/reducer"
)

// With a smooth loss every terminal pulls at its parent on every feature, mostly by next to
// nothing. An internal whose subtree's terminals are all of one block can follow its parent
// there: the block folds what it gets into what its parent gets, and so up to a node that
// other blocks share. What that costs the certificate the block adds up exactly
// (decision 11). So contributions, and with them the internals' vectors, stay sparse low in
// the tree, where most nodes are.

// foldable sets j.home: the block that has all terminals below an internal node; -1: there
// are several, or it is a root, whose parent is zero.
func (j *job) foldable() {
	if !j.smooth() || j.graph != nil || !twoblock(j.options.GetSchedule()) {
		return
	}
	const none = math.MaxInt32
	j.home = make([]int32, len(j.forest.Parent))
	for p := range j.home {
		j.home[p] = none
	}
	meet := func(p, block int32) {
		if j.home[p] == none {
			j.home[p] = block
		} else if j.home[p] != block {
			j.home[p] = -1
		}
	}
	j.forest.Below = slices.Clone(j.forest.Terminals)
	for b := range j.groupOf {
		for _, n := range j.terminals(uint32(b)) {
			if p := j.parent(n); p >= 0 {
				meet(p, int32(b))
			}
		}
	}
	for p := len(j.home) - 1; p >= 0; p-- { // children before parents
		up := j.forest.Parent[p]
		if up < 0 {
			j.home[p] = -1
			continue
		}
		j.forest.Below[up] += j.forest.Below[p]
		if j.home[p] != none {
			meet(up, j.home[p])
		}
	}
}

func twoblock(schedule string) bool { return schedule == jobspec.ScheduleTwoblock || schedule == "" }

// folding is the scratch of fold.
type folding struct {
	nodes []int32 // parents of the block's terminals and what they fold into; children first
	lines map[int32]*foldLine
	free  []*foldLine
	small []uint32 // features on which a node may follow its parent
}

// foldStiff is the greatest stiffness that folds, in StiffUnits: where the loss bends, a node
// that follows its parent for a time moves the duals below it by more than itself.
const foldStiff = mapper.StiffUnit / 2

// foldLine is one node's, feature by feature.
type foldLine struct {
	sum   []float64
	stiff []uint16
	mark  []uint8
}

// Marks of a foldLine.
const (
	foldHeld = 1 << iota // the node has a value of its own at x or x_prev
	foldBusy             // a node below it has an entry
)

// open lists the nodes of a block whose terminals have the given parents.
func (f *folding) open(j *job, block int32, parents []int32) {
	if f.lines == nil {
		f.lines = map[int32]*foldLine{}
	}
	f.nodes = f.nodes[:0]
	for _, p := range parents {
		for p >= 0 && f.lines[p] == nil {
			f.nodes = append(f.nodes, p)
			f.lines[p] = f.take(int(j.features))
			if j.home[p] != block {
				break
			}
			p = j.forest.Parent[p]
		}
	}
	slices.Sort(f.nodes)
	slices.Reverse(f.nodes)
}

func (f *folding) take(features int) *foldLine {
	if n := len(f.free); n > 0 {
		l := f.free[n-1]
		f.free = f.free[:n-1]
		clear(l.sum)
		clear(l.stiff)
		clear(l.mark)
		return l
	}
	return &foldLine{make([]float64, features), make([]uint16, features), make([]uint8, features)}
}

func (f *folding) close() {
	for _, p := range f.nodes {
		f.free = append(f.free, f.lines[p])
		delete(f.lines, p)
	}
}

// fold turns a block's contributions by slot into those by node, to[c.Slot]. Of v, entries
// fold that cost trim a node or less (mapper.Options.Trim); of G, which makes the
// certificate and no step, all entries at which the node has its parent's value, and cost is
// their share of P - D: R_p = 0 - U_p (reducer: certify).
func (k *task) fold(s *scratch, block uint32, cs []mapper.Contribution, parents []int32, trim float64, gradient bool) (sent []mapper.Contribution, to []int32, cost float64) {
	j, f := k.job, &s.folding
	f.open(j, int32(block), parents)
	defer f.close()
	for _, c := range cs {
		if parents[c.Slot] < 0 {
			continue
		}
		line := f.lines[parents[c.Slot]]
		for i, at := range c.Feature {
			line.sum[at] += c.Sum[i]
			line.stiff[at] += uint16(c.Stiff[i])
		}
	}
	for _, p := range f.nodes {
		line := f.lines[p]
		var up *foldLine
		limit, edge := 0.0, 1.0
		if j.home[p] == int32(block) {
			up, edge = f.lines[j.forest.Parent[p]], j.forest.Edge(p)
			line.hold(s.x, p)
			if s.prev != s.x {
				line.hold(s.prev, p)
			}
			limit = math.Inf(1)
			if !gradient {
				limit = f.limit(line, trim*edge, trim)
			}
		}
		c := mapper.Contribution{Slot: len(sent)}
		for at, sum := range line.sum {
			stiff := line.stiff[at]
			if sum == 0 && stiff == 0 {
				continue
			}
			if up != nil && line.mark[at] == 0 && math.Abs(sum) < limit && stiff <= foldStiff {
				up.sum[at] += sum
				up.stiff[at] += stiff
				cost += float64(sum*sum) / (2 * edge)
				continue
			}
			if up != nil {
				up.mark[at] |= foldBusy
			}
			c.Feature, c.Sum, c.Stiff = append(c.Feature, uint32(at)), append(c.Sum, sum), append(c.Stiff, uint8(stiff))
		}
		if len(c.Feature) > 0 {
			sent, to = append(sent, c), append(to, p)
		}
	}
	return sent, to, cost
}

// hold marks where node p has a value of its own.
func (l *foldLine) hold(v *reducer.Internals, p int32) {
	at, ok := v.Place(p)
	if !ok {
		return
	}
	for _, part := range v.Parts {
		for _, f := range part.Feature[part.Begin[at]:part.Begin[at+1]] {
			l.mark[f] |= foldHeld
		}
	}
}

// limit is the size below which a node's entries fold.
func (f *folding) limit(l *foldLine, budget, trim float64) float64 {
	if trim < 0 { // a share: of whatever scale
		budget = trim
	}
	f.small = f.small[:0]
	for at, m := range l.mark {
		if m == 0 {
			f.small = append(f.small, uint32(at))
		}
	}
	return mapper.Threshold(l.sum, f.small, budget)
}
