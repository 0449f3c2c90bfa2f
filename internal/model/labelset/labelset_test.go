package labelset

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// byHand: four classes, profiles of three.
//
//	row  scores (class)                truth
//	0    0.5 (0)   -0.2 (1)  -0.9 (2)  0 1
//	1    0.1 (2)   -0.4 (0)  -0.5 (1)  2
//	2   -0.3 (1)   -0.6 (3)  -0.8 (0)  1 3
func byHand(t *testing.T) *Profiles {
	t.Helper()
	p, err := NewProfiles(3, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		scores         []float64
		classes, truth []int32
	}{
		{[]float64{0.5, -0.2, -0.9}, []int32{0, 1, 2}, []int32{0, 1}},
		{[]float64{0.1, -0.4, -0.5}, []int32{2, 0, 1}, []int32{2}},
		{[]float64{-0.3, -0.6, -0.8}, []int32{1, 3, 0}, []int32{1, 3}},
	} {
		if err := p.Add(1, r.scores, r.classes, r.truth); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }

// At 0 rows get {0}, {2}, {1}: 3 right of 3, 5 true: micro 6/8; F1 of the classes 1, 2/3, 1, 0.
// One threshold: below -0.2 comes 0/1, right: 8/9 and (1+1+1+0)/4; below -0.4 a wrong 2/0,
// ..., so the best is between -0.2 and -0.4.
// rcut: one label 6/8 and 2/3; two labels: right 5 of 6: 10/11, (2/3+1+1+1)/4.
func TestFitByHand(t *testing.T) {
	c, err := Fit(byHand(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := c.HeldOut
	if h.Instances != 3 || !near(h.Zero.MicroF1, 6./8) || !near(h.Zero.MacroF1, (1+2./3+1)/4) {
		t.Errorf("zero: %+v", h)
	}
	if c.Rank != 2 || !near(h.Rcut.MicroF1, 10./11) || !near(h.Rcut.MacroF1, (2./3+3)/4) {
		t.Errorf("rcut: %d %+v", c.Rank, h.Rcut)
	}
	// Down to -0.6 the wrong ones -0.4 and -0.5 come in before 2's second label: right 5 of 7:
	// micro 10/12, macro (2/3 + 4/5 + 1 + 1)/4 = 0.867, mean 0.85; at -0.3: 8/9 and 0.75: 0.819.
	if !near(c.Global, -0.7) || !near(h.Global.MicroF1, 10./12) || !near(h.Global.MacroF1, (2./3+4./5+2)/4) {
		t.Errorf("global: %g %+v", c.Global, h.Global)
	}
	if err := c.Check(4, 4); err != nil {
		t.Error(err)
	}
}

// Intervals: row 0 keeps two labels: (-0.9, -0.2); row 1 one: above -0.4, no upper end; row 2 two.
func TestIntervals(t *testing.T) {
	got, rows := intervals(byHand(t))
	want := []interval{{-0.9, -0.2}, {-0.4, math.Inf(1)}, {-0.8, -0.6}}
	if !slices.Equal(got, want) || !slices.Equal(rows, []int{0, 1, 2}) {
		t.Errorf("%v %v, want %v", got, rows, want)
	}
}

func TestScutByHand(t *testing.T) {
	p, _ := NewProfiles(2, 2)
	// Class 0 is true at 0.9, 0.2, -0.1, -0.3, wrong at 0, -0.5: F1 at -0.4: 8/9. Class 1 is never true.
	for _, r := range []struct {
		s   float64
		hit bool
	}{{0.9, true}, {0.2, true}, {0, false}, {-0.1, true}, {-0.3, true}, {-0.5, false}} {
		var truth []int32
		if r.hit {
			truth = []int32{0}
		}
		if err := p.Add(1, []float64{r.s, -2}, []int32{0, 1}, truth); err != nil {
			t.Fatal(err)
		}
	}
	// Without a pull from above class 0 is at its best, and class 1, which no threshold does good, at
	// the common one; four positives and a strength of 4 meet half-way. The group of both lies at
	// -0.4 as well; below it nothing pulls towards the root.
	all := func(int) bool { return true }
	for _, tree := range []Tree{{}, {Above: []int32{-1}, Of: []int32{0, 0}}} {
		got := newShrinker(p, tree, MacroF1, 1, all)
		if best := got.thresholds(0, 0); !near(best[0], -0.4) || tree.Of == nil && best[1] != 1 || tree.Of != nil &&
			!near(best[1], -0.4) {
			t.Errorf("best: %v", best)
		}
		half := (-0.4 + 1) / 2
		if tree.Of != nil {
			half = (-0.4 + half) / 2
		}
		if pulled := got.thresholds(4, 0); !near(pulled[0], half) {
			t.Errorf("pulled: %v, want %g", pulled, half)
		}
		if none := got.thresholds(math.Inf(1), 0.1); none[0] != 1 || !near(none[1], 1-0.1*math.Log(5)) {
			t.Errorf("no thresholds of their own: %v", none)
		}
	}
	c := &Cutoffs{Class: []float64{-0.4, 0}}
	c.Class[1] = 0
	if got := c.PerClass(nil, []float64{-0.5, -0.6}, []int32{0, 1}); !slices.Equal(got, []int{0}) {
		t.Errorf("none above: %v", got)
	}
	c.Class[1] = -3
	if got := c.PerClass(nil, []float64{-0.5, -0.6}, []int32{0, 1}); !slices.Equal(got, []int{1}) {
		t.Errorf("one above: %v", got)
	}
}

func TestAbove(t *testing.T) {
	for _, c := range []struct {
		scores []float64
		t      float64
		want   int
	}{{[]float64{2, 1, 0}, 0.5, 2}, {[]float64{2, 1, 0}, 1, 1}, {[]float64{2, 1}, 5, 1}, {[]float64{2, 1}, -5, 2},
		{nil, 0, 0}} {
		if got := Above(c.scores, c.t); got != c.want {
			t.Errorf("%v above %g: %d, want %d", c.scores, c.t, got, c.want)
		}
	}
}

// draw makes random profiles with few distinct scores, so that ties are common.
func draw(t *rapid.T) *Profiles {
	classes := rapid.IntRange(1, 5).Draw(t, "classes")
	depth := rapid.IntRange(1, classes).Draw(t, "depth")
	p, err := NewProfiles(depth, classes)
	if err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(1, 8).Draw(t, "rows") {
		scores := make([]float64, depth)
		for k := range scores {
			scores[k] = float64(rapid.IntRange(-6, 3).Draw(t, "score")) / 4
		}
		slices.SortFunc(scores, func(a, b float64) int {
			if a > b {
				return -1
			}
			return 1
		})
		ids := rapid.Permutation(leadingIDs(classes)).Draw(t, "order")
		truth := ids[:rapid.IntRange(0, classes).Draw(t, "labels")]
		order := rapid.Permutation(leadingIDs(classes)).Draw(t, "ranked")
		if err := p.Add(1, scores, order[:depth], truth); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func leadingIDs(n int) []int32 {
	var ids []int32
	for i := range n {
		ids = append(ids, int32(i))
	}
	return ids
}

// brute measures label sets by the definitions: over all (row, class) pairs.
func brute(p *Profiles, keep func(row int) []int) Quality {
	classes, rows := p.classes, p.Rows()
	tp, fp, fn := make([]float64, classes), make([]float64, classes), make([]float64, classes)
	for row := range rows {
		truth := p.truth[p.begin[row]:p.begin[row+1]]
		predicted := map[int32]bool{}
		for _, k := range keep(row) {
			predicted[p.ranked(row)[k]] = true
		}
		for c := range int32(classes) {
			switch in := slices.Contains(truth, c); {
			case in && predicted[c]:
				tp[c]++
			case in:
				fn[c]++
			case predicted[c]:
				fp[c]++
			}
		}
	}
	var q Quality
	var a, b, macro float64
	for c := range classes {
		a, b = a+2*tp[c], b+2*tp[c]+fp[c]+fn[c]
		if tp[c]+fn[c] > 0 {
			macro += 2 * tp[c] / (2*tp[c] + fp[c] + fn[c])
		}
	}
	if b > 0 {
		q.MicroF1 = a / b
	}
	q.MacroF1 = macro / float64(classes)
	return q
}

// TestAgainstBruteForce: the shift and the rank that are found reach what they say, and no
// other reaches more; the thresholds of scut are each their class's best; nothing is empty.
func TestAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		base := make([]float64, p.Rows())
		for i := range base {
			base[i] = float64(rapid.IntRange(-2, 2).Draw(t, "base")) / 8
		}
		above := func(d float64) func(int) []int {
			return func(row int) []int { return leading(nil, Above(p.scores(row), base[row]+d)) }
		}
		margin := slices.Clone(p.score)
		for i := range margin {
			margin[i] -= base[i/p.depth]
		}
		d, q := bestShift(p, MeanF1, margin)
		if got := brute(p, above(d)); math.Abs(got.Of(MeanF1)-q.Of(MeanF1)) > 1e-9 || math.Abs(got.MicroF1-q.MicroF1) > 1e-9 {
			t.Fatalf("shift %g: %+v, brute force %+v", d, q, got)
		}
		for try := -3.0; try < 2; try += 1. / 16 {
			if got := brute(p, above(try)); got.Of(MeanF1) > q.Of(MeanF1)+1e-9 {
				t.Fatalf("shift %g reaches %+v, found was %g with %+v", try, got, d, q)
			}
		}
		c, err := Fit(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(p.classes, p.depth); err != nil {
			t.Fatal(err)
		}
		if got := brute(p, func(row int) []int {
			return leading(nil,
				c.Rank)
		}); math.Abs(got.Of(MeanF1)-c.HeldOut.Rcut.Of(MeanF1)) > 1e-9 {
			t.Fatalf("rcut: %+v, brute force %+v", c.HeldOut.Rcut, got)
		}
		for goal := range goals {
			mostUseful(t, p, goal)
		}
		for row := range p.Rows() {
			if n := Above(p.scores(row), c.Threshold(p.scores(row))); n < 1 || n > p.depth {
				t.Fatalf("row %d has %d labels", row, n)
			}
		}
		if c.HeldOut.Instance.Of(MeanF1) < c.HeldOut.Global.Of(MeanF1) {
			t.Fatalf("the regression loses to one threshold: %+v", c.HeldOut)
		}
	})
}

var goals = map[Goal]bool{MicroF1: true, MacroF1: true, MeanF1: true}

// mostUseful checks a class's best threshold against all others, by the definition of its share
// in the goal.
func mostUseful(t *rapid.T, p *Profiles, goal Goal) {
	const at = -0.3
	all := func(int) bool { return true }
	best := newShrinker(p, Tree{}, goal, at, all).thresholds(0, 0)
	right, predicted := 0.0, 0.0
	for row := range p.Rows() {
		for k := range Above(p.scores(row), at) {
			predicted++
			if p.hits(row)[k] {
				right++
			}
		}
	}
	micro, macro := goal.weights()
	f := ratio(2*right, predicted+p.total)
	for c := range p.classes {
		utility := func(threshold float64) float64 {
			var k classCount
			for row := range p.Rows() {
				for i, class := range p.ranked(row) {
					if int(class) == c && p.scores(row)[i] > threshold {
						k.predicted++
						if p.hits(row)[i] {
							k.right++
						}
					}
				}
			}
			return ratio(micro, predicted+p.total)*(2*k.right-f*k.predicted) + macro/float64(p.classes)*k.f1(p.count[0][c])
		}
		for threshold := -2.; threshold < 1; threshold += 1. / 8 {
			if gain := utility(threshold) - utility(best[c]); gain > 1e-12 && utility(threshold) > 0 {
				t.Fatalf("%s: class %d at %g: %g gains %g", goal, c, best[c], threshold, gain)
			}
		}
	}
}

// TestGoals: what is aimed at is reached: no goal's cut-off is better by another goal's measure
// than that one's, on the instances that both are fitted on. Parts are measured one by one.
func TestGoals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		reached := map[Goal]*Cutoffs{}
		for goal := range goals {
			c, err := Fit(p, Options{Goal: goal})
			if err != nil {
				t.Fatal(err)
			}
			reached[goal] = c
		}
		for goal, c := range reached {
			for other, d := range reached {
				if d.HeldOut.Global.Of(goal) > c.HeldOut.Global.Of(goal)+1e-12 ||
					d.HeldOut.Rcut.Of(goal) > c.HeldOut.Rcut.Of(goal)+1e-12 {
					t.Fatalf("%s reaches %+v, %s %+v", goal, c.HeldOut, other, d.HeldOut)
				}
			}
		}
	})
	p := byHand(t)
	p.NextPart()
	if err := p.Add(1, []float64{3, 2, 1}, []int32{0, 1, 2}, []int32{0}); err != nil {
		t.Fatal(err)
	}
	// Class 0 alone is right in the second part: F1 1 of four classes; the first one as by hand.
	q := judge(p, func(dst []int, row int) []int { return leading(dst, 1) })
	if !near(q.MacroF1, ((1+2./3+1)/4+1./4)/2) {
		t.Errorf("two parts: %+v", q)
	}
}

