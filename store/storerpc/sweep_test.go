package storerpc_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"taxon/store"
	"taxon/store/memory"
)

// BenchmarkSweep moves what a sweep of a job moves: 60 tasks put 60 values each, of 300 B
// to 20 KB, and 60 tasks get one of each; then the step before is dropped.
func BenchmarkSweep(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) store.Store
	}{
		{"direct", func(b *testing.B) store.Store { return memory.New(memory.Options{}) }},
		{"embedded", func(b *testing.B) store.Store { return newEmbedded(b, 1) }},
		{"embedded, 2 shards", func(b *testing.B) store.Store { return newEmbedded(b, 2) }},
		{"bufconn", func(b *testing.B) store.Store { return newCluster(b, 1) }},
	} {
		b.Run(c.name, func(b *testing.B) { sweeps(b, c.open(b)) })
	}
}

func sweeps(b *testing.B, s store.Store) {
	const tasks = 60
	r := rand.New(rand.NewPCG(1, 2))
	data := make([][]byte, tasks*tasks)
	names := make([]string, tasks)
	total := 0
	for i := range data {
		data[i] = make([]byte, 300+r.IntN(20_000-300))
		total += len(data[i])
		names[i%tasks] = fmt.Sprintf("v/%d", i%tasks)
	}
	values, keys := make([]store.Value, tasks), make([]store.Key, tasks)
	b.SetBytes(int64(total))
	b.ReportAllocs()
	step := uint32(0)
	for b.Loop() {
		step++
		key := func(task, to int) store.Key {
			return store.Key{Job: "job-1", Step: step, Task: uint32(task), Attempt: 1, Name: names[to]}
		}
		for task := range tasks {
			for to := range tasks {
				values[to] = store.Value{Key: key(task, to), Data: data[task*tasks+to]}
			}
			if err := s.Put(b.Context(), values); err != nil {
				b.Fatal(err)
			}
		}
		for to := range tasks {
			for task := range tasks {
				keys[task] = key(task, to)
			}
			if _, err := s.Get(b.Context(), keys); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Drop(b.Context(), store.DropSpec{Job: "job-1", Before: step}); err != nil {
			b.Fatal(err)
		}
	}
}
