package measure

import (
	"errors"
	"fmt"
	"strconv"

	"taxon/internal/data/taxonomy"
)

// Options says what to measure. The zero value measures sets of labels without a structure, over
// the rows' true labels.
type Options struct {
	Classes    []string          // labels of the training data; nil: not known
	TrainSizes []int             // training instances of each of Classes; nil: no by_size
	Structure  *taxonomy.Closure // nil: no hierarchical measures
	Ranked     bool              // rows have rankings
	// further numbers of places, from 1, that these are measured at
	At        []int
	ByLevel   bool // with Structure
	BySize    bool // with TrainSizes
	PerClass  bool // figures of each class of the class set
	Confusion bool // confusion counts
}

// check reports options that contradict each other.
func (o *Options) check() error {
	if o.TrainSizes != nil && len(o.TrainSizes) != len(o.Classes) {
		return fmt.Errorf("%d class sizes for %d classes", len(o.TrainSizes), len(o.Classes))
	}
	if o.ByLevel && o.Structure == nil {
		return errors.New("figures by level need a class structure")
	}
	if o.BySize && o.TrainSizes == nil {
		return errors.New("figures by class size need the sizes of the classes in the training data")
	}
	return nil
}

// labels numbers label names: Options.Classes first, others as they appear. The accumulators of a
// comparison share one.
type labels struct {
	o    Options
	id   map[string]int32
	node []int32 // id -> node of the structure, -1: outside or no structure
	used []bool  // id is in the class set
}

func newLabels(o Options) (*labels, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &labels{o: o, id: make(map[string]int32, len(o.Classes))}
	for i, name := range o.Classes {
		if l.number(name) != int32(i) {
			return nil, fmt.Errorf("class %s is given twice", strconv.Quote(name))
		}
		l.used[i] = true
	}
	return l, nil
}

// number returns the id of a name, a new one if need be.
func (l *labels) number(name string) int32 {
	id, ok := l.id[name]
	if ok {
		return id
	}
	id = int32(len(l.node))
	l.id[name] = id
	node := int32(-1)
	if l.o.Structure != nil {
		if n, inside := l.o.Structure.Node(name); inside {
			node = n
		}
	}
	l.node = append(l.node, node)
	l.used = append(l.used, false)
	return id
}

// numbers appends the ids of some names.
func (l *labels) numbers(dst []int32, names []string) []int32 {
	for _, n := range names {
		dst = append(dst, l.number(n))
	}
	return dst
}

// met notes true labels. They are the class set if the training data's labels are unknown.
func (l *labels) met(truth []int32) {
	if l.o.Classes != nil {
		return
	}
	for _, id := range truth {
		l.used[id] = true
	}
}

// source says where the class set comes from.
func (l *labels) source() string {
	if l.o.Classes != nil {
		return "training"
	}
	return "data"
}

// marks is a set over small integers that empties in one step.
type marks struct {
	round uint32
	seen  []uint32
}

// reset empties the set and makes room for 0..n-1.
func (m *marks) reset(n int) {
	if n > len(m.seen) {
		m.seen = append(m.seen, make([]uint32, n-len(m.seen))...)
	}
	if m.round++; m.round == 0 { // wrapped around: old marks would look new
		clear(m.seen)
		m.round = 1
	}
}

// put adds i, and says whether it is new.
func (m *marks) put(i int32) bool {
	if m.seen[i] == m.round {
		return false
	}
	m.seen[i] = m.round
	return true
}

func (m *marks) has(i int32) bool { return m.seen[i] == m.round }