// TestFloor: so many places as are enough lie at or above it, and few others.
func TestFloor(t *testing.T) {
	p, _ := NewProfiles(50, 50)
	r := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		scores := make([]float64, 50)
		for k := range scores {
			scores[k] = -r.ExpFloat64()
		}
		slices.SortFunc(scores, byFalling)
		if err := p.Add(1, scores, leadingIDs(50), []int32{int32(r.IntN(50))}); err != nil {
			t.Fatal(err)
		}
	}
	n, floor := 0, p.floor(p.score)
	for _, s := range p.score {
		if s >= floor {
			n++
		}
	}
	if want := enough*400 + 400; n < want || n > want+want/10 {
		t.Errorf("%d places, want %d", n, want)
	}
}

// TestRegressionFindsTheRule: where an instance's threshold lies in the middle of its two
// best scores, one threshold for all cannot be right, the regression is.
func TestRegressionFindsTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p, err := NewProfiles(6, 6)
	if err != nil {
		t.Fatal(err)
	}
	for range 400 {
		level := 4 * r.Float64()
		scores := make([]float64, 6)
		n := 1 + r.IntN(4)
		for k := range scores {
			scores[k] = level - 0.1*float64(k)
			if k >= n {
				scores[k] -= 1
			}
		}
		order := leadingIDs(6)
		r.Shuffle(6, func(i, j int) { order[i], order[j] = order[j], order[i] })
		if err := p.Add(1, scores, order, order[:n]); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Fit(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.HeldOut.Instance.MicroF1 < 0.97 || c.HeldOut.Global.MicroF1 > 0.9 {
		t.Errorf("%+v", c.HeldOut)
	}
	if got := judge(p, func(dst []int, row int) []int {
		return leading(dst,
			Above(p.scores(row), c.Threshold(p.scores(row))))
	}); got.MicroF1 < 0.97 {
		t.Errorf("the stored regression reaches %+v", got)
	}
}

// TestNormalEquations checks theta against X'S(X theta - y) + ridge n theta = 0.
func TestNormalEquations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d := rapid.IntRange(1, 8).Draw(t, "n"), rapid.IntRange(1, 4).Draw(t, "d")
		x, y, s := make([][]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			s[i] = rapid.Float64Range(0.1, 3).Draw(t, "weight")
			y[i] = rapid.Float64Range(-2, 2).Draw(t, "y")
			for range d {
				x[i] = append(x[i], rapid.Float64Range(-2, 2).Draw(t, "x"))
			}
		}
		theta := newNormal(x, s, 0.1*float64(n)).solve(x, s, y, 0)
		for f := range d {
			g := 0.1 * float64(n) * theta[f]
			for i := range x {
				g += s[i] * x[i][f] * (dot(x[i], theta) - y[i])
			}
			if math.Abs(g) > 1e-8 {
				t.Fatalf("gradient %g", g)
			}
		}
	})
}

