package measure

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestSignTestByHand: 9 against 1: 2 (1 + 10)/2^10 = 22/1024; 3 against 3: twice the lower
// half is above 1; 0 against 5: 2/32.
func TestSignTestByHand(t *testing.T) {
	for _, c := range []struct {
		plus, minus int64
		p           float64
	}{{9, 1, 22. / 1024}, {1, 9, 22. / 1024}, {3, 3, 1}, {0, 0, 1}, {0, 5, 2. / 32}, {1, 0, 1}, {5, 4, 1},
		{4, 2, 2 * 22. / 64}} {
		got := NewSignTest(c.plus, c.minus)
		if !same(got.P, c.p) || got.Plus != c.plus || got.Minus != c.minus {
			t.Errorf("%d against %d: %+v, want p %g", c.plus, c.minus, got, c.p)
		}
	}
}

// TestSignTestAgainstIntegers sums the binomial tail in exact arithmetic.
func TestSignTestAgainstIntegers(t *testing.T) {
	for _, c := range [][2]int64{{550, 450}, {2000, 1800}, {700, 20}, {501, 500}, {30, 12}} {
		n, k := c[0]+c[1], c[1]
		sum := new(big.Int)
		for j := int64(0); j <= k; j++ {
			sum.Add(sum, new(big.Int).Binomial(n, j))
		}
		tail := new(big.Rat).SetFrac(sum.Lsh(sum, 1), new(big.Int).Lsh(big.NewInt(1), uint(n)))
		want, _ := tail.Float64()
		want = min(want, 1)
		if got := NewSignTest(c[0], c[1]).P; math.Abs(got-want) > 1e-9*want {
			t.Errorf("%v: p %g, want %g", c, got, want)
		}
	}
	if p := NewSignTest(2_000_000, 0).P; p != 0 { // below the smallest float64
		t.Errorf("p %g", p)
	}
}

// TestWilcoxonByHand. Darwin's maize (Wilcoxon's own kind of example, in the manuals of
// statistics packages): differences 6 8 14 16 23 24 28 29 41 -48 49 56 60 -67 75; the negative
// ones have ranks 10 and 14: statistic 24, exact p = 1352/32768.
func TestWilcoxonByHand(t *testing.T) {
	cases := []struct {
		name         string
		diffs        []float64
		statistic, p float64
	}{
		{"maize", []float64{6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}, 24, 1352. / 32768},
		// ranks 1..5, none negative: 2/2^5
		{"all one way", []float64{.1, .2, .3, .4, .5}, 0, 2. / 32},
		// |d| 1 1 2: ranks 1.5 1.5 3; negative 1.5. Sums <= 1.5 of the 8 subsets: {}, two of 1.5: 3/8
		{"ties", []float64{1, -1, 2}, 1.5, 6. / 8},
		{"zeros are dropped", []float64{0, .1, .2, 0, .3, .4, .5, 0}, 0, 2. / 32},
		{"nothing differs", []float64{0, 0}, 0, 1},
		{"nothing at all", nil, 0, 1},
		{"balanced", []float64{1, -1}, 1.5, 1},
	}
	for _, c := range cases {
		got := NewWilcoxon(c.diffs, make([]float64, len(c.diffs)))
		if got.Statistic != c.statistic || math.Abs(got.P-c.p) > 1e-12 {
			t.Errorf("%s: %+v, want %g and %g", c.name, got, c.statistic, c.p)
		}
	}
}

// TestWilcoxonRounding: 0.3-0.2 and 0.2-0.1 differ in the last bit and are a tie all the same.
func TestWilcoxonRounding(t *testing.T) {
	got := NewWilcoxon([]float64{.3, .1, .9}, []float64{.2, .2, .1})
	if got.Statistic != 1.5 {
		t.Errorf("%+v", got)
	}
}

// TestWilcoxonNormal. 60 differences of 1..60 by size, 20..29 negative: statistic 245;
// mean 60*61/4 = 915, variance 60*61*121/24 = 18452.5, z = -670/135.84 = -4.9323.
// With 60 equal differences, 20 negative: ranks 30.5, statistic 610; variance
// 18452.5 - (60^3-60)/48 = 13953.75, z = -305/118.126 = -2.5820.
func TestWilcoxonNormal(t *testing.T) {
	zero, distinct, equal := make([]float64, 60), make([]float64, 60), make([]float64, 60)
	for i := range 60 {
		distinct[i], equal[i] = float64(i+1), 1
		if i+1 >= 20 && i+1 < 30 {
			distinct[i] = -distinct[i]
		}
		if i < 20 {
			equal[i] = -1
		}
	}
	for _, c := range []struct {
		diffs        []float64
		statistic, z float64
	}{{distinct, 245, 670 / math.Sqrt(18452.5)}, {equal, 610, 305 / math.Sqrt(13953.75)}} {
		got := NewWilcoxon(c.diffs, zero)
		if want := math.Erfc(c.z / math.Sqrt2); got.Statistic != c.statistic || math.Abs(got.P-want) > 1e-12 {
			t.Errorf("%+v, want %g and %g", got, c.statistic, want)
		}
	}
}

