package solver

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"taxon/internal/linalg/sparse"
	hblr "taxon/internal/methods/hblr/solver"
)

// made returns a problem of random rows over a tree, which is given as each branch's parent.
func made(seed uint64, rows, features int, bias float64, parent ...int32) *Problem {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &Problem{Parent: parent, Level: make([]int32, len(parent)), Leaf: make([]bool, len(parent))}
	for j, a := range parent {
		if p.Leaf[j] = true; a >= 0 {
			p.Level[j], p.Leaf[a] = p.Level[a]+1, false
		}
		p.Levels = max(p.Levels, int(p.Level[j])+1)
	}
	var leaves []int32
	for j, leaf := range p.Leaf {
		if leaf {
			leaves = append(leaves, int32(j))
		}
	}
	var begin []uint64
	var index []uint32
	var value []float32
	weight := make([]float64, rows)
	begin = append(begin, 0)
	for i := range rows {
		for f := range features {
			if i > 0 && r.IntN(3) > 0 { // row 0 is empty
				index, value = append(index, uint32(f)), append(value, float32(r.NormFloat64()))
			}
		}
		begin = append(begin, uint64(len(index)))
		weight[i] = []float64{1, 1, 0.5, 2}[r.IntN(4)]
		p.Class = append(p.Class, leaves[r.IntN(len(leaves))])
	}
	p.Rows = hblr.Rows{X: &sparse.Matrix{Rows: rows, Cols: features, NNZ: int64(len(index)),
		Shards: []sparse.Shard{{Begin: begin, Index: index, Value: value}}}, Bias: bias, Weight: weight,
		Kernel: hblr.Kernels()[0]}
	p.Prepare()
	return p
}

// deep has chains of only children, leaves at all depths, and more than sixteen leaves.
var deep = []int32{-1, 0, 1, 1, 1, -1, 5, 6, 6, -1, -1, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}

// twinLikelihood is the log-likelihood, row by row and class by class.
func twinLikelihood(p *Problem, phi []float64) (sum float64) {
	columns := p.Columns()
	for i, y := range p.Class {
		x := make([]float64, columns)
		index, value := p.Rows.X.Row(i)
		for k, f := range index {
			x[f] = float64(value[k])
		}
		if p.Rows.Bias > 0 {
			x[columns-1] = p.Rows.Bias
		}
		total, own := 0.0, 0.0
		for j, leaf := range p.Leaf {
			if !leaf {
				continue
			}
			score := 0.0
			for b := int32(j); b >= 0; b = p.Parent[b] {
				for f, v := range x {
					score += v * phi[int(b)*columns+f]
				}
			}
			if int32(j) == y {
				own = score
			}
			total += math.Exp(score)
		}
		sum += p.Rows.Weight[i] * (own - math.Log(total))
	}
	return sum
}

// logNormal returns the logarithm of a normal density at x, with mean 0 and the given precision.
func logNormal(x, precision float64) float64 {
	return math.Log(precision/(2*math.Pi))/2 - precision*x*x/2
}

// TestPosterior compares likelihood and prior with plain sums, and the gradient with finite
// differences. Both kernels must give the same bits.
func TestPosterior(t *testing.T) {
	for _, bias := range []float64{0, 1.5} {
		p := made(3, 40, 5, bias, deep...)
		st := p.Start(7)
		r := rand.New(rand.NewPCG(1, 2))
		for _, list := range [][]float64{st.T, st.S} {
			for k := range list {
				list[k] = r.ExpFloat64()
			}
		}
		st.E = 0.3
		s := p.NewSolver()
		got, want := s.LogLikelihood(st.Phi), twinLikelihood(p, st.Phi)
		if math.Abs(got-want) > 1e-10*math.Abs(want) {
			t.Errorf("log-likelihood %.12g, row by row %.12g", got, want)
		}
		for k := range st.Phi {
			const h = 1e-5
			x := st.Phi[k]
			st.Phi[k] = x + h
			up := twinLikelihood(p, st.Phi)
			st.Phi[k] = x - h
			down := twinLikelihood(p, st.Phi)
			if st.Phi[k] = x; math.Abs(s.grad[k]-(up-down)/(2*h)) > 1e-5*(1+math.Abs(s.grad[k])) {
				t.Errorf("gradient %d: %g, by differences %g", k, s.grad[k], (up-down)/(2*h))
			}
		}
		prior, columns := 0.0, p.Columns()
		for j, l := range p.Level {
			for f := range columns {
				a := st.E
				if f < 5 {
					a = st.T[l] * st.S[f]
				}
				prior += logNormal(st.Phi[j*columns+f], a)
			}
		}
		for _, x := range append(append([]float64(nil), st.T...), st.S...) {
			prior -= x
		}
		if bias > 0 {
			prior -= st.E
		}
		if got := p.LogPrior(&st.Point); math.Abs(got-prior) > 1e-10*math.Abs(prior) {
			t.Errorf("log prior %.12g, want %.12g", got, prior)
		}
		gradient := append([]float64(nil), s.grad...)
		p.Rows.Kernel = hblr.Kernel{}
		other := p.NewSolver()
		if other.LogLikelihood(st.Phi) != got {
			t.Error("kernels differ")
		}
		for k, x := range other.grad {
			if x != gradient[k] {
				t.Fatalf("kernels differ at gradient %d", k)
			}
		}
	}
}