// TestHoldOut: within the bounds, no class loses its last row, the same seed the same rows.
func TestHoldOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.IntRange(1, 6).Draw(t, "classes")
		rows := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(classes-1)), 0, 3, rapid.ID), 1, 30).Draw(t,
			"rows")
		count := make([]int, classes)
		for _, r := range rows {
			for _, l := range r {
				count[l]++
			}
		}
		least := rapid.IntRange(1, 3).Draw(t, "least")
		labels := func(row int) []uint32 { return rows[row] }
		held := HoldOut(len(rows), labels, count, 0.5, 7, least, 3)
		if len(held) > 7 || 2*len(held) > len(rows) || !slices.IsSorted(held) {
			t.Fatalf("%v of %d", held, len(rows))
		}
		left := slices.Clone(count)
		for _, r := range held {
			for _, l := range rows[r] {
				if left[l]--; left[l] < least {
					t.Fatalf("class %d has %d rows left", l, left[l])
				}
			}
		}
		if again := HoldOut(len(rows), labels, count, 0.5, 7, least, 3); !slices.Equal(held, again) {
			t.Fatalf("%v, then %v", held, again)
		}
	})
}

func TestRefused(t *testing.T) {
	if _, err := NewProfiles(3, 2); err == nil {
		t.Error("deeper than there are classes")
	}
	if _, err := NewProfiles(0, 2); err == nil {
		t.Error("no depth")
	}
	p, _ := NewProfiles(1, 2)
	if _, err := Fit(p, Options{}); err == nil {
		t.Error("fitted on nothing")
	}
	if p.Add(1, []float64{1, 2}, []int32{0, 1}, nil) == nil || p.Add(1, []float64{1}, []int32{0}, []int32{2}) == nil {
		t.Error("a wrong row went through")
	}
	good := func() *Cutoffs { return &Cutoffs{Depth: 1, Weight: []float64{0}, Class: []float64{0, 0}, Rank: 1} }
	if err := good().Check(2, 2); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(c *Cutoffs){
		"depth": func(c *Cutoffs) { c.Depth = 3 }, "weights": func(c *Cutoffs) { c.Weight = nil },
		"classes": func(c *Cutoffs) { c.Class = c.Class[:1] },
		"rank":    func(c *Cutoffs) { c.Rank = 2 }, "number": func(c *Cutoffs) { c.Class[1] = math.NaN() },
		"infinite": func(c *Cutoffs) { c.Global = math.Inf(1) },
	} {
		c := good()
		if spoil(c); c.Check(2, 2) == nil {
			t.Errorf("%s went through", name)
		}
	}
}

