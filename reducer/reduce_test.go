package reducer

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/linalg/contribution"
)

// moving are the rules that give new vectors.
var moving = []Rule{Support, Family, Full, Mean, Jacobi, Emit}

// drawSystem draws a system of any size that is quick.
func drawSystem(t *rapid.T) *system {
	s := randomSystem(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 14).Draw(t, "nodes"), rapid.IntRange(1, 24).Draw(t,
		"width"))
	if rapid.IntRange(0, 3).Draw(t, "beta") == 0 {
		s.beta = 0
	}
	s.follower = rapid.SampledFrom([]float64{0, 0.01, 0.5}).Draw(t, "follower")
	s.set = int32(rapid.IntRange(0, 1).Draw(t, "set"))
	return s
}

// TestRules holds every rule to the dense reference.
func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		for _, rule := range moving {
			v, _ := s.run(rule, 0, s.width, true)
			got, want := expand(s.forest, v, s.width), s.reference(rule)
			for p := range got {
				for f, w := range want[p] {
					if math.Abs(float64(got[p][f])-w) > 1e-6*(1+math.Abs(w)) {
						t.Fatalf("rule %d node %d feature %d: %g, want %g", rule, p, f, got[p][f], w)
					}
				}
			}
		}
	})
}

// TestMostFollowers: a node has no more than so many followers.
func TestMostFollowers(t *testing.T) {
	curvature := func(terminals int32) float64 {
		f := &Forest{Parent: []int32{-1}, Terminals: []int32{terminals}, Children: []int32{0}, Set: []int32{0}}
		in := []contribution.Contribution{{Parent: 0, Feature: []uint32{0}, Sum: []float64{1}, Curvature: []uint8{1}}}
		v, _ := Task{Forest: f, Hi: 1, Rule: Support, Follower: 0.01}.Run(in, Zero(1), Zero(1))
		return 1/float64(v.Value[0]) - 1 // y is zero
	}
	for terminals, want := range map[int32]float64{1: 1, 101: 2, 5001: 51, 5002: 51, 400000: 51} {
		if got := curvature(terminals); math.Abs(got-want) > 1e-4 {
			t.Errorf("%d terminals: curvature %g, want %g", terminals, got, want)
		}
	}
}

// TestFollowers: where nothing below a node has support or a value of its own, the sparse
// rules make it follow its parent exactly, and the dense system agrees.
func TestFollowers(t *testing.T) {
	followers := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		for _, rule := range []Rule{Support, Family, Emit} {
			v, _ := s.run(rule, 0, s.width, false)
			got := expand(s.forest, v, s.width)
			for f := range s.width {
				touched := s.touched(f)
				for p, q := range s.forest.Parent {
					if touched[p] {
						continue
					}
					followers++
					up := float32(0)
					if q >= 0 {
						up = got[q][f]
					}
					if !same(got[p][f], up) {
						t.Fatalf("rule %d node %d feature %d: %g, its parent %g", rule, p, f, got[p][f], up)
					}
				}
			}
		}
	})
	if followers < 100 { // -short draws a fifth of the systems
		t.Errorf("only %d followers: the test sees too little", followers)
	}
}

// TestEmitIsExact: y itself, in the one rounding that everybody uses.
func TestEmitIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		v, sums := s.run(Emit, 0, s.width, false)
		got := expand(s.forest, v, s.width)
		for p, row := range s.y() {
			for f, y := range row {
				if got[p][f] != y {
					t.Fatalf("node %d feature %d: %g, want %g", p, f, got[p][f], y)
				}
			}
		}
		if sums.Restart != 0 || sums.Primal != 0 {
			t.Fatalf("sums %+v", sums)
		}
	})
}

// TestNone moves nothing, and certifies what the other rules certify.
func TestNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		v, none := s.run(None, 0, s.width, true)
		if len(v.Feature) != 0 {
			t.Fatal("rule none gives vectors")
		}
		_, support := s.run(Support, 0, s.width, true)
		if none.Primal != support.Primal || none.Dual != support.Dual {
			t.Fatalf("none certifies %+v, support %+v", none, support)
		}
	})
}

