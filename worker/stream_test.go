package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
	"taxon/worker/codec"
	"taxon/worker/program"
)

// emittedValues is a store that makes the weights of a job as they are asked for, as those of a tree
// lie: nodes without a third are written sixteen to a task, in falling order, the others by all
// the tasks behind, a range of the columns each.
type emittedValues struct {
	nodes, blocks, ranges, entries int // entries of a node in a task
	missing                        store.Key
	mu                             sync.Mutex
	largest                        int // value
	all                            int64
	peak                           uint64 // of the live heap, as seen
}

const emittedStep = 9

func newEmitted(nodes, ranges, entries int) (*emittedValues, *taxonv1.JobStatus) {
	e := &emittedValues{nodes: nodes, ranges: ranges, entries: entries, blocks: (nodes - (nodes+2)/3 + 15) / 16}
	return e, &taxonv1.JobStatus{Job: "j", FinalStep: emittedStep, FinalAttempts: slices.Repeat([]uint32{1},
		e.blocks+ranges)}
}

// list is a node's entries in a range of features.
func (e *emittedValues) list(node, lo int) (features []uint32, values []float32) {
	for i := range e.entries {
		features = append(features, uint32(lo+3*i+node%3))
		values = append(values, float32(node)+float32(i)/4096)
	}
	return features, values
}

// whole is all that a node has.
func (e *emittedValues) whole(node int) (features []uint32, values []float32) {
	if node%3 > 0 {
		return e.list(node, 0)
	}
	for r := range e.ranges {
		f, v := e.list(node, 3*r*e.entries)
		features, values = append(features, f...), append(values, v...)
	}
	return features, values
}

// check compares what a stream yields with what was emitted: all nodes, in order, once.
func (e *emittedValues) check(t *testing.T, stream func(yield func(int, []uint32, []float32) error) error) {
	t.Helper()
	at := 0
	err := stream(func(n int, f []uint32, v []float32) error {
		want, values := e.whole(n)
		if n != at || !slices.Equal(f, want) || !slices.Equal(v, values) {
			t.Errorf("node %d: %d and %d entries, must be %d", n, len(f), len(v), len(want))
		}
		at++
		return nil
	})
	if err != nil || at != e.nodes {
		t.Errorf("%d of %d nodes, %v", at, e.nodes, err)
	}
}

// sample looks at what the last garbage collection left.
func (e *emittedValues) sample() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.peak = max(e.peak, s[0].Value.Uint64())
	return s[0].Value.Uint64()
}

func (e *emittedValues) Put(context.Context, []store.Value) error {
	return errors.New("nothing is written")
}

func (e *emittedValues) Get(_ context.Context, keys []store.Key) ([][]byte, error) {
	out := make([][]byte, len(keys))
	for i, k := range keys {
		if k != e.missing {
			out[i] = e.value(int(k.Task))
		}
	}
	return out, nil
}

func (e *emittedValues) value(task int) []byte {
	var nodes []program.NodeWeights
	add := func(n, lo int) {
		f, v := e.list(n, lo)
		nodes = append(nodes, program.NodeWeights{Node: uint32(n), Columns: f, Values: v})
	}
	if task < e.blocks {
		for i := 16 * task; i < 16*task+16; i++ { // of the nodes that 3 does not divide, from the last on
			if n := 3*(i/2) + 1 + i%2; n < e.nodes {
				add(n, 0)
			}
		}
		slices.Reverse(nodes)
	} else {
		for n := 0; n < e.nodes; n += 3 {
			add(n, 3*(task-e.blocks)*e.entries)
		}
	}
	b := program.EncodeWeights(nodes)
	nodes = nil
	e.sample()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.largest = max(e.largest, len(b))
	e.all += int64(len(b))
	return b
}

