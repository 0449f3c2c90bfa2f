package solver

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// lambdaOf is lambda(xi) as the paper writes it.
func lambdaOf(xi float64) float64 { return (1/(1+math.Exp(-xi)) - 0.5) / (2 * xi) }

// TestJaakkola checks value, 2 lambda and bend against their definitions, also where the series
// begins. The bound touches log sigma at xi and is below it elsewhere.
func TestJaakkola(t *testing.T) {
	for _, xi := range []float64{0, 1e-9, 1e-3, 0.0199999, 0.0200001, 0.3, 1, 5, 30, 700} {
		value, tau, bend := Jaakkola(xi * xi)
		p := 1 / (1 + math.Exp(-xi))
		if xi >= 0.3 {
			if want := 2 * lambdaOf(xi); math.Abs(tau-want) > 1e-14 || math.Abs(bend-(want-p*(1-p))/(xi*xi)) > 1e-13 {
				t.Errorf("xi %g: 2 lambda %g, want %g; bend %g", xi, tau, want, bend)
			}
		}
		if want := math.Log(2 * math.Cosh(xi/2)); xi < 700 && math.Abs(value-want) > 1e-13*want {
			t.Errorf("xi %g: %g, want %g", xi, value, want)
		}
		for _, z := range []float64{-8, -1, 0, 0.5, xi, 20} {
			bound := -value + z/2 - tau/2*(z*z-xi*xi)
			if exact := -math.Log1p(math.Exp(-z)); bound > exact+1e-12 || z == xi && xi < 30 && math.Abs(bound-exact) > 1e-12 {
				t.Errorf("xi %g: the bound at %g is %g, log sigma %g", xi, z, bound, exact)
			}
		}
	}
	_, below, bendBelow := Jaakkola(0.0199999 * 0.0199999)
	_, above, bendAbove := Jaakkola(0.0200001 * 0.0200001)
	if math.Abs(below-above) > 1e-9 || math.Abs(bendBelow-bendAbove) > 1e-7 {
		t.Errorf("2 lambda jumps from %.15g to %.15g, bend from %.15g to %.15g", below, above, bendBelow, bendAbove)
	}
}

// textbook returns a lane's 2 lambda by row from the textbook's formula, at the given variances.
func textbook(r Rows, w []float64, quadratic func(x []float64) float64) (tau []float64) {
	for i := range r.X.Rows {
		x, u := r.dense(i), 0.0
		for f, v := range x {
			u += v * w[f]
		}
		tau = append(tau, r.WeightOf(i)*2*lambdaOf(math.Max(math.Sqrt(quadratic(x)+u*u), 1e-8)))
	}
	return tau
}

// meanResidual returns the relative residual of (sum_x 2 lambda x x' + A) w = sum_x (t - 1/2) x + A
// m.
func meanResidual(r Rows, b *Block, l int, w, tau []float64) (worst float64) {
	left, size := make([]float64, len(w)), 1e-9
	for f, v := range w {
		above := 0.0
		if b.Above[l] != nil {
			above = b.Above[l][f]
		}
		left[f] = b.Precision[l].At(f) * (v - above)
		size = math.Max(size, math.Abs(left[f]))
	}
	for i := range r.X.Rows {
		t, x, u := -0.5, r.dense(i), 0.0
		for _, row := range b.Positive[l] {
			if int(row) == i {
				t = 0.5
			}
		}
		for f, v := range x {
			u += v * w[f]
		}
		for f, v := range x {
			left[f] += (tau[i]*u - r.WeightOf(i)*t) * v
			size = math.Max(size, math.Abs(v))
		}
	}
	for _, v := range left {
		worst = math.Max(worst, math.Abs(v)/size)
	}
	return worst
}

