package labelset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// csr lays out rows of labels.
func csr(rows [][]uint32) (begin []uint64, index []uint32) {
	begin = []uint64{0}
	for _, r := range rows {
		index = append(index, r...)
		begin = append(begin, uint64(len(index)))
	}
	return begin, index
}

// TestFoldsSingle: with a label a row, folds differ by one row at most in every label, and
// all together by no more than the labels' remainders allow.
func TestFoldsSingle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels, k := rapid.IntRange(1, 8).Draw(t, "labels"), rapid.IntRange(2, 6).Draw(t, "folds")
		var rows [][]uint32
		for _, l := range rapid.SliceOfN(rapid.IntRange(-1, labels-1), 0, 80).Draw(t, "rows") {
			if l < 0 {
				rows = append(rows, nil)
			} else {
				rows = append(rows, []uint32{uint32(l)})
			}
		}
		begin, index := csr(rows)
		fold := Folds(begin, index, labels, k, rapid.Uint64().Draw(t, "seed"))
		counts := make([][]int, labels)
		for l := range counts {
			counts[l] = make([]int, k)
		}
		sizes := make([]int, k)
		for r, f := range fold {
			sizes[f]++
			for _, l := range rows[r] {
				counts[l][f]++
			}
		}
		for l, c := range counts {
			if slices.Max(c)-slices.Min(c) > 1 {
				t.Fatalf("label %d: %v rows a fold", l, c)
			}
		}
		if slices.Max(sizes)-slices.Min(sizes) > 2 {
			t.Fatalf("sizes %v", sizes)
		}
	})
}

// TestFoldsMulti: labels of rows with several are spread far more evenly than by chance.
func TestFoldsMulti(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const labels, k = 30, 5
	rows := make([][]uint32, 600)
	for i := range rows {
		for range 1 + r.IntN(4) {
			rows[i] = append(rows[i], uint32(min(r.IntN(labels), r.IntN(labels))))
		}
		slices.Sort(rows[i])
		rows[i] = slices.Compact(rows[i])
	}
	begin, index := csr(rows)
	unevenness := func(fold []int) float64 {
		counts := make([][]float64, labels)
		for l := range counts {
			counts[l] = make([]float64, k)
		}
		for i, f := range fold {
			for _, l := range rows[i] {
				counts[l][f]++
			}
		}
		sum := 0.0
		for _, c := range counts {
			sum += slices.Max(c) - slices.Min(c)
		}
		return sum
	}
	chance := make([]int, len(rows))
	for i := range chance {
		chance[i] = i % k
	}
	fold := Folds(begin, index, labels, k, 3)
	if a, b := unevenness(fold), unevenness(chance); a > b/3 {
		t.Errorf("unevenness %v, of folds that look at no label %v", a, b)
	}
	if !slices.Equal(fold, Folds(begin, index, labels, k, 3)) || slices.Equal(fold, Folds(begin, index, labels, k, 4)) {
		t.Error("folds must depend on the seed, and on nothing else")
	}
}

func TestSplit(t *testing.T) {
	train, held := Split([]int{0, 1, 2, 1}, 1)
	if !slices.Equal(train, []uint32{0, 2}) || !slices.Equal(held, []uint32{1, 3}) {
		t.Error(train, held)
	}
}
