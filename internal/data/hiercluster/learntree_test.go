package hiercluster

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
)

// sample generates rows of classes that lie around centres. Classes of the same kin have centres
// near each other.
func sample(seed uint64, kin, perKin, rows, cols int) *Data {
	random := rand.New(rand.NewPCG(seed, 1))
	var index [][]uint32
	var value [][]float32
	d := &Data{Begin: make([]uint64, 1)}
	for k := range kin {
		for c := range perKin {
			for range 1 + random.IntN(rows) {
				var at []uint32
				var x []float32
				for f := range cols {
					v := float32(random.NormFloat64() / 8)
					if f%kin == k {
						v++
					}
					if f%(kin*perKin) == k+kin*c {
						v++
					}
					if random.IntN(3) > 0 {
						at, x = append(at, uint32(f)), append(x, v)
					}
				}
				d.Of = append(d.Of, uint32(len(index)))
				index, value = append(index, at), append(value, x)
				d.Weight = append(d.Weight, 0.5+random.Float64())
			}
			d.Begin = append(d.Begin, uint64(len(d.Of)))
		}
	}
	d.Rows = sparse.FromRows(cols, index, value)
	return d
}

// twin computes the same tree with dense vectors and one thread. It returns the families, which are
// the sets of classes with a common parent, in order.
func twin(d *Data, families int, seed uint64) [][]int32 {
	mean := make([][]float64, len(d.Begin)-1)
	var all []int32
	for c := range mean {
		mean[c] = make([]float64, d.Rows.Cols)
		for _, r := range d.Of[d.Begin[c]:d.Begin[c+1]] {
			index, value := d.Rows.Row(int(r))
			length := 0.0
			for _, x := range value {
				length += float64(x) * float64(x)
			}
			for i, f := range index {
				mean[c][f] += float64(value[i]) * (d.Weight[r] / math.Sqrt(length))
			}
		}
		length := 0.0
		for _, x := range mean[c] {
			length += x * x
		}
		for f := range mean[c] {
			mean[c][f] = float64(float32(mean[c][f] / math.Sqrt(length)))
		}
		all = append(all, int32(c))
	}
	var out [][]int32
	var grow func(classes []int32, families int, place uint64)
	grow = func(classes []int32, families int, place uint64) {
		if families == 1 {
			out = append(out, classes)
			return
		}
		left := (families + 1) / 2
		n := len(classes) * left / families
		random := rand.New(rand.NewPCG(seed, place))
		i, j := random.IntN(len(classes)), random.IntN(len(classes)-1)
		if j >= i {
			j++
		}
		one, other := []int32{classes[i]}, []int32{classes[j]}
		for range rounds {
			score := map[int32]float64{}
			difference := make([]float64, d.Rows.Cols)
			for _, c := range one {
				for f, x := range mean[c] {
					difference[f] += x * (1 / float64(len(one)))
				}
			}
			for _, c := range other {
				for f, x := range mean[c] {
					difference[f] -= x * (1 / float64(len(other)))
				}
			}
			for _, c := range classes {
				for f, x := range mean[c] {
					score[c] += difference[f] * x
				}
			}
			sorted := slices.Clone(classes)
			slices.SortStableFunc(sorted, func(a, b int32) int {
				if score[a] > score[b] {
					return -1
				}
				if score[a] < score[b] {
					return 1
				}
				return 0
			})
			was := one
			one, other = slices.Sorted(slices.Values(sorted[:n])), slices.Sorted(slices.Values(sorted[n:]))
			if slices.Equal(one, was) {
				break
			}
		}
		grow(one, left, 2*place)
		grow(other, families-left, 2*place+1)
	}
	grow(all, families, 1)
	return out
}

// families returns the sets of a tree's classes with a common parent, in the parents' order.
func families(t *Tree) (out [][]int32) {
	of := make([][]int32, len(t.Parent))
	for c := range t.Classes {
		of[t.Parent[c]] = append(of[t.Parent[c]], int32(c))
	}
	for _, classes := range of {
		if len(classes) > 0 {
			out = append(out, classes)
		}
	}
	return out
}