// TestWilcoxonChoosesItsTail: 40 differences are enumerated if they are all different and
// approximated if two are equal; 25 are enumerated anyway.
func TestWilcoxonChoosesItsTail(t *testing.T) {
	for _, c := range []struct {
		n     int
		tie   bool
		exact bool
	}{{40, false, true}, {40, true, false}, {50, false, true}, {51, false, false}, {25, true, true}, {26, true, false}} {
		diffs := make([]float64, c.n)
		for i := range diffs {
			diffs[i] = float64(i + 1)
			if i%3 == 0 {
				diffs[i] = -diffs[i]
			}
		}
		if c.tie {
			diffs[2] = diffs[1]
		}
		got := NewWilcoxon(diffs, make([]float64, c.n))
		ranks, ties := doubledRanks(diffs)
		want := normalTail(got.Statistic, float64(c.n), ties)
		if exact := exactTail(ranks, c.n*(c.n+1), int(2*got.Statistic)); c.exact {
			want = exact
		} else if math.Abs(exact-want) > .03*exact {
			t.Errorf("n = %d: approximation %g is far from %g", c.n, want, exact)
		}
		if got.P != want {
			t.Errorf("n = %d, tie %v: p %g, want %g", c.n, c.tie, got.P, want)
		}
	}
}

// TestWilcoxonAgainstEnumeration tries every assignment of signs.
func TestWilcoxonAgainstEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.IntRange(-6, 6).Filter(func(v int) bool { return v != 0 }), 1, 10).Draw(t, "d")
		a := make([]float64, len(d))
		for i, v := range d {
			a[i] = float64(v) / 7
		}
		got := NewWilcoxon(a, make([]float64, len(a)))
		rank := func(i int) float64 { // mean rank of |d_i|
			below, equal := 0, 0
			for _, v := range d {
				switch abs := max(v, -v); {
				case abs < max(d[i], -d[i]):
					below++
				case abs == max(d[i], -d[i]):
					equal++
				}
			}
			return float64(below) + float64(equal+1)/2
		}
		smaller := func(sign func(i int) bool) float64 {
			plus, minus := 0.0, 0.0
			for i := range d {
				if sign(i) {
					plus += rank(i)
				} else {
					minus += rank(i)
				}
			}
			return min(plus, minus)
		}
		observed := smaller(func(i int) bool { return d[i] > 0 })
		extreme := 0
		for s := range 1 << len(d) {
			if smaller(func(i int) bool { return s>>i&1 == 1 }) <= observed {
				extreme++
			}
		}
		want := float64(extreme) / float64(int(1)<<len(d))
		if got.Statistic != observed || math.Abs(got.P-want) > 1e-12 {
			t.Fatalf("%v: %+v, want %g and %g", d, got, observed, want)
		}
	})
}

// TestComparisonByHand. Truth, first, second:
//
//	a    a    b     a: first right; b: first right      +2
//	b    c    b     c: second right; b: second right    -2
//	c    c    c     the same
//	a b  a    a b   b: second right                     -1
//	-    -    a     first right                         +1
//	-    -    b     first right                         +1
//
// 4 against 3. F1 over a, b, c: first a 4/4 = 1, b 0/2 = 0, c 2/3; second a 2/(2+1+1) = 1/2,
// b 4/(4+2) = 2/3, c 1. Differences 1/2, -2/3, -1/3: ranks 2, 3, 1: statistic 2, and of the
// 8 subsets {}, {1}, {2} sum to at most 2: p = 6/8.
func TestComparisonByHand(t *testing.T) {
	c, err := NewComparison(Options{Classes: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	const a, b, cc = 0, 1, 2
	add := func(truth, first, second []int32) {
		c.Add(truth, Output{Predicted: first}, Output{Predicted: second})
	}
	add([]int32{a}, []int32{a}, []int32{b})
	add([]int32{b}, []int32{cc, cc}, []int32{b})
	add([]int32{cc}, []int32{cc}, []int32{cc})
	add([]int32{a, b}, []int32{a}, []int32{a, b})
	add(nil, nil, []int32{a})
	add(nil, nil, []int32{b})
	r := c.Result()
	if r.SignTest.Plus != 4 || r.SignTest.Minus != 3 || !same(r.SignTest.P, 1) {
		t.Errorf("sign test %+v", r.SignTest)
	}
	if r.Wilcoxon.Statistic != 2 || math.Abs(r.Wilcoxon.P-6./8) > 1e-12 {
		t.Errorf("wilcoxon %+v", r.Wilcoxon)
	}
	check(t, []figure{{"first", r.MacroF1, 5. / 9}, {"second", r.Other.MacroF1, 13. / 18}})
}