// TestCertificate: P's edge terms at y, and D by the Laplacian system: with W(a) from
// plain elimination over internals and terminals, 1/2 sum_n w_n(a).v_n splits into the
// terminals' own 1/2 ||v_t||^2 and the internals' 1/2 sum ||U_p||^2. Only V_p enters the
// latter, so each node's terminals may be taken as one.
func TestCertificate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		_, got := s.run(Support, 0, s.width, true)
		y := s.y()
		primal, dual, scale := 0.0, 0.0, 1e-300
		for f := range s.width {
			for p, q := range s.forest.Parent {
				e := float64(y[p][f])
				if q >= 0 {
					e -= float64(y[q][f])
				}
				primal += s.weight(p) * e * e / 2
			}
			d := s.laplacianDual(f)
			dual -= d
			scale += math.Abs(d)
		}
		if math.Abs(got.Primal-primal) > 1e-12*primal || math.Abs(got.Dual-dual) > 1e-9*scale {
			t.Fatalf("primal %.15g, dual %.15g; want %.15g, %.15g", got.Primal, got.Dual, primal, dual)
		}
		_, off := s.run(Support, 0, s.width, false)
		if off.Primal != 0 || off.Dual != 0 {
			t.Fatalf("uncertified sums %+v", off)
		}
	})
}

// laplacianDual is 1/2 sum_n w_n(a).v_n of feature f without the terminals' own part: one
// terminal per internal bears all of V_p.
func (s *system) laplacianDual(f int) float64 {
	n := len(s.x)
	edges := s.edges()
	m, v := zeros(2*n, 2*n), make([]float64, 2*n) // node p, its terminal n+p
	for p := range n {
		copy(m[p], edges[p])
		m[p][p]++
		m[n+p][n+p] = 1
		m[p][n+p], m[n+p][p] = -1, -1
		v[n+p] = s.v[p][f]
	}
	w := eliminate(m, append([]float64(nil), v...))
	sum := 0.0
	for i := range w {
		sum += w[i] * v[i] / 2
	}
	for p := range n {
		sum -= s.v[p][f] * s.v[p][f] / 2
	}
	return sum
}

// TestRestartSum: (y - x+)' M (x+ - x) with M written out.
func TestRestartSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		for _, rule := range []Rule{Support, Family, Full} {
			v, sums := s.run(rule, 0, s.width, false)
			next, y := expand(s.forest, v, s.width), s.y()
			want, moved, scale := 0.0, 0.0, 1e-300
			for f := range s.width {
				m, k := s.edges(), s.curvatures(rule, f)
				for p := range m {
					for q := range m {
						back := float64(y[q][f]) - float64(next[q][f])
						moved += (float64(y[p][f]) - float64(next[p][f])) * m[p][q] * back
						if p == q {
							m[p][p] += k[p]
						}
						term := (float64(y[p][f]) - float64(next[p][f])) * m[p][q] * (float64(next[q][f]) - float64(s.x[q][f]))
						want += term
						scale += math.Abs(term) + math.Abs(m[p][q]*back*back)
					}
				}
			}
			if math.Abs(sums.Restart-want) > 1e-10*scale || math.Abs(sums.Moved-moved) > 1e-10*scale {
				t.Fatalf("rule %d: restart %g, moved %g; want %g, %g", rule, sums.Restart, sums.Moved, want, moved)
			}
		}
	})
}

// TestRanges: the union of the ranges' results is the whole's, in bits, and so are the
// entries worked on; the sums agree to rounding.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		cut := rapid.IntRange(0, s.width).Draw(t, "cut")
		for _, rule := range moving {
			whole, sums := s.run(rule, 0, s.width, true)
			lower, a := s.run(rule, 0, cut, true)
			upper, b := s.run(rule, cut, s.width, true)
			joined := Zero(len(s.x))
			for p := range s.x {
				for _, v := range []*Vectors{lower, upper} {
					joined.Feature = append(joined.Feature, v.Feature[v.Begin[p]:v.Begin[p+1]]...)
					joined.Value = append(joined.Value, v.Value[v.Begin[p]:v.Begin[p+1]]...)
				}
				joined.Begin[p+1] = int64(len(joined.Feature))
			}
			if !reflect.DeepEqual(joined.Begin, whole.Begin) || !equal(joined.Feature, whole.Feature) ||
				!equal(joined.Value, whole.Value) {
				t.Fatalf("rule %d: the ranges' union is not the whole", rule)
			}
			if a.Entries+b.Entries != sums.Entries {
				t.Fatalf("rule %d: %d + %d entries, whole %d", rule, a.Entries, b.Entries, sums.Entries)
			}
			if d := a.Primal + b.Primal - sums.Primal; math.Abs(d) > 1e-12*sums.Primal {
				t.Fatalf("rule %d: primal is off by %g", rule, d)
			}
		}
	})
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestCanonical: results are the one sparse form of their dense vectors: overrides(expand)
// gives them back.
func TestCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		for _, rule := range moving {
			v, _ := s.run(rule, 0, s.width, false)
			again := overrides(s.forest, expand(s.forest, v, s.width), 0, s.width)
			if !reflect.DeepEqual(v.Begin, again.Begin) || !equal(v.Feature, again.Feature) || !equal(v.Value, again.Value) {
				t.Fatalf("rule %d: not canonical", rule)
			}
		}
	})
}

