package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"taxon/reducer"
)

// randomForest draws n internals in preorder, several roots among them.
func randomForest(r *rand.Rand, n int) *reducer.Forest {
	f := &reducer.Forest{}
	var stack []int32
	for p := range int32(n) {
		stack = stack[:r.IntN(len(stack)+1)]
		parent := int32(-1)
		if len(stack) > 0 {
			parent = stack[len(stack)-1]
		}
		f.Parent = append(f.Parent, parent)
		stack = append(stack, p)
		if r.IntN(2) == 0 { // go deeper than the cut would
			stack = stack[:0]
			for q := p; q >= 0; q = f.Parent[q] {
				stack = append(stack, q)
			}
			slices.Reverse(stack)
		}
	}
	return f
}

// randomVectors draws override lists over [lo, hi).
func randomVectors(r *rand.Rand, nodes int, lo, hi uint32) *reducer.Vectors {
	v := reducer.Zero(nodes)
	for p := range nodes {
		for f := lo; f < hi; f++ {
			if r.IntN(3) == 0 {
				v.Feature, v.Value = append(v.Feature, f), append(v.Value, float32(r.NormFloat64()))
			}
		}
		v.Begin[p+1] = int64(len(v.Feature))
	}
	return v
}

// whole is vectors of all nodes.
func whole(v *reducer.Vectors) *vectors {
	nodes := make([]int32, len(v.Begin)-1)
	for p := range nodes {
		nodes[p] = int32(p)
	}
	return &vectors{nodes: nodes, parts: cut(v)}
}

// cut makes two ranges' parts of one; features below 5 are in the first.
func cut(v *reducer.Vectors) []*vectorPart {
	n := len(v.Begin) - 1
	parts := []*vectorPart{reducer.Zero(n), reducer.Zero(n)}
	for p := range n {
		for e := v.Begin[p]; e < v.Begin[p+1]; e++ {
			part := parts[min(v.Feature[e]/5, 1)]
			part.Feature, part.Value = append(part.Feature, v.Feature[e]), append(part.Value, v.Value[e])
		}
		for _, part := range parts {
			part.Begin[p+1] = int64(len(part.Feature))
		}
	}
	return parts
}

// expand is the vector of node p: its ancestors' overrides from the root on.
func expand(f *reducer.Forest, v *vectors, p int32, width uint32) []float32 {
	x := make([]float32, width)
	if q := f.Parent[p]; q >= 0 {
		x = expand(f, v, q, width)
	}
	at, ok := v.place(p)
	for _, part := range v.parts {
		if !ok {
			break
		}
		features, values := list(part, at)
		for k, i := range features {
			x[i] = values[k]
		}
	}
	return x
}

// TestPath walks anywhere in any order, over several pairs of vectors, and always stands
// at the vector that naive expansion gives.
func TestPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		n, width := 1+r.IntN(20), uint32(1+r.IntN(12))
		f := randomForest(r, n)
		var pairs [3][2]*vectors
		for k := range pairs {
			pairs[k] = [2]*vectors{whole(randomVectors(r, n, 0, width)), whole(randomVectors(r, n, 0, width))}
		}
		w := &path{}
		for range 60 {
			x := pairs[r.IntN(len(pairs))]
			beta := float32(r.IntN(3)) / 3
			w.reset(x[0], x[1], beta, width)
			p := int32(r.IntN(n))
			w.move(f, p)
			got := make([]float32, width+1)
			got[width] = 99
			w.copyTo(got)
			now, before := expand(f, x[0], p, width), expand(f, x[1], p, width)
			for i := range now {
				if want := reducer.Extrapolate(now[i], before[i], beta); got[i] != want {
					t.Fatalf("node %d feature %d: %g, want %g", p, i, got[i], want)
				}
			}
			if got[width] != 0 {
				t.Fatalf("beyond the vector: %g", got[width])
			}
		}
	})
}

