package tune

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// of makes the jackknife of a mean over rows with these values, in groups by index.
func of(rows []float64) *Jackknife {
	j := &Jackknife{}
	for i := range j {
		n := 0
		for r, x := range rows {
			if i == 0 || r%Groups != i-1 {
				j[i] += x
				n++
			}
		}
		j[i] /= float64(n)
	}
	return j
}

func TestGroup(t *testing.T) {
	g := Group(107, 1)
	counts := make([]int, Groups)
	for _, x := range g {
		counts[x]++
	}
	if slices.Max(counts)-slices.Min(counts) != 1 || slices.Equal(g, Group(107, 2)) || !slices.Equal(g, Group(107, 1)) {
		t.Errorf("groups of %v", counts)
	}
}

// TestJackknifeError: for a mean with one row a group it is the textbook's s / sqrt(n).
func TestJackknifeError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]float64, Groups)
	mean, square := 0.0, 0.0
	for i := range rows {
		rows[i] = r.NormFloat64()
		mean += rows[i] / Groups
	}
	for _, x := range rows {
		square += (x - mean) * (x - mean)
	}
	want := math.Sqrt(square / (Groups - 1) / Groups)
	if got := of(rows).error(); math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestOut: what counts is the difference on the same rows. Values that vary by 1 from row
// to row, the second always 0.1 lower with a little noise: 3 errors apart, although each of
// them has an error of 0.1.
func TestOut(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	a, b, c := make([]float64, 100), make([]float64, 100), make([]float64, 100)
	for i := range a {
		a[i] = r.NormFloat64()
		b[i] = a[i] - 0.1 + 0.1*r.NormFloat64()
		c[i] = r.NormFloat64() - 0.1
	}
	x, y, z := of(a), of(b), of(c)
	neg := func(j *Jackknife) *Jackknife {
		out := *j
		for i := range out {
			out[i] = -out[i]
		}
		return &out
	}
	for _, k := range []struct {
		name        string
		best, point *Jackknife
		oneSE, want bool
	}{
		{"lower throughout", x, y, false, true},
		{"lower by chance", x, z, false, false},
		{"within the best one's error", x, y, true, false},
		{"itself", x, x, false, false},
		{"better", y, x, false, false},
	} {
		if got := Out(k.best, k.point, DropStdErrs, false, k.oneSE); got != k.want {
			t.Errorf("%s: out %v", k.name, got)
		}
		if got := Out(neg(k.best), neg(k.point), DropStdErrs, true, k.oneSE); got != k.want {
			t.Errorf("%s, lower is better: out %v", k.name, got)
		}
	}
	if Leader(nil, false) != -1 || Leader([]*Jackknife{y, x, x}, false) != 1 || Leader([]*Jackknife{y, x, z}, true) == 1 {
		t.Error("leader")
	}
}

func TestPast(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	at := func(level float64) *Jackknife {
		rows := make([]float64, 100)
		for i := range rows {
			rows[i] = level + 0.01*r.NormFloat64()
		}
		return of(rows)
	}
	path := []*Jackknife{at(0.2), at(0.7), at(0.7), at(0.6), at(0.5)}
	for n := range len(path) + 1 {
		if got := Past(path[:n], 2, false, false); got != (n == len(path)) {
			t.Errorf("past the best after %d points: %v", n, got)
		}
	}
	if Past(path, 0, false, false) {
		t.Error("patience 0 never ends a path")
	}
	if Past([]*Jackknife{at(0.2), at(0.2), at(0.2)}, 2, false, false) {
		t.Error("a plateau is no end")
	}
}

// TestLimit: the chance that a point which leads over all folds lies that far behind on a part
// of them is the same whatever the part: of differences that are equal in distribution from fold to
// fold and sum to zero over all, those of r of k folds have a share (1 - r/k) of the variance.
func TestLimit(t *testing.T) {
	if Limit(1, 5) != DropStdErrs || Limit(5, 5) != 0 || math.Abs(Limit(4, 5)-DropStdErrs/2.0) > 1e-12 {
		t.Errorf("limits %v, %v, %v", Limit(1, 5), Limit(4, 5), Limit(5, 5))
	}
	rng := rand.New(rand.NewPCG(3, 1))
	const folds, times = 5, 200000
	out := [folds]int{}
	for range times {
		var d [folds]float64
		mean := 0.0
		for f := range d {
			d[f] = rng.NormFloat64()
			mean += d[f] / folds
		}
		sum := 0.0
		for f := range folds - 1 {
			sum += d[f] - mean
			if sum > Limit(f+1, folds)*math.Sqrt(float64(f+1)) { // the standard error of a sum of f+1 folds
				out[f+1]++
			}
		}
	}
	for f := 1; f < folds; f++ {
		// 1 - Phi(3.35) = 0.04 %; Student's t of 19 degrees has 0.17 %
		if share := float64(out[f]) / times; share > 8e-4 || share < 1e-4 {
			t.Errorf("after %d folds: %.5f", f, share)
		}
	}
}