// TestCrossFit: an instance is cut by what the others say. Where all true classes score
// above 0 and all others below, every cut is right; one instance whose scores lie 10 higher
// than all others' is still cut as they are, so it can't have been fitted on.
func TestCrossFit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	p, err := NewProfiles(4, 6)
	if err != nil {
		t.Fatal(err)
	}
	var want []int
	for row := range 60 {
		k := 1 + r.IntN(3)
		shift := 0.0
		if row == 7 {
			shift = 10
		}
		scores := make([]float64, 4)
		for i := range scores {
			scores[i] = shift + 0.5 + 0.4*r.Float64()
			if i >= k {
				scores[i] -= 1.5
			}
		}
		slices.SortFunc(scores, func(a, b float64) int {
			if a > b {
				return -1
			}
			return 1
		})
		classes := []int32{0, 1, 2, 3}
		if err := p.Add(1, scores, classes, classes[:k]); err != nil {
			t.Fatal(err)
		}
		if row == 7 {
			k = 4 // all of its scores lie above any threshold of the others
		}
		want = append(want, k)
	}
	got, err := CrossFit(p, 5, Options{})
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i := range want {
		if len(got[i]) != want[i] {
			wrong++
		}
	}
	if wrong > 2 || len(got[7]) != 4 {
		t.Errorf("%d of %d cut wrongly; %d labels of the strange one", wrong, len(want), len(got[7]))
	}
	if _, err := CrossFit(p, 1, Options{}); err == nil {
		t.Error("one part has no others")
	}
}

