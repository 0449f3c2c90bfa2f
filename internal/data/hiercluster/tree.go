package hiercluster

import (
	"cmp"
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// Options configures Learn and Grow. The zero value is valid.
type Options struct {
	// Families is the number of families, at most one per class. If it is 0, a family has PerFamily
	// classes on average.
	Families int

	// Seed determines the two classes with which each split begins.
	Seed uint64

	// Threads is the number of goroutines.
	Threads int

	// Progress is called with the amount of work done and the total, from several goroutines. It
	// may be nil.
	Progress func(done, all int)
}

// PerFamily is the default for the mean number of classes in a family.
const PerFamily = 16

// levels is the number of binary splits that form one level of the tree. A node thus has at most
// 2^levels = 4 children.
const levels = 2

// rounds bounds the iterations of one split. Most splits converge earlier.
const rounds = 30

// Tree is a tree over classes. Nodes below Classes are the classes; then come the root and the
// other internal nodes.
type Tree struct {
	// Parent holds the parent of each node. That of the root is -1.
	Parent  []int32
	Classes int
}

// Learn builds the tree of a data set's classes. A class without instances becomes a child of the
// root.
func Learn(ctx context.Context, d *Data, o Options) (*Tree, error) {
	v, err := Centroids(ctx, d, o.Threads)
	if err != nil {
		return nil, err
	}
	return Grow(ctx, v, o)
}

// Grow builds the tree of the classes from their vectors. A set of classes that is to become
// several families is split in two, and each half gets its share of the families.
//
// A split is balanced 2-means: classes are sorted by their inner product with the difference of the
// halves' means and divided in the middle, until no class changes sides. It begins with two classes
// that depend on the seed and on the split's place in the tree. Sums are added up in the order of
// the classes, so the tree does not depend on the number of threads.
func Grow(ctx context.Context, v *Vectors, o Options) (*Tree, error) {
	g := &builder{ctx: ctx, v: v, o: o, scratch: make(chan *scratch, max(1, o.Threads))}
	for range cap(g.scratch) {
		g.scratch <- &scratch{}
	}
	var all []int32
	for c := range int32(v.Len()) {
		if v.Begin[c+1] > v.Begin[c] {
			all = append(all, c)
		}
	}
	families := o.Families
	if families == 0 {
		families = (len(all) + PerFamily/2) / PerFamily
	}
	families = max(1, min(families, len(all)))
	g.work = len(all) * bits.Len(uint(families-1))
	root := g.grow(all, families, 1)
	t := &Tree{Classes: v.Len(), Parent: make([]int32, v.Len()+1)}
	for c := range t.Parent {
		t.Parent[c] = int32(v.Len())
	}
	t.Parent[v.Len()] = -1
	t.add(root, int32(v.Len()), 0)
	return t, ctx.Err()
}

// Order lists the nodes depth first: a parent comes before its children, and a node's internal
// children come before its classes.
func (t *Tree) Order() []int32 {
	children := make([][]int32, len(t.Parent))
	for n := len(t.Parent) - 1; n >= 0; n-- { // pushed in this order, popped in reverse
		if p := t.Parent[n]; p >= 0 && n < t.Classes {
			children[p] = append(children[p], int32(n))
		}
	}
	for n := len(t.Parent) - 1; n > t.Classes; n-- {
		children[t.Parent[n]] = append(children[t.Parent[n]], int32(n))
	}
	out := make([]int32, 0, len(t.Parent))
	for stack := []int32{int32(t.Classes)}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = append(stack[:len(stack)-1], children[n]...)
		out = append(out, n)
	}
	return out
}

// branch is a set of classes and the two halves into which it was split.
type branch struct {
	classes []int32
	halves  []*branch // nil for a family
}

// add creates the nodes of a branch below a node: one for every `levels`-th split, and one for each
// family.
func (t *Tree) add(b *branch, node int32, depth int) {
	family := len(b.halves) == 0
	if depth > 0 && (family || depth%levels == 0) {
		t.Parent = append(t.Parent, node)
		node = int32(len(t.Parent) - 1)
	}
	if family {
		for _, c := range b.classes {
			t.Parent[c] = node
		}
	}
	for _, half := range b.halves {
		t.add(half, node, depth+1)
	}
}