func learned(t *testing.T, d *Data, o Options) *Tree {
	t.Helper()
	tree, err := Learn(context.Background(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestAgainstTwin(t *testing.T) {
	for seed := range uint64(20) {
		d := sample(seed, 2+int(seed%4), 5+int(seed%7), 4, 40)
		n := 1 + int(seed)%(len(d.Begin)-1)
		want := twin(d, n, seed)
		for _, threads := range []int{1, 4} {
			if got := families(learned(t, d, Options{Families: n, Seed: seed, Threads: threads})); !slices.EqualFunc(got, want,
				slices.Equal[[]int32]) {
				t.Fatalf("seed %d, %d families, %d threads: %v, not %v", seed, n, threads, got, want)
			}
		}
	}
}

// TestFindsKin checks that the families from which the data were generated are found.
func TestFindsKin(t *testing.T) {
	d := sample(3, 4, 8, 6, 64)
	for f, classes := range families(learned(t, d, Options{Families: 4})) {
		if len(classes) != 8 || classes[0]%8 != 0 || classes[7] != classes[0]+7 {
			t.Errorf("family %d: %v", f, classes)
		}
	}
}

// TestShape checks that each class has a parent and each internal node children, that families have
// equal size, that no internal node has more than four internal children, and that the order is
// that of a depth-first walk.
func TestShape(t *testing.T) {
	d := sample(1, 5, 80, 2, 60)
	d.Begin = append(d.Begin, d.Begin[len(d.Begin)-1]) // a class without an instance
	for _, n := range []int{0, 1, 2, 3, 7, 400} {
		tree := learned(t, d, Options{Families: n, Threads: 2})
		if tree.Parent[400] != 401 {
			t.Errorf("%d families: the empty class is below %d", n, tree.Parent[400])
		}
		inner := make([]int, len(tree.Parent))
		classes := make([]int, len(tree.Parent))
		for v, p := range tree.Parent {
			switch {
			case v == tree.Classes:
				if p != -1 {
					t.Fatalf("the root is below %d", p)
				}
			case p < int32(tree.Classes) || v > tree.Classes && p >= int32(v):
				t.Fatalf("%d families: node %d is below %d", n, v, p)
			case v < tree.Classes-1:
				classes[p]++
			case v > tree.Classes:
				inner[p]++
			}
		}
		found := 0
		for v := tree.Classes; v < len(tree.Parent); v++ {
			if classes[v] > 0 {
				found++
			}
			if inner[v] > 4 || inner[v] > 0 && classes[v] > 0 || inner[v]+classes[v] == 0 {
				t.Errorf("%d families: node %d has %d inner nodes and %d classes", n, v, inner[v], classes[v])
			}
			if want := max(n, 1); n > 0 && classes[v] > 0 && (classes[v] < 400/want || classes[v] > 400/want+2) {
				t.Errorf("%d families: one of %d classes", n, classes[v])
			}
		}
		if want := map[bool]int{true: 25, false: n}[n == 0]; found != want {
			t.Errorf("%d families, not %d", found, want)
		}
		met := map[int32]bool{-1: true}
		for _, v := range tree.Order() {
			if met[v] || !met[tree.Parent[v]] {
				t.Fatalf("node %d comes before its parent, or twice", v)
			}
			met[v] = true
		}
		if len(met) != len(tree.Parent)+1 {
			t.Errorf("the order has %d of %d nodes", len(met)-1, len(tree.Parent))
		}
	}
}

// TestKeepsTheLargest checks that a truncated mean keeps its largest entries and length 1.
func TestKeepsTheLargest(t *testing.T) {
	d := sample(5, 1, 1, 9, 30)
	sum := make([]float64, 30)
	all, whole := d.centroid(0, sum, 30)
	kept, value := d.centroid(0, sum, 7)
	least := math.Inf(1)
	square, ratio := 0.0, 0.0
	for i, f := range kept {
		at := slices.Index(all, f)
		least = min(least, math.Abs(float64(whole[at])))
		square += float64(value[i]) * float64(value[i])
		ratio = float64(value[i] / whole[at])
	}
	if len(kept) != 7 || math.Abs(square-1) > 1e-6 || !(ratio > 1) || !slices.IsSorted(kept) {
		t.Fatalf("kept %v, length %g", kept, square)
	}
	for i, f := range all {
		if !slices.Contains(kept, f) && math.Abs(float64(whole[i])) > least {
			t.Errorf("column %d has %g and is left out, %g is kept", f, whole[i], least)
		}
	}
}

func TestEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Learn(ctx, sample(1, 2, 4, 2, 10), Options{}); err == nil {
		t.Error("it went on")
	}
}

func BenchmarkLearn(b *testing.B) {
	d := sample(1, 50, 20, 4, 200)
	for b.Loop() {
		if _, err := Learn(context.Background(), d, Options{Threads: 2}); err != nil {
			b.Fatal(err)
		}
	}
}
