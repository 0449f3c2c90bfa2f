package program

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
)

// randomVectors generates override lists over [lo, hi).
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

// TestJoinGroups checks that the groups of one range are joined to the lists of all nodes.
func TestJoinGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const nodes = 6
	all := randomVectors(r, nodes, 4, 20)
	groups := [][]int32{{0, 1, 3}, {0, 3, 4}, {}, {0, 5}} // 0 and 3 are in several groups, 2 in none
	parts := make([]*reducer.Vectors, len(groups))
	for g, list := range groups {
		parts[g] = &reducer.Vectors{Begin: make([]int64, len(list)+1)}
		for i, p := range list {
			parts[g].Feature = append(parts[g].Feature, all.Feature[all.Begin[p]:all.Begin[p+1]]...)
			parts[g].Value = append(parts[g].Value, all.Value[all.Begin[p]:all.Begin[p+1]]...)
			parts[g].Begin[i+1] = int64(len(parts[g].Feature))
		}
	}
	used := randomVectors(r, nodes+3, 4, 20)
	for _, memory := range []*reducer.Vectors{new(reducer.Vectors), used} {
		got := joinGroups(memory, nodes, groups, parts)
		for p := range nodes {
			a, b, c, d := all.Begin[p], all.Begin[p+1], got.Begin[p], got.Begin[p+1]
			if p == 2 {
				b = a // 2 is above no block
			}
			if !slices.Equal(all.Feature[a:b], got.Feature[c:d]) || !slices.Equal(all.Value[a:b], got.Value[c:d]) {
				t.Errorf("node %d", p)
			}
		}
	}
	if one := joinGroups(new(reducer.Vectors), nodes, [][]int32{{0, 1, 2, 3, 4, 5}}, []*reducer.Vectors{all}); one != all {
		t.Error("a single group is copied")
	}
}

// TestVectorCache checks that of many concurrent tasks only one loads each value while it is
// cached, and that each task gets the value of its key.
func TestVectorCache(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := vectorCache{most: 2}
	var loads atomic.Int64
	get := func(group int, back uint32, version int) {
		n := int32(10*version + group)
		v, err := c.get(context.Background(), group, back, fmt.Sprint(n), func() (*reducer.Internals, error) {
			loads.Add(1)
			return &reducer.Internals{Nodes: []int32{n}}, nil
		})
		if err != nil || v.Nodes[0] != n {
			t.Errorf("group %d version %d: %v, %v", group, version, v, err)
		}
	}
	for version := range 3 { // sweeps
		var tasks sync.WaitGroup
		for range 8 {
			tasks.Go(func() {
				for k := range 200 {
					get(k/100, 0, version+1)
					get(k/100, 1, version)
				}
			})
		}
		tasks.Wait()
		if want := int64(2 * (version + 2)); loads.Load() != want {
			t.Errorf("%d loads in %d sweeps of two groups, want %d", loads.Load(), version+1, want)
		}
	}
	before := loads.Load()
	c.drop(1)
	get(1, 0, 3)
	get(1, 1, 2)
	if n := loads.Load() - before; n != 1 {
		t.Errorf("%d loads, want that of the version that was dropped", n)
	}
	for k := range 100 {
		get(2+k, 0, 9)
	}
	if len(c.groups) != 2 {
		t.Errorf("%d groups are kept, at most 2", len(c.groups))
	}
	before = loads.Load()
	get(0, 0, 3)
	get(101, 0, 9) // it was kept
	if n := loads.Load() - before; n != 1 {
		t.Errorf("%d loads, want that of the group that was dropped", n)
	}
}

// TestVectorCacheFailures checks that an error is not cached, that a waiting task whose loader
// failed loads by itself, and that a task whose context ends stops waiting.
func TestVectorCacheFailures(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := vectorCache{most: 2}
	lost := errors.New("lost")
	fail := func() (*reducer.Internals, error) { return nil, lost }
	good := func() (*reducer.Internals, error) { return &reducer.Internals{}, nil }
	if _, err := c.get(context.Background(), 0, 0, "a", fail); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if c.groups[0].version[0] != nil {
		t.Fatal("what could not be loaded takes a place")
	}
	if _, err := c.get(context.Background(), 0, 0, "a", good); err != nil {
		t.Fatalf("the error was kept: %v", err)
	}
	loading, finish, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := c.get(context.Background(), 0, 1, "b", func() (*reducer.Internals,
			error) {
			close(loading)
			<-finish
			return nil, lost
		})
		done <- err
	}()
	<-loading
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.get(ended, 0, 1, "b", good); !errors.Is(err, context.Canceled) {
		t.Errorf("a task that was cancelled waits on: %v", err)
	}
	go func() {
		_, err := c.get(context.Background(), 0, 1, "b", good)
		done <- err
	}()
	close(finish)
	if a, b := <-done, <-done; !errors.Is(errors.Join(a, b), lost) || a != nil && b != nil {
		t.Errorf("loader and waiter: %v, %v", a, b)
	}
}

// TestKeepsWhatHasRoom checks that outputs of tasks are kept while memory has room, and dropped
// block by block otherwise.
func TestKeepsWhatHasRoom(t *testing.T) {
	var b blocks
	at := taxonv1.Place{Step: 3}
	b.retain(1, solvedBlock{at: at})
	if _, ok := b.get(1, at); !ok {
		t.Error("it is not kept, and the process has no limit")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1))
	runtime.GC()
	b.retain(1, solvedBlock{at: taxonv1.Place{Step: 5}})
	if len(b.of) > 0 {
		t.Error("it is kept beyond the limit")
	}
}
