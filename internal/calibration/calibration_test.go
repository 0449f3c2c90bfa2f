package calibration

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn is a sample whose labels come from q of c.
func drawn(c *Calibration, rows, classes int) *Sample {
	r := rand.New(rand.NewPCG(1, 2))
	s := &Sample{Classes: classes}
	for range rows {
		scores, p := make([]float64, classes), make([]float64, classes)
		for k := range scores {
			scores[k] = r.NormFloat64()
		}
		copy(p, scores)
		c.Row(p)
		var truth []int32
		u := r.Float64()
		for k := range p {
			switch {
			case c.Joint && u >= 0 && u < p[k]:
				truth, u = append(truth, int32(k)), -1
			case c.Joint:
				u -= p[k]
			case r.Float64() < p[k]:
				truth = append(truth, int32(k))
			}
		}
		s.Add(scores, truth, 1+float64(len(s.Truth)%2))
	}
	return s
}

// TestFit: the temperature that labels were drawn by is found; no near one has a lower log-loss, by which the
// twin of the derivative is the loss itself; isotonic regression loses nothing against it.
func TestFit(t *testing.T) {
	for _, of := range []*Calibration{{Kind: Temperature, Joint: true, Slope: 2.5}, {Kind: Temperature, Slope: 1.7, Offset: -2}} {
		s := drawn(of, 4000, 7)
		c, err := Fit(s, Temperature, of.Joint)
		if err != nil || math.Abs(c.Slope/of.Slope-1) > 0.08 || math.Abs(c.Offset-of.Offset) > 0.15 {
			t.Fatalf("%+v from %+v: %v", c, of, err)
		}
		for _, by := range []float64{-1e-3, 1e-3} {
			other := *c
			other.Slope += by
			shifted := *c
			shifted.Offset += by
			if s.loss(&other) <= c.HeldOut.LogLoss || !of.Joint && s.loss(&shifted) <= c.HeldOut.LogLoss {
				t.Errorf("joint %v: %g beside %+v has less loss", of.Joint, by, c)
			}
		}
		g, err := Fit(s, Isotonic, of.Joint)
		if err != nil || g.HeldOut.LogLoss > c.HeldOut.LogLoss+1e-3 {
			t.Errorf("isotonic: %v, %+v against %+v", err, g.HeldOut, c.HeldOut)
		}
		for i := range 50 {
			p := slices.Clone(s.row(i))
			g.Row(p)
			sum := 0.0
			for k := range p {
				sum += p[k]
				for j := range p {
					if s.row(i)[k] < s.row(i)[j] && p[k] > p[j] {
						t.Fatalf("row %d: the order of classes %d and %d changed", i, k, j)
					}
				}
			}
			if of.Joint && math.Abs(sum-1) > 1e-12 {
				t.Fatalf("row %d sums to %g", i, sum)
			}
		}
	}
}

// Isotonic pools are those of the min-max formula: g_i = max over a <= i of min over b >= i of the
// mean of y from a to b.
func TestIsotonicTwin(t *testing.T) {
	s := drawn(&Calibration{Kind: Temperature, Slope: 1, Offset: -0.5}, 15, 4)
	c := &Calibration{Kind: Temperature, Slope: 1}
	x, y := s.isotonic(c)
	type pair struct{ q, w, y float64 }
	var pairs []pair
	for i, truth := range s.Truth {
		for k, score := range s.row(i) {
			p := pair{c.Raw(score, 0), s.Weight[i], 0}
			if slices.Contains(truth, int32(k)) {
				p.y = 1
			}
			pairs = append(pairs, p)
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return int(math.Copysign(1, a.q-b.q)) })
	mean := func(a, b int) float64 {
		sum, of := 0.0, 0.0
		for _, p := range pairs[a : b+1] {
			sum, of = sum+p.w*p.y, of+p.w
		}
		return sum / of
	}
	at := 0
	for i, p := range pairs {
		g := 0.0
		for a := range i + 1 {
			low := 1.0
			for b := i; b < len(pairs); b++ {
				low = min(low, mean(a, b))
			}
			g = max(g, low)
		}
		for at < len(x)-1 && math.Abs(y[at]-g) > 1e-9 && p.q > x[at] { // the knot of its pool
			at++
		}
		if edge := y[at] - g; math.Abs(edge) > 1e-9 && g > 0 && g < 1 {
			t.Fatalf("pair %d, q %g: %g, the formula says %g", i, p.q, y[at], g)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Calibration{Kind: Isotonic, Slope: 1, X: []float64{0.1, 0.5}, Y: []float64{0.2, 0.2}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for i, spoil := range []func(*Calibration){
		func(c *Calibration) { c.Kind = "platt" }, func(c *Calibration) { c.Slope = 0 }, func(c *Calibration) { c.Offset = math.NaN() },
		func(c *Calibration) { c.Kind = Temperature }, func(c *Calibration) { c.X = []float64{0.5, 0.5} }, func(c *Calibration) { c.Y = []float64{0.2, 0.1} },
		func(c *Calibration) { c.Y = []float64{0, 0.1} }, func(c *Calibration) { c.X = c.X[:1] },
	} {
		c := good
		if spoil(&c); c.Check() == nil {
			t.Errorf("case %d passes", i)
		}
	}
	if _, err := Fit(&Sample{Classes: 3, Truth: [][]int32{nil}, Scores: make([]float64, 3), Weight: []float64{1}}, Temperature, true); err == nil {
		t.Error("a sample without known classes is fitted")
	}
}