// TestContributionOrder: blocks of different parents may come in any order; equal parents
// are added up in the order given.
func TestContributionOrder(t *testing.T) {
	f := &Forest{Parent: []int32{-1, 0, 0}, Terminals: []int32{3, 1, 1}, Children: []int32{2, 0, 0}, Set: []int32{0, 1, 1}}
	one := func(p int32, v float64) contribution.Contribution {
		return contribution.Contribution{Parent: p, Feature: []uint32{0}, Sum: []float64{v}, Curvature: []uint8{1}}
	}
	run := func(in ...contribution.Contribution) Sums {
		_, s := Task{Forest: f, Hi: 1, Rule: Support, Certify: true}.Run(in, Zero(3), Zero(3))
		return s
	}
	// (1e17 + 1) - 1e17 = 0, 1e17 - 1e17 + 1 = 1: the order of equal parents must tell.
	want := run(one(0, 1e17), one(0, 1), one(0, -1e17), one(1, 2), one(2, 3))
	if got := run(one(2, 3), one(0, 1e17), one(1, 2), one(0, 1), one(0, -1e17)); got != want {
		t.Errorf("order between parents: %+v, want %+v", got, want)
	}
	if got := run(one(0, 1e17), one(0, -1e17), one(0, 1), one(1, 2), one(2, 3)); got == want {
		t.Error("equal parents are not added up in the order given")
	}
	var many []contribution.Contribution // enough for a sort that is not stable to show
	sum := 0.0
	for k := range 300 {
		v := math.Ldexp(1, k*37%90) * float64(k%2*2-1)
		sum += v
		many = append(many, one(int32(2-k%2), 0), one(0, v))
	}
	_, got := Task{Forest: f, Hi: 1, Rule: None, Certify: true}.Run(many, Zero(3), Zero(3))
	if got.Dual != -float64(sum*sum)/2 {
		t.Errorf("300 parts of one parent: dual %g, want %g", got.Dual, -sum*sum/2)
	}
}

// TestFullMajorises: Full is the exact minimum over the internals with the terminals at
// y_p + v_n: the normal equations' residual vanishes, so no move from it helps.
func TestFullMajorises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSystem(t)
		v, _ := s.run(Full, 0, s.width, false)
		next, y := expand(s.forest, v, s.width), s.y()
		for f := range s.width {
			m := s.edges()
			for p := range m {
				k := float64(s.forest.Terminals[p])
				residual := k*(float64(next[p][f])-float64(y[p][f])) - s.v[p][f]
				scale := math.Abs(s.v[p][f]) + 1
				for q := range m {
					residual += m[p][q] * float64(next[q][f])
					scale += math.Abs(m[p][q] * float64(next[q][f]))
				}
				if math.Abs(residual) > 1e-5*scale {
					t.Fatalf("node %d feature %d: gradient %g", p, f, residual)
				}
			}
		}
	})
}

// TestRecycle: what a scratch has been used for, and the memory of earlier results, are not seen.
func TestRecycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var used Scratch
		for range 3 {
			s := drawSystem(t)
			for _, rule := range moving {
				want, sums := s.run(rule, 0, s.width, true)
				got, again := s.runIn(&used, rule, 0, s.width, true)
				s.runIn(&used, Full, 0, s.width/2, true) // takes no memory of got
				if !reflect.DeepEqual(got.Begin, want.Begin) || !equal(got.Feature, want.Feature) ||
					!equal(got.Value, want.Value) || again != sums {
					t.Fatalf("rule %d: %v and %+v, in new memory %v and %+v", rule, got, again, want, sums)
				}
				used.Recycle(got)
			}
		}
	})
}
