package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"

	"taxon/internal/taxonomy"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
)

// emitted is a store that makes the weights of a job as they are asked for: internals and
// terminals of so many entries each.
type emitted struct {
	tree     *taxonomy.Tree
	plan     *taxonv1.Plan
	entries  int // of a terminal, and of an internal in a range
	missing  store.Key
	mu       sync.Mutex
	largest  [2]int // value of a block and of a range
	all      int64
	peak     uint64 // of the live heap, as seen
	internal []int32
}

const emittedStep = 9

// newEmitted makes a result of nodes nodes in a ternary tree.
func newEmitted(t testing.TB, nodes, ranges, entries int) (*emitted, *taxonv1.JobStatus) {
	t.Helper()
	s := &taxonomy.Structure{}
	var labels []string
	for n := range nodes {
		s.Names = append(s.Names, fmt.Sprint("n", n))
		if n > 0 {
			s.Parents, s.Children = append(s.Parents, uint32((n-1)/3)), append(s.Children, uint32(n))
		}
		if 3*n+1 >= nodes {
			labels = append(labels, s.Names[n])
		}
	}
	counts := make([]int, len(labels))
	for i := range counts {
		counts[i] = 1
	}
	tree, _, err := taxonomy.Build(s, labels, counts, taxonomy.PruneEmpty)
	if err != nil {
		t.Fatal(err)
	}
	e := &emitted{tree: tree, entries: entries, internal: tree.Internals(), plan: &taxonv1.Plan{BlockBegin: []uint32{0}, RangeBegin: []uint32{0}}}
	terminals := tree.Terminals()
	slices.Reverse(terminals) // blocks need not be in node order
	for i, n := range terminals {
		e.plan.BlockTerminals = append(e.plan.BlockTerminals, uint32(n))
		if i%16 == 15 || i == len(terminals)-1 {
			e.plan.BlockBegin = append(e.plan.BlockBegin, uint32(i+1))
		}
	}
	for r := range ranges {
		e.plan.RangeBegin = append(e.plan.RangeBegin, uint32((r+1)*3*entries))
	}
	st := &taxonv1.JobStatus{Job: "j", FinalStep: emittedStep, FinalAttempts: slices.Repeat([]uint32{1}, len(e.plan.BlockBegin)-1+ranges)}
	return e, st
}

// list is a node's entries in a range of features.
func (e *emitted) list(node, lo int) (features []uint32, values []float32) {
	for i := range e.entries {
		features = append(features, uint32(lo+3*i+node%3))
		values = append(values, float32(node)+float32(i)/4096)
	}
	return features, values
}

// sample looks at what the last garbage collection left.
func (e *emitted) sample() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.peak = max(e.peak, s[0].Value.Uint64())
	return s[0].Value.Uint64()
}

func (e *emitted) Put(context.Context, []store.Value) error { return errors.New("nothing is written") }

func (e *emitted) Get(_ context.Context, keys []store.Key) ([][]byte, error) {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		if k != e.missing {
			out[i] = e.value(k)
		}
	}
	return out, nil
}

func (e *emitted) value(k store.Key) []byte {
	blocks := len(e.plan.BlockBegin) - 1
	kind, b := 0, []byte(nil)
	if t := int(k.Task); t < blocks {
		var os []mapper.Override
		for _, n := range e.plan.BlockTerminals[e.plan.BlockBegin[t]:e.plan.BlockBegin[t+1]] {
			f, v := e.list(int(n), 0)
			os = append(os, mapper.Override{Feature: f, Value: v})
		}
		b = encodeOverrides(os)
	} else {
		kind = 1
		lo := e.plan.RangeBegin[t-blocks]
		v := &reducer.Vectors{Begin: []int64{0}}
		nodes := make([]int32, len(e.internal))
		for p, n := range e.internal {
			f, x := e.list(int(n), int(lo))
			v.Feature, v.Value = append(v.Feature, f...), append(v.Value, x...)
			v.Begin = append(v.Begin, int64(len(v.Feature)))
			nodes[p] = int32(p)
		}
		b = encodeVectors(v, nodes, lo)
	}
	e.sample()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.largest[kind] = max(e.largest[kind], len(b))
	e.all += int64(len(b))
	return b
}