// TestStreamWeights: every node comes once, in order, with all that tasks have written for it,
// from memory and by way of the file, and no file is left.
func TestStreamWeights(t *testing.T) {
	for _, c := range []struct{ nodes, ranges, entries int }{{1, 1, 5}, {40, 1, 7}, {200, 13, 3}, {100, 3, 0},
		{4, 2, 70000}, {7, 60, 40000}} {
		e, st := newEmitted(c.nodes, c.ranges, c.entries)
		dir := t.TempDir()
		e.check(t, func(yield func(int, []uint32, []float32) error) error {
			return StreamWeights(t.Context(), e, c.nodes, st, dir, yield)
		})
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

// TestStreamWeightsOfAnyTasks: however the entries are spread over tasks, their columns rising
// from task to task, the nodes get them back.
func TestStreamWeightsOfAnyTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, tasks := rapid.IntRange(1, 12).Draw(t, "nodes"), rapid.IntRange(1, 8).Draw(t, "tasks")
		columns, values := make([][]uint32, nodes), make([][]float32, nodes)
		shard := memory.New(memory.Options{})
		defer shard.Close()
		for k := range tasks {
			var wrote []program.NodeWeights
			for n := range nodes {
				w := program.NodeWeights{Node: uint32(n)}
				for c := range uint32(4) {
					if rapid.IntRange(0, 3).Draw(t, "has") == 0 {
						w.Columns, w.Values = append(w.Columns, 4*uint32(k)+c), append(w.Values, rapid.Float32().Draw(t, "value"))
					}
				}
				columns[n], values[n] = append(columns[n], w.Columns...), append(values[n], w.Values...)
				wrote = append(wrote, w)
			}
			key := store.Key{Job: "j", Step: emittedStep, Task: uint32(k), Attempt: 1, Name: program.WeightsName}
			if err := shard.Put(context.Background(),
				[]store.Value{{Key: key, Data: program.EncodeWeights(wrote)}}); err != nil {
				t.Fatal(err)
			}
		}
		st := &taxonv1.JobStatus{Job: "j", FinalStep: emittedStep, FinalAttempts: slices.Repeat([]uint32{1}, tasks)}
		err := StreamWeights(context.Background(), shard, nodes, st, "", func(n int, f []uint32, v []float32) error {
			if !slices.Equal(f, columns[n]) || !slices.Equal(v, values[n]) {
				t.Fatalf("node %d: %v %v, want %v %v", n, f, v, columns[n], values[n])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestStreamWeightsFails: a missing value, an unfinished job, weights that are not of the job and
// yield's error end it, and leave no file.
func TestStreamWeightsFails(t *testing.T) {
	e, st := newEmitted(40, 3, 4)
	dir := t.TempDir()
	stream := func(nodes int, st *taxonv1.JobStatus, yield error) error {
		return StreamWeights(t.Context(), e, nodes, st, dir, func(int, []uint32, []float32) error { return yield })
	}
	broken := errors.New("broken")
	if err := stream(40, st, broken); !errors.Is(err, broken) {
		t.Errorf("yield's error: %v", err)
	}
	if err := stream(40, &taxonv1.JobStatus{Job: "j", FinalAttempts: []uint32{1}}, nil); err == nil {
		t.Error("an unfinished job has weights")
	}
	if err := stream(20, st, nil); !errors.Is(err, codec.ErrBroken) || !strings.Contains(err.Error(), "there are 20") {
		t.Errorf("nodes beyond the last: %v", err)
	}
	for _, task := range []uint32{0, uint32(e.blocks)} {
		e.missing = store.Key{Job: "j", Step: emittedStep, Task: task, Attempt: 1, Name: "weights"}
		if err := stream(40, st, nil); !errors.Is(err, store.ErrMissing) {
			t.Errorf("task %d: a missing value is not missed: %v", task, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestWeightBuffer: weights that tasks put into a spool come back as from a store, more than once; other
// attempts do not count, a step that is dropped is gone, and no file is left.
func TestWeightBuffer(t *testing.T) {
	for _, c := range []struct{ nodes, ranges, entries int }{{1, 1, 5}, {200, 13, 3}, {100, 3, 0}, {7, 60, 40000}} {
		e, st := newEmitted(c.nodes, c.ranges, c.entries)
		dir := t.TempDir()
		s := NewWeightBuffer(dir)
		for task, attempt := range st.FinalAttempts {
			key := store.Key{Job: "j", Step: emittedStep, Task: uint32(task), Attempt: attempt, Name: program.WeightsName}
			other := key
			other.Attempt++
			if err := errors.Join(s.put(store.Value{Key: other, Data: program.EncodeWeights(nil)}),
				s.put(store.Value{Key: key, Data: e.value(task)})); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			e.check(t, func(yield func(int, []uint32, []float32) error) error {
				return s.Stream(t.Context(), c.nodes, st, yield)
			})
		}
		yield := func(int, []uint32, []float32) error { return nil }
		more := &taxonv1.JobStatus{Job: "j", FinalStep: emittedStep, FinalAttempts: append(st.FinalAttempts, 1)}
		if err := s.Stream(t.Context(), c.nodes, more, yield); !errors.Is(err, store.ErrMissing) {
			t.Errorf("a task that has written nothing: %v", err)
		}
		if err := s.Drop(store.DropSpec{Job: "j", Before: emittedStep + 1, Keep: []uint32{emittedStep}}); err != nil ||
			s.Stream(t.Context(), c.nodes, st, yield) != nil {
			t.Errorf("a step that is kept is gone, %v", err)
		}
		if err := s.Drop(store.DropSpec{Job: "j", Before: emittedStep + 1}); err != nil || s.Stream(t.Context(), c.nodes, st,
			yield) == nil {
			t.Errorf("a dropped step is there, %v", err)
		}
		if left, err := os.ReadDir(dir); s.Close() != nil || err != nil || len(left) != 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

// TestWeightBufferWithoutRoom: the error names the folder, and comes again.
func TestWeightBufferWithoutRoom(t *testing.T) {
	e, _ := newEmitted(7, 60, 40000)
	dir := filepath.Join(t.TempDir(), "gone")
	to := sink{weights: NewWeightBuffer(dir)}
	var err error
	for task := uint32(0); err == nil && task < 20; task++ {
		key := store.Key{Job: "j", Step: emittedStep, Task: task, Attempt: 1, Name: program.WeightsName}
		err = to.Put(t.Context(), []store.Value{{Key: key, Data: e.value(int(task))}}, nil)
	}
	if !errors.Is(err, ErrWeightBuffer) || !program.IsDeterministic(err) || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// sameWeights is a store in which all tasks wrote the same.
type sameWeights []byte

func (s sameWeights) Put(context.Context, []store.Value) error {
	return errors.New("nothing is written")
}
func (s sameWeights) Get(_ context.Context, keys []store.Key) ([][]byte, error) {
	return slices.Repeat([][]byte{s}, len(keys)), nil
}

// TestStreamWeightsTwice: entries that two tasks have both written are an error.
func TestStreamWeightsTwice(t *testing.T) {
	s := sameWeights(program.EncodeWeights([]program.NodeWeights{{Node: 1, Columns: []uint32{7}, Values: []float32{1}}}))
	st := &taxonv1.JobStatus{Job: "j", FinalStep: 1, FinalAttempts: []uint32{1, 1}}
	err := StreamWeights(t.Context(), s, 2, st, "", func(int, []uint32, []float32) error { return nil })
	if !errors.Is(err, codec.ErrBroken) || !strings.Contains(err.Error(), "task 1: node 1, column 7") {
		t.Error(err)
	}
}

// TestStreamWeightsMemory: a result of 65 MB (of 1 GB by make test-store) takes what it says, which
// does not grow with it.
func TestStreamWeightsMemory(t *testing.T) {
	nodes, ranges, entries := 1000, 250, 150
	if os.Getenv("TAXON_TEST_MEMORY") != "" {
		nodes, entries = 10000, 230
	}
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	e, st := newEmitted(nodes, ranges, entries)
	before := e.sample()
	e.peak = before
	err := StreamWeights(t.Context(), e, nodes, st, t.TempDir(), func(int, []uint32, []float32) error {
		e.sample()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// What makes the values holds about two more of each, and a quarter is garbage.
	readers := weightReaders
	if e.largest > largeValue {
		readers = weightReaders / 2
	}
	bound := uint64(readers*e.largest)*6 + 2*spoolBytes*5/4 + uint64(4*nodes+128*len(st.FinalAttempts))
	t.Logf("%d MB of values, the largest %d KB: %d MB live at most, bound %d MB", e.all/1e6, e.largest/1000,
		(e.peak-before)/1e6, bound/1e6)
	if e.peak-before > bound || uint64(e.all) < bound {
		t.Errorf("%d MB are held for %d MB of values, the bound is %d", (e.peak-before)/1e6, e.all/1e6, bound/1e6)
	}
}
