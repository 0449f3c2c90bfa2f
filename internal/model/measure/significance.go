package measure

import (
	"math"
	"slices"
)

// SignTest is the two-sided sign test over (instance, class) decisions.
type SignTest struct {
	// Plus counts the decisions that only the first model got right.
	Plus int64 `json:"n_plus"`
	// Minus counts the decisions that only the second model got right.
	Minus int64   `json:"n_minus"`
	P     float64 `json:"p"`
}

// NewSignTest computes p = min(1, 2 P(X <= min(plus, minus))) for X ~ Binomial(plus+minus, 1/2),
// exactly for any size, with terms summed from the largest down. Without decisions p = 1.
func NewSignTest(plus, minus int64) SignTest {
	n, k := float64(plus+minus), float64(min(plus, minus))
	t := SignTest{Plus: plus, Minus: minus, P: 1}
	if 2*k >= n {
		return t
	}
	sum, term := 0.0, 1.0 // in units of the term of k
	for j := k; term > 1e-18*sum; j-- {
		sum += term
		term *= j / (n - j + 1) // 0 after j = 0
	}
	t.P = min(1, 2*sum*halfBinomial(n, k))
	return t
}

// halfBinomial returns (n over k) / 2^n. It computes a product while that fits into a float64,
// which keeps small cases exact, and otherwise uses logarithms.
func halfBinomial(n, k float64) float64 {
	if n <= 1000 {
		choose := 1.0
		for i := 1.0; i <= k; i++ {
			choose = choose * (n - k + i) / i
		}
		return math.Ldexp(choose, -int(n))
	}
	lg := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	return math.Exp(lg(n) - lg(k) - lg(n-k) - float64(n*math.Ln2))
}

// Wilcoxon is the two-sided signed-rank test over paired scores.
type Wilcoxon struct {
	// Statistic is the smaller of the two rank sums.
	Statistic float64 `json:"statistic"`
	P         float64 `json:"p"`
}

// Up to these sizes the null distribution is enumerated, as in tables and in other statistics
// packages. Beyond them the error of the normal approximation is about 1 % of p.
const (
	exactWithTies    = 25
	exactWithoutTies = 50
)

// NewWilcoxon tests whether a and b, which have equal lengths, differ. Zero differences are
// dropped, and equal ones share their mean rank. Differences closer than 1e-12 count as equal, so
// that rounding does not create ranks. Small samples are tested exactly, conditional on the ties;
// others by the normal approximation with the variance corrected for ties, without continuity
// correction. p = 1 if nothing differs.
func NewWilcoxon(a, b []float64) Wilcoxon {
	var diffs []float64 // in units of 1e-12, rounded
	for i := range a {
		if d := math.Round((a[i] - b[i]) * 1e12); d != 0 {
			diffs = append(diffs, d)
		}
	}
	slices.SortFunc(diffs, func(x, y float64) int {
		switch ax, ay := math.Abs(x), math.Abs(y); {
		case ax < ay:
			return -1
		case ax > ay:
			return 1
		}
		return 0
	})
	ranks, ties := doubledRanks(diffs)
	plus, total := 0, 0
	for i, r := range ranks {
		total += r
		if diffs[i] > 0 {
			plus += r
		}
	}
	smaller := min(plus, total-plus)
	w := Wilcoxon{Statistic: float64(smaller) / 2, P: 1}
	n := len(ranks)
	switch {
	case n == 0:
	case n <= exactWithTies || (n <= exactWithoutTies && ties == 0):
		w.P = exactTail(ranks, total, smaller)
	default:
		w.P = normalTail(w.Statistic, float64(n), ties)
	}
	return w
}

// doubledRanks returns twice the mean rank of each difference, sorted by size, and the sum of t^3 -
// t over groups of t equal ones.
func doubledRanks(sorted []float64) (ranks []int, ties float64) {
	ranks = make([]int, len(sorted))
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && math.Abs(sorted[j]) == math.Abs(sorted[i]) {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + 1 + j // ranks i+1 to j, mean (i+1+j)/2
		}
		t := float64(j - i)
		ties += float64(t*t*t) - t
		i = j
	}
	return ranks, ties
}

// exactTail returns min(1, 2 P(S <= s)), where S includes each rank with probability 1/2.
func exactTail(ranks []int, total, s int) float64 {
	prob := make([]float64, total+1)
	prob[0] = 1
	top := 0
	for _, r := range ranks {
		top += r
		for v := top; v >= 0; v-- {
			p := prob[v] / 2
			if v >= r {
				p += prob[v-r] / 2
			}
			prob[v] = p
		}
	}
	sum := 0.0
	for _, p := range prob[:s+1] {
		sum += p
	}
	return min(1, 2*sum)
}

// normalTail returns the two-sided tail probability of the normal approximation.
func normalTail(statistic, n, ties float64) float64 {
	mu := n * (n + 1) / 4
	variance := n*(n+1)*(2*n+1)/24 - ties/48
	return math.Erfc(math.Abs(statistic-mu) / math.Sqrt(2*variance))
}