type builder struct {
	ctx     context.Context
	v       *Vectors
	o       Options
	scratch chan *scratch // one per thread
	work    int           // upper bound on the classes that all splits visit
	done    atomic.Int64
}

// scratch is the memory of one split.
type scratch struct {
	difference []float64 // difference of the halves' means; zero between splits
	score      []float64 // score of each class
}

// grow splits classes, which are ascending, into families. place identifies the split: it is 1 for
// the set of all classes, and the halves of place p are 2p and 2p+1.
func (g *builder) grow(classes []int32, families int, place uint64) *branch {
	b := &branch{classes: classes}
	if families <= 1 || g.ctx.Err() != nil {
		return b
	}
	left := (families + 1) / 2
	one, other := g.split(classes, max(1, len(classes)*left/families), place)
	b.halves = make([]*branch, 2)
	var wg sync.WaitGroup
	wg.Go(func() { b.halves[1] = g.grow(other, families-left, 2*place+1) })
	b.halves[0] = g.grow(one, left, 2*place)
	wg.Wait()
	return b
}

// split puts n of the classes, of which there are at least two, on one side and the rest on the
// other.
func (g *builder) split(classes []int32, n int, place uint64) (one, other []int32) {
	s := <-g.scratch
	defer func() { g.scratch <- s }()
	if s.difference == nil {
		s.difference, s.score = make([]float64, g.v.Columns), make([]float64, g.v.Len())
	}
	random := rand.New(rand.NewPCG(g.o.Seed, place))
	i, j := random.IntN(len(classes)), random.IntN(len(classes)-1)
	if j >= i {
		j++
	}
	one, other = classes[i:i+1], classes[j:j+1]
	sorted := slices.Clone(classes)
	for round := 0; round < rounds && g.ctx.Err() == nil; round++ {
		g.add(s.difference, one, 1/float64(len(one)))
		g.add(s.difference, other, -1/float64(len(other)))
		g.scores(s, classes)
		g.clear(s.difference, one)
		g.clear(s.difference, other)
		slices.SortFunc(sorted, func(a, b int32) int {
			return cmp.Or(cmp.Compare(s.score[b], s.score[a]), cmp.Compare(a, b))
		})
		was := one
		one, other = slices.Clone(sorted[:n]), slices.Clone(sorted[n:])
		slices.Sort(one)
		slices.Sort(other)
		if slices.Equal(one, was) {
			break
		}
	}
	if done := g.done.Add(int64(len(classes))); g.o.Progress != nil {
		g.o.Progress(int(done), g.work)
	}
	return one, other
}

// add adds the vectors of classes, times a weight, to sum.
func (g *builder) add(sum []float64, classes []int32, weight float64) {
	for _, c := range classes {
		index, value := g.v.of(c)
		for k, f := range index {
			sum[f] = float64(weight*float64(value[k])) + sum[f]
		}
	}
}

// clear sets the entries of sum that the classes' vectors touch to 0.
func (g *builder) clear(sum []float64, classes []int32) {
	for _, c := range classes {
		index, _ := g.v.of(c)
		for _, f := range index {
			sum[f] = 0
		}
	}
}

// chunk is the number of classes that a thread scores at a time. Smaller splits use a single
// thread.
const chunk = 1024

// scores computes the inner product of each class with the difference of the means.
func (g *builder) scores(s *scratch, classes []int32) {
	share(g.o.Threads, (len(classes)+chunk-1)/chunk, func() func(int) {
		return func(i int) {
			for _, c := range classes[i*chunk : min((i+1)*chunk, len(classes))] {
				index, value := g.v.of(c)
				sum := 0.0
				for k, f := range index {
					sum = float64(s.difference[f]*float64(value[k])) + sum
				}
				s.score[c] = sum
			}
		}
	})
}
