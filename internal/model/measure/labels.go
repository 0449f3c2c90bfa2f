package measure

import (
	"errors"
	"fmt"
	"strconv"

	"taxon/internal/data/taxonomy"
)

// Options select the measures. The zero value measures sets of labels without a structure, over the
// rows' true labels.
type Options struct {
	// Classes are the labels of the training data. They are nil if unknown.
	Classes []string
	// TrainSizes are the numbers of training documents of Classes. If they are nil, there is no
	// table by size.
	TrainSizes []int
	// Documents is the number of training documents. If it is 0, or TrainSizes is nil, there are no
	// propensities.
	Documents int
	// Propensity has the parameters of the propensities.
	Propensity Propensity
	// Structure is the class structure. If it is nil, there are no hierarchical measures.
	Structure *taxonomy.Closure
	// Ranked reports that rows have rankings.
	Ranked bool
	// At lists further numbers of places, at least 1, for the measures of rankings.
	At []int
	// ByLevel requests the table by level. It needs Structure.
	ByLevel bool
	// BySize requests the table by class size. It needs TrainSizes.
	BySize bool
	// PerClass requests the measures of each class of the class set.
	PerClass bool
	// Confusion requests the confusion counts.
	Confusion bool
}

// check returns an error for options that contradict each other.
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

// labels numbers label names: Options.Classes first, others in order of appearance. The
// accumulators of a comparison share one.
type labels struct {
	o  Options
	id map[string]int32
	// node maps an id to its node of the structure, or to -1.
	node []int32
	// used reports whether an id is in the class set.
	used []bool
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

// number returns the id of a name, and assigns a new one if necessary.
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

// met records true labels. They form the class set if the training data's labels are unknown.
func (l *labels) met(truth []int32) {
	if l.o.Classes != nil {
		return
	}
	for _, id := range truth {
		l.used[id] = true
	}
}

// source returns the source of the class set.
func (l *labels) source() string {
	if l.o.Classes != nil {
		return "training"
	}
	return "data"
}

// marks is a set of small integers that is emptied in constant time.
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

// put adds i and reports whether it is new.
func (m *marks) put(i int32) bool {
	if m.seen[i] == m.round {
		return false
	}
	m.seen[i] = m.round
	return true
}

func (m *marks) has(i int32) bool { return m.seen[i] == m.round }