// TestWeightsAreCopies: what is fitted on a row of weight 3 is what is fitted on three copies.
func TestWeightsAreCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		weighed, _ := NewProfiles(p.depth, p.classes)
		copies, _ := NewProfiles(p.depth, p.classes)
		for row := range p.Rows() {
			times := rapid.IntRange(1, 3).Draw(t, "times")
			truth := p.truth[p.begin[row]:p.begin[row+1]]
			if err := weighed.Add(float64(times), p.scores(row), p.ranked(row), truth); err != nil {
				t.Fatal(err)
			}
			for range times {
				if err := copies.Add(1, p.scores(row), p.ranked(row), truth); err != nil {
					t.Fatal(err)
				}
			}
		}
		all := func(int) bool { return true }
		a, b := regress(weighed, 0.25, all), regress(copies, 0.25, all)
		for row := range p.Rows() {
			if x, y := a.at(p.scores(row)), b.at(p.scores(row)); math.Abs(x-y) > 1e-7*(1+math.Abs(y)) {
				t.Fatalf("threshold %g, of copies %g", x, y)
			}
		}
		one, many := &Cutoffs{Goal: MeanF1}, &Cutoffs{Goal: MeanF1}
		for c, p := range map[*Cutoffs]*Profiles{one: weighed, many: copies} {
			c.Global, c.HeldOut.Global = bestShift(p, MeanF1, p.score)
			c.fitRank(p)
		}
		near := func(a, b Quality) bool { return math.Abs(a.MicroF1-b.MicroF1)+math.Abs(a.MacroF1-b.MacroF1) < 1e-12 }
		if !near(one.HeldOut.Global, many.HeldOut.Global) || !near(one.HeldOut.Rcut, many.HeldOut.Rcut) {
			t.Fatalf("%+v, of copies %+v", one.HeldOut, many.HeldOut)
		}
	})
}