// run returns chains of `draws` draws, in `batches` batches.
func run(t *testing.T, p *Problem, chains, burn, draws, batches int) []*State {
	t.Helper()
	out := make([]*State, chains)
	s := p.NewSolver()
	for c := range out {
		out[c] = p.Start(uint64(c))
		sample := func(n int, adapt bool, seed int) Sums {
			sums, err := s.Sample(context.Background(), out[c], Options{Iterations: n, Adapt: adapt, Leapfrog: 30, Every: 7,
				Keep: 50, Seed: uint64(seed)})
			if err != nil {
				t.Fatal(err)
			}
			return sums
		}
		sample(burn, true, 1000*c)
		for b := range batches {
			if sums := sample(draws/batches, false, 1000*c+b+1); sums.Accepted < 0.4*float64(sums.Iterations) {
				t.Errorf("chain %d: acceptance %g", c, sums.Accepted/float64(sums.Iterations))
			}
		}
	}
	return out
}

// moments returns the mean of watched quantity k and its standard error.
func moments(chains []*State, k int) (mean, se float64) {
	n, list := 0.0, []float64(nil)
	for _, c := range chains {
		for _, b := range c.Batches {
			mean += b.Sum[k]
			n += float64(b.Draws)
			list = append(list, b.Sum[k]/float64(b.Draws))
		}
	}
	mean /= n
	for _, m := range list {
		se += (m - mean) * (m - mean)
	}
	return mean, math.Sqrt(se / float64(len(list)-1) / float64(len(list)))
}

// TestQuadrature has two classes and one feature, so that the posterior is an integral over the
// difference d of the classes' coefficients and both precisions, T and S. It compares the means of
// d and of log T with those of the integral.
func TestQuadrature(t *testing.T) {
	p := made(11, 12, 1, 0, -1, -1)
	chains := run(t, p, 4, 500, 8000, 40)
	if d := Diagnose(chains); d.RHat > 1.05 || d.ESS < 400 || d.Draws != 32000 {
		t.Errorf("%+v", d)
	}
	var total, diff, logT float64
	const cells = 60
	for d := -12.0; d <= 12; d += 0.05 {
		likelihood := math.Exp(twinLikelihood(p, []float64{d, 0}))
		for a := range cells {
			for b := range cells {
				u, v := -9+12.5*float64(a)/cells, -9+12.5*float64(b)/cells // logarithms
				w := likelihood * math.Exp(logNormal(d, math.Exp(u+v)/2)-math.Exp(u)-math.Exp(v)+u+v)
				total += w
				diff += w * d
				logT += w * u
			}
		}
	}
	first, se1 := moments(chains, 0)
	second, se2 := moments(chains, 1)
	if want, got := diff/total, first-second; math.Abs(got-want) > 4*(se1+se2) || se1+se2 > 0.1 {
		t.Errorf("mean difference %.4f, the integral gives %.4f (errors %.4f, %.4f)", got, want, se1, se2)
	}
	got, se := moments(chains, 2)
	if want := logT / total; math.Abs(got-want) > 4*se || se > 0.05 {
		t.Errorf("mean log T %.4f, the integral gives %.4f (error %.4f)", got, want, se)
	}
}

// TestPrior checks that rows of weight 0 leave draws of the prior, whose logarithm of a precision
// has the mean -0.5772 (minus Euler's constant).
func TestPrior(t *testing.T) {
	p := made(5, 6, 2, 1, -1, 0, 0, -1)
	clear(p.Rows.Weight)
	p.Rows.Weight[0] = 1 // an empty row with a bias only
	p.Prepare()
	p.Rows.Weight[0] = 0
	chains := run(t, p, 4, 500, 12000, 40)
	n := 4 * p.Columns()
	for k := n; k < n+5; k++ { // two levels, two features, the bias
		if mean, se := moments(chains, k); math.Abs(mean+0.5772) > 4*se || se > 0.15 {
			t.Errorf("precision %d: mean of the logarithm %.3f (error %.3f), want -0.577", k-n, mean, se)
		}
	}
}

// TestDiagnose checks that draws of known autocorrelation have the corresponding effective sample
// size, and that chains at different places are told apart.
func TestDiagnose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	chains := func(rho, apart float64) (out []*State) {
		for c := range 4 {
			st, x := &State{}, 0.0
			for range 30 {
				b := Batch{Draws: 100, Sum: make([]float64, 1), Square: make([]float64, 1)}
				for range b.Draws {
					x = rho*x + math.Sqrt(1-rho*rho)*r.NormFloat64()
					y := x + apart*float64(c)
					b.Sum[0] += y
					b.Square[0] += y * y
				}
				st.Draws += b.Draws
				st.Batches = append(st.Batches, b)
			}
			out = append(out, st)
		}
		return out
	}
	for _, rho := range []float64{0, 0.5, 0.8} {
		d := Diagnose(chains(rho, 0))
		if want := 12000 * (1 - rho) / (1 + rho); math.Abs(d.ESS-want) > 0.4*want || d.RHat > 1.03 || d.RHat < 0.99 {
			t.Errorf("autocorrelation %g: %+v, want ESS %g", rho, d, want)
		}
	}
	if d := Diagnose(chains(0, 1)); d.RHat < 1.3 || d.ESS > 500 {
		t.Errorf("chains apart: %+v", d)
	}
	if d := Diagnose([]*State{{}}); d.RHat != 0 || d.ESS != 0 {
		t.Errorf("no draws: %+v", d)
	}
}

func BenchmarkGradient(b *testing.B) {
	p := made(1, 2000, 80, 1, deep...)
	s, st := p.NewSolver(), p.Start(1)
	for b.Loop() {
		s.LogLikelihood(st.Phi)
	}
	b.ReportMetric(float64(b.N)*float64(p.Rows.X.NNZ+int64(p.Rows.X.Rows))*float64(len(s.exp))/b.Elapsed().Seconds()/1e6,
		"Mvisits/s")
}
