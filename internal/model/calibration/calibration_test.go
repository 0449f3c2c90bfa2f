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
	for _, of := range []*Calibration{{Kind: Temperature, Joint: true, Slope: 2.5}, {Kind: Temperature, Slope: 1.7,
		Offset: -2}} {
		s := drawn(of, 4000, 7)
		c, err := Fit(s, Temperature, of.Joint, nil, nil)
		if err != nil || math.Abs(c.Slope/of.Slope-1) > 0.08 || math.Abs(c.Offset-of.Offset) > 0.15 {
			t.Fatalf("%+v from %+v: %v", c, of, err)
		}
		for _, by := range []float64{-1e-3, 1e-3} {
			other := *c
			other.Slope += by
			shifted := *c
			shifted.Offset += by
			if s.loss(&other, nil, nil) <= c.HeldOut.LogLoss || !of.Joint && s.loss(&shifted, nil, nil) <= c.HeldOut.LogLoss {
				t.Errorf("joint %v: %g beside %+v has less loss", of.Joint, by, c)
			}
		}
		g, err := Fit(s, Isotonic, of.Joint, nil, nil)
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
		func(c *Calibration) { c.Kind = "platt" }, func(c *Calibration) { c.Slope = 0 },
		func(c *Calibration) { c.Offset = math.NaN() },
		func(c *Calibration) { c.Kind = Temperature }, func(c *Calibration) { c.X = []float64{0.5, 0.5} },
		func(c *Calibration) { c.Y = []float64{0.2, 0.1} },
		func(c *Calibration) { c.Y = []float64{0, 0.1} }, func(c *Calibration) { c.X = c.X[:1] },
		func(c *Calibration) { c.Powers = []float64{1} }, func(c *Calibration) {
			c.Kind, c.X, c.Y, c.Joint, c.Powers = Levels,
				nil, nil, true, []float64{1, 0}
		},
	} {
		c := good
		if spoil(&c); c.Check() == nil {
			t.Errorf("case %d passes", i)
		}
	}
	if _, err := Fit(&Sample{Classes: 3, Truth: [][]int32{nil}, Scores: make([]float64, 3), Weight: []float64{1}},
		Temperature, true, nil, nil); err == nil {
		t.Error("a sample without known classes is fitted")
	}
}

// Probabilities come down a hierarchy as the formula says, sum to 1, and stay as they are by powers of 1.
func TestDown(t *testing.T) {
	//   0        6
	//  1  4      7
	// 2 3  5
	parent := []int32{-1, 0, 1, 1, 0, 4, -1, 6}
	w := NewWay(parent)
	class := []float64{0, 0.05, 0.1, 0.2, 0, 0.25, 0, 0.4} // 1 is a class itself
	if w.Depth() != 3 {
		t.Fatal(w.Depth())
	}
	same := slices.Clone(class)
	w.Down([]float64{1, 1, 1}, same)
	p := slices.Clone(class)
	a := []float64{0.5, 2, 3}
	w.Down(a, p)
	sum := 0.0
	for n := range p {
		if math.Abs(same[n]-class[n]) > 1e-12 {
			t.Errorf("node %d: %g by powers of 1, want %g", n, same[n], class[n])
		}
		sum += p[n]
	}
	among := func(a, x float64, all ...float64) float64 {
		total := 0.0
		for _, y := range all {
			total += math.Pow(y, a)
		}
		return math.Pow(x, a) / total
	}
	top, one := among(a[0], 0.6, 0.6, 0.4), among(a[1], 0.35, 0.35, 0.25)
	for n, want := range map[int]float64{1: top * one * among(a[2], 0.05, 0.05, 0.1, 0.2), 3: top * one * among(a[2], 0.2,
		0.05, 0.1, 0.2), 5: top * (1 - one), 7: 1 - top} {
		if math.Abs(p[n]-want) > 1e-12 {
			t.Errorf("node %d: %g, want %g", n, p[n], want)
		}
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("they sum to %g", sum)
	}
	nothing := make([]float64, len(parent))
	nothing[7] = 1
	if w.Down(a, nothing); nothing[7] != 1 || nothing[2] != 0 {
		t.Errorf("%v", nothing)
	}
}

// The powers that labels were drawn by are found, where there is something to find.
func TestFitLevels(t *testing.T) {
	parent, nodes := []int32{-1, 0, 0, 0, -1, 4, 4, 4}, []int32{1, 2, 3, 5, 6, 7}
	w := NewWay(parent)
	draw := func(a []float64) *Sample {
		r := rand.New(rand.NewPCG(3, 4))
		s := &Sample{Classes: len(nodes)}
		for range 8000 {
			scores := make([]float64, len(nodes))
			for k := range scores {
				scores[k] = 2 * r.NormFloat64()
			}
			q := slices.Clone(scores)
			(&Calibration{Joint: true, Slope: 1}).Row(q)
			p := make([]float64, len(parent))
			for k, n := range nodes {
				p[n] = q[k]
			}
			w.Down(a, p)
			u, truth := r.Float64(), int32(0)
			for k, n := range nodes {
				if u -= p[n]; u < 0 {
					truth = int32(k)
					break
				}
			}
			s.Add(scores, []int32{truth}, 1)
		}
		return s
	}
	s := draw([]float64{0.4, 1.2})
	plain, err := Fit(s, Temperature, true, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Fit(s, Levels, true, w, nodes)
	if err != nil || c.Kind != Levels || c.HeldOut.LogLoss > plain.HeldOut.LogLoss-0.01 ||
		math.Abs(c.Powers[0]/c.Powers[1]-1.0/3) > 0.05 {
		t.Errorf("%+v, %v; one temperature %+v", c, err, plain)
	}
	if _, err := Fit(s, Levels, true, NewWay([]int32{-1, -1, -1, -1, -1, -1}), []int32{0, 1, 2, 3, 4, 5}); err == nil {
		t.Error("a hierarchy of one level has levels")
	}
	if _, err := Fit(s, Levels, false, w, nodes); err == nil {
		t.Error("sets have levels")
	}
}