// TestPlace finds the nodes of a group that leaves some internals out.
func TestPlace(t *testing.T) {
	v := &vectors{nodes: []int32{0, 2, 3, 7}}
	for p, want := range map[int32]int{0: 0, 2: 1, 3: 2, 7: 3, 1: -1, 5: -1, 9: -1} {
		if at, ok := v.place(p); ok != (want >= 0) || ok && at != want {
			t.Errorf("node %d: %d, %t", p, at, ok)
		}
	}
}

// TestJoinGroups: groups of one range become all nodes' lists.
func TestJoinGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const nodes = 6
	all := randomVectors(r, nodes, 4, 20)
	groups := [][]int32{{0, 1, 3}, {0, 3, 4}, {}, {0, 5}} // 0 and 3 in several, 2 in none
	parts := make([]*vectorPart, len(groups))
	for g, list := range groups {
		parts[g] = &vectorPart{Begin: make([]int64, len(list)+1)}
		for i, p := range list {
			parts[g].Feature = append(parts[g].Feature, all.Feature[all.Begin[p]:all.Begin[p+1]]...)
			parts[g].Value = append(parts[g].Value, all.Value[all.Begin[p]:all.Begin[p+1]]...)
			parts[g].Begin[i+1] = int64(len(parts[g].Feature))
		}
	}
	got := joinGroups(nodes, groups, parts)
	for p := range nodes {
		a, b, c, d := all.Begin[p], all.Begin[p+1], got.Begin[p], got.Begin[p+1]
		if p == 2 {
			b = a // below no block
		}
		if !slices.Equal(all.Feature[a:b], got.Feature[c:d]) || !slices.Equal(all.Value[a:b], got.Value[c:d]) {
			t.Errorf("node %d", p)
		}
	}
	if one := joinGroups(nodes, [][]int32{{0, 1, 2, 3, 4, 5}}, []*vectorPart{all}); one != all {
		t.Error("a single group is copied")
	}
}

// TestVectorCache: many tasks ask at once, each value is loaded by one of them as long as
// it stays, and everybody gets the value of the key asked for.
func TestVectorCache(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := newVectorCache(4)
	var loads atomic.Int64
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for k := range 200 {
				n := int32(k / 50) // all of them move on together, roughly: four keys fit
				v, err := c.get(context.Background(), fmt.Sprint(n), func() (*vectors, error) {
					loads.Add(1)
					return &vectors{nodes: []int32{n}}, nil
				})
				if err != nil || v.nodes[0] != n {
					t.Errorf("worker %d key %d: %v, %v", worker, n, v, err)
					return
				}
			}
		})
	}
	group.Wait()
	if loads.Load() != 4 {
		t.Errorf("%d loads of 4 keys", loads.Load())
	}
	for k := range 100 {
		_, _ = c.get(context.Background(), fmt.Sprint("other ", k), func() (*vectors, error) { return &vectors{}, nil })
	}
	if len(c.items) > 4 || len(c.order) > 4 {
		t.Errorf("%d items, %d in order, at most 4", len(c.items), len(c.order))
	}
}

// TestVectorCacheFailures: an error is not kept, a waiting task whose loader failed loads
// by itself, and one whose context ends gives up.
func TestVectorCacheFailures(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := newVectorCache(2)
	lost := errors.New("lost")
	fail := func() (*vectors, error) { return nil, lost }
	good := func() (*vectors, error) { return &vectors{}, nil }
	if _, err := c.get(context.Background(), "a", fail); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if len(c.items)+len(c.order) != 0 {
		t.Fatal("what could not be loaded takes a place")
	}
	if _, err := c.get(context.Background(), "a", good); err != nil {
		t.Fatalf("the error was kept: %v", err)
	}
	loading, finish, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := c.get(context.Background(), "b", func() (*vectors, error) { close(loading); <-finish; return nil, lost })
		done <- err
	}()
	<-loading
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.get(ended, "b", good); !errors.Is(err, context.Canceled) {
		t.Errorf("a task that was cancelled waits on: %v", err)
	}
	go func() {
		_, err := c.get(context.Background(), "b", good)
		done <- err
	}()
	close(finish)
	if a, b := <-done, <-done; !errors.Is(errors.Join(a, b), lost) || a != nil && b != nil {
		t.Errorf("loader and waiter: %v, %v", a, b)
	}
}