// TestVariationalDiagonal checks the fixed point of the diagonal form ([TKDD] 3.1, binary): Psi_f =
// 1/(sum_x 2 lambda x_f^2 + A_f), the full system for the means, xi^2 = sum_f x_f^2 Psi_f +
// (w.x)^2. It begins near and far from it, with one lane and with sixteen, with weights of rows.
func TestVariationalDiagonal(t *testing.T) {
	for seed := range uint64(8) {
		r := sample(seed, 30, 7, seed%4 > 1)
		b := leaves(seed, r, []int{1, 3, 16, 5}[seed%4])
		lanes, rnd := len(b.Positive), rand.New(rand.NewPCG(seed, 9))
		w, sigma := make([]float64, r.Columns()*lanes), make([]float64, r.Columns()*lanes)
		for i := range w {
			w[i], sigma[i] = 20*float64(seed%3)*rnd.NormFloat64(), math.Exp(float64(seed%5)*rnd.NormFloat64())
		}
		s := &Bounded{}
		s.Open(r, b)
		if _, err := s.Solve(context.Background(), r, w, sigma, 1e-13); err != nil {
			t.Fatal(err)
		}
		for l := range lanes {
			one, psi := make([]float64, r.Columns()), make([]float64, r.Columns())
			for f := range one {
				one[f], psi[f] = w[f*lanes+l], sigma[f*lanes+l]*sigma[f*lanes+l]
			}
			tau := textbook(r, one, func(x []float64) (q float64) {
				for f, v := range x {
					q += v * v * psi[f]
				}
				return q
			})
			if rest := meanResidual(r, b, l, one, tau); rest > 1e-8 {
				t.Errorf("seed %d lane %d: the means' equation is off by %g", seed, l, rest)
			}
			for f, got := range psi {
				sum := b.Precision[l].At(f)
				for i := range r.X.Rows {
					x := r.dense(i)[f]
					sum += tau[i] * x * x
				}
				if math.Abs(got*sum-1) > 1e-8 {
					t.Errorf("seed %d lane %d column %d: Psi %g, want %g", seed, l, f, got, 1/sum)
				}
			}
		}
	}
}

// TestVariationalFull checks the same with full covariances, Psi^-1 = sum_x 2 lambda x x' + A. x'
// Psi x comes from conjugate directions of the matrix itself.
func TestVariationalFull(t *testing.T) {
	for seed := range uint64(6) {
		r := sample(seed, 25, 6, seed%4 > 1)
		b := leaves(seed, r, 1)
		d := r.Columns()
		w, sigma := make([]float64, d), make([]float64, d)
		for f := range w {
			w[f], sigma[f] = 5*float64(seed%3), 1
		}
		s := &Full{}
		s.Open(r, b)
		if _, err := s.SolveOne(context.Background(), r, w, sigma, 1e-13); err != nil {
			t.Fatal(err)
		}
		// Psi from the factor, column by column: L' y = (L^-1 e_f).
		psi := make([][]float64, d)
		for f := range d {
			psi[f] = make([]float64, d)
			psi[f][f] = 1
			forward(s.factor, psi[f], 0)
			backward(s.factor, psi[f])
			if got := sigma[f] * sigma[f]; math.Abs(got-psi[f][f]) > 1e-12*got {
				t.Errorf("seed %d: variance %g, of the covariance %g", seed, got, psi[f][f])
			}
		}
		tau := textbook(r, w, func(x []float64) (q float64) {
			for f, v := range x {
				for g, u := range x {
					q += v * psi[f][g] * u
				}
			}
			return q
		})
		if rest := meanResidual(r, b, 0, w, tau); rest > 1e-8 {
			t.Errorf("seed %d: the means' equation is off by %g", seed, rest)
		}
		for f := range d { // Psi^-1 Psi = 1
			for g := range d {
				sum := b.Precision[0].At(f) * psi[f][g]
				for i := range r.X.Rows {
					x, along := r.dense(i), 0.0
					for k, v := range x {
						along += v * psi[k][g]
					}
					sum += tau[i] * x[f] * along
				}
				if f == g {
					sum--
				}
				if math.Abs(sum) > 1e-8 {
					t.Errorf("seed %d: Psi^-1 Psi is off by %g at %d, %d", seed, sum, f, g)
				}
			}
		}
	}
}

// TestDigamma checks digamma at 1 (minus Euler's constant), by its recurrence, and as the
// derivative of log Gamma.
func TestDigamma(t *testing.T) {
	if got := digamma(1); math.Abs(got+0.57721566490153286) > 1e-14 {
		t.Errorf("%.17g", got)
	}
	for _, x := range []float64{0.01, 0.5, 1, 3.3, 11.999, 12, 14390.5, 1e9} {
		if got, want := digamma(x+1), digamma(x)+1/x; math.Abs(got-want) > 1e-13*math.Max(1, math.Abs(want)) {
			t.Errorf("%g: %.17g, want %.17g", x, got, want)
		}
		h := 1e-4 * x
		up, _ := math.Lgamma(x + h)
		down, _ := math.Lgamma(x - h)
		if slope := (up - down) / (2 * h); math.Abs(slope-digamma(x)) > 1e-5*math.Max(1, math.Abs(slope)) {
			t.Errorf("%g: %g, the slope is %g", x, digamma(x), slope)
		}
	}
}

// TestGammaSteps checks that GammaEM has Gamma's fixed point.
func TestGammaSteps(t *testing.T) {
	alpha := 1.0
	for range 1000 {
		alpha = Gamma(2, 0.3, 5, alpha, 5/(3+alpha), 1.7)
	}
	if em := GammaEM(2, 0.3, 5, alpha, 5/(3+alpha), 1.7); math.Abs(em/alpha-1) > 1e-12 {
		t.Errorf("%g is moved to %g", alpha, em)
	}
}