// TestStreamWeights: it gives what Weights gives, and leaves no file.
func TestStreamWeights(t *testing.T) {
	for _, c := range []struct{ nodes, ranges, entries int }{{1, 1, 5}, {40, 1, 7}, {200, 13, 3}, {100, 3, 0}, {4, 2, 70000}} {
		e, st := newEmitted(t, c.nodes, c.ranges, c.entries)
		var want [][]uint32
		var values [][]float32
		err := Weights(t.Context(), e, e.tree, e.plan, st, func(n int, f []uint32, v []float32) error {
			want, values = append(want, slices.Clone(f)), append(values, slices.Clone(v))
			return nil
		})
		if err != nil || len(want) != e.tree.Len() {
			t.Fatalf("%d of %d nodes, %v", len(want), e.tree.Len(), err)
		}
		dir, at := t.TempDir(), 0
		err = StreamWeights(t.Context(), e, e.tree, e.plan, st, dir, func(n int, f []uint32, v []float32) error {
			if n != at || !slices.Equal(f, want[n]) || !slices.Equal(v, values[n]) {
				t.Errorf("%+v: node %d: %v %v, must be %v %v", c, n, f, v, want[n], values[n])
			}
			at++
			return nil
		})
		if err != nil || at != e.tree.Len() {
			t.Errorf("%d of %d nodes, %v", at, e.tree.Len(), err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

// TestStreamWeightsFails: a missing value, an unfinished job and yield's error end it, and
// leave no file.
func TestStreamWeightsFails(t *testing.T) {
	e, st := newEmitted(t, 40, 3, 4)
	dir := t.TempDir()
	stream := func(st *taxonv1.JobStatus, yield error) error {
		return StreamWeights(t.Context(), e, e.tree, e.plan, st, dir, func(int, []uint32, []float32) error { return yield })
	}
	broken := errors.New("broken")
	if err := stream(st, broken); !errors.Is(err, broken) {
		t.Errorf("yield's error: %v", err)
	}
	if err := stream(&taxonv1.JobStatus{Job: "j", FinalAttempts: []uint32{1}}, nil); err == nil {
		t.Error("an unfinished job has weights")
	}
	for _, task := range []uint32{0, uint32(len(e.plan.BlockBegin))} {
		e.missing = store.Key{Job: "j", Step: emittedStep, Task: task, Attempt: 1, Name: "weights"}
		if err := stream(st, nil); err == nil {
			t.Errorf("task %d: a missing value is not missed", task)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestStreamWeightsMemory: a result of 30 MB, in earnest of 1 GB, takes what it says, which
// does not grow with it.
func TestStreamWeightsMemory(t *testing.T) {
	nodes, ranges, entries := 1000, 100, 150
	if os.Getenv("TAXON_TEST_MEMORY") != "" {
		nodes, entries = 26000, 230
	}
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	e, st := newEmitted(t, nodes, ranges, entries)
	before := e.sample()
	e.peak = before
	err := StreamWeights(t.Context(), e, e.tree, e.plan, st, t.TempDir(), func(int, []uint32, []float32) error {
		e.sample()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// What makes the values holds about two more of each, and a quarter is garbage.
	readers := max(blockReaders*e.largest[0], rangeReaders*e.largest[1])
	bound := uint64(readers)*6 + spoolBytes + uint64(12*e.tree.Len())
	t.Logf("%d MB of values, the largest %d and %d KB: %d MB live at most, bound %d MB", e.all/1e6, e.largest[0]/1000, e.largest[1]/1000,
		(e.peak-before)/1e6, bound/1e6)
	if e.peak-before > bound || uint64(e.all) < bound {
		t.Errorf("%d MB are held for %d MB of values, the bound is %d", (e.peak-before)/1e6, e.all/1e6, bound/1e6)
	}
}
