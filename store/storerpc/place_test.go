package storerpc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"taxon/store"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("shard-%d", i)
	}
	return out
}

// placedKeys are keys as a job makes them: few differing bytes.
func placedKeys(n int) []store.Key {
	out := make([]store.Key, n)
	for i := range out {
		out[i] = store.Key{Job: "job-1", Step: uint32(i / 400), Task: uint32(i / 20 % 20), Attempt: 1,
			Name: fmt.Sprintf("v/%d", i%20)}
	}
	return out
}

// placedTasks are keys of as many tasks.
func placedTasks(n int) []store.Key {
	out := placedKeys(n)
	for i := range out {
		out[i].Step, out[i].Task = uint32(i/400), uint32(i%400)
	}
	return out
}

// TestPlacementIsFixed pins the hash: other results would lose stored values.
func TestPlacementIsFixed(t *testing.T) {
	p := newPlacement(names(5))
	var now, data string
	for _, k := range placedKeys(24) {
		k.Task, k.Name = k.Task*20+k.Step+uint32(len(now)), "v/1"
		now += fmt.Sprint(p.of(k))
		k.Job = "data-1"
		data += fmt.Sprint(p.of(k))
	}
	for what, c := range map[string][2]string{
		"of a task": {now, "334033132444134432402343"}, "of data": {data, "301012241133002440410223"},
	} {
		if c[0] != c[1] {
			t.Errorf("placement %s is %s, must be %s", what, c[0], c[1])
		}
	}
}

// TestPlacedTogether: what an attempt of a task writes lies on the same shards.
func TestPlacedTogether(t *testing.T) {
	p := newPlacement(names(7))
	for _, k := range placedKeys(200) {
		other := k
		other.Name = "dual"
		if a, b := p.rank(k, 3), p.rank(other, 3); a != b {
			t.Errorf("%s lies on %v, %s on %v", k, a, other, b)
		}
	}
}

func TestPlacementIgnoresOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted := names(rapid.IntRange(1, 9).Draw(t, "shards"))
		shuffled := rapid.Permutation(sorted).Draw(t, "order")
		a, b := newPlacement(sorted), newPlacement(shuffled)
		for _, k := range placedKeys(200) {
			if x, y := sorted[a.of(k)], shuffled[b.of(k)]; x != y {
				t.Fatalf("%s lies in %s or %s", k, x, y)
			}
		}
	})
}

// TestPlacementMoves: a shard that joins gets about its share, of all others alike,
// and nothing moves between the others.
func TestPlacementMoves(t *testing.T) {
	const count = 20000
	keys := placedTasks(count)
	for n := 1; n <= 8; n++ {
		before, after := newPlacement(names(n)), newPlacement(names(n+1))
		moved := 0
		share := make([]int, n+1)
		for _, k := range keys {
			a, b := before.of(k), after.of(k)
			share[b]++
			if a == b {
				continue
			}
			moved++
			if b != n {
				t.Fatalf("%s moves from %d to %d, both old", k, a, b)
			}
		}
		mean := float64(count) / float64(n+1)
		// Five standard deviations of a binomial count.
		slack := 5 * math.Sqrt(mean*(1-1/float64(n+1)))
		if math.Abs(float64(moved)-mean) > slack {
			t.Errorf("%d shards: %d keys move to a further one, must be %.0f ± %.0f", n, moved, mean, slack)
		}
		for i, s := range share {
			if math.Abs(float64(s)-mean) > slack {
				t.Errorf("%d shards: shard %d holds %d keys, must be %.0f ± %.0f", n+1, i, s, mean, slack)
			}
		}
	}
}

// FuzzAssembler feeds chunks of any sizes: it must give the bytes or refuse.
func FuzzAssembler(f *testing.F) {
	f.Add(uint64(10), []byte{5, 5})
	f.Add(uint64(0), []byte{0})
	f.Add(uint64(1<<60), []byte{200})
	f.Fuzz(func(t *testing.T, size uint64, cuts []byte) {
		var a assembler
		total := 0
		for _, n := range cuts {
			chunk := make([]byte, n)
			for i := range chunk {
				chunk[i] = byte(total + i)
			}
			if a.add(chunk, size) != nil {
				return
			}
			total += len(chunk)
		}
		got, err := a.finish()
		if err != nil {
			return
		}
		if uint64(len(got)) != size && len(cuts) > 0 || len(got) != total {
			t.Fatalf("%d bytes of %d sent, %d announced", len(got), total, size)
		}
		for i, b := range got {
			if b != byte(i) {
				t.Fatalf("byte %d is %d", i, b)
			}
		}
	})
}

func TestPackerBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var got []byte
	p := packer[[]byte]{chunkBytes: messageBytes, send: func(chunks [][]byte) error {
		n := 0
		for _, c := range chunks {
			n += len(c)
			got = append(got, c...)
		}
		if n > messageBytes || len(chunks) > messageChunks || len(chunks) == 0 {
			t.Errorf("message of %d chunks, %d bytes", len(chunks), n)
		}
		return nil
	}}
	var want []byte
	for range 3000 {
		data := make([]byte, r.IntN(1+1<<r.IntN(15)))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		want = append(want, data...)
		if err := p.value(data, func(part []byte, _, _ bool) []byte { return part }); err != nil {
			t.Fatal(err)
		}
	}
	big := make([]byte, 3*messageBytes+1)
	want = append(want, big...)
	if err := p.value(big, func(part []byte, _, _ bool) []byte { return part }); err != nil {
		t.Fatal(err)
	}
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%d bytes arrive of %d", len(got), len(want))
	}
}
