package solver

import (
	"context"
	"math"
	"math/rand/v2"

	hblr "taxon/internal/methods/hblr/solver"
)

// State is the state of a chain. It holds the current point, the fit of the step size, and what is
// kept of the draws.
type State struct {
	Point
	Adaptation
	// Draws is the number of draws after the burn-in.
	Draws int
	// Batches holds sums over these draws, for Diagnose.
	Batches []Batch
	// Kept holds the nodes' vectors at some draws, evenly spaced.
	Kept [][]float32
}

// Batch describes the draws of one call of Sample. It holds the sums, and the sums of squares, of
// all watched quantities. These are phi, the logarithms of T, S and E, the log-likelihood and the
// logarithm of the posterior's density.
type Batch struct {
	Draws       int
	Sum, Square []float64
}

// Adaptation fits the step size by dual averaging of the acceptance (Hoffman and Gelman 2014, 3.2).
type Adaptation struct {
	LogStep, LogMean, Error, Center float64
	Count                           int
}

// wanted is the acceptance that the step size aims at. trajectory is the greatest length of a
// trajectory, in standard deviations of a normal posterior.
const (
	wanted     = 0.8
	trajectory = math.Pi / 2
)

// update adapts the step size to the acceptance of the last trajectory.
func (a *Adaptation) update(accept float64) {
	a.Count++
	n := float64(a.Count)
	eta := 1 / (n + 10)
	a.Error += float64(eta * (wanted - accept - a.Error))
	a.LogStep = a.Center - float64(math.Sqrt(n)/0.05*a.Error)
	weight := hblr.Exp(-0.75 * hblr.Log(n))
	a.LogMean += float64(weight * (a.LogStep - a.LogMean))
}

// step returns the step size. While it is adapted, this is the last fitted one, and afterwards the
// average.
func (a *Adaptation) step(adapt bool) float64 {
	if adapt {
		return hblr.Exp(a.LogStep)
	}
	return hblr.Exp(a.LogMean)
}

// Options says what Sample does.
type Options struct {
	Iterations int
	// Adapt is set during the burn-in, in which the step size is fitted and no draw counts.
	Adapt bool
	// Leapfrog bounds the steps of a trajectory.
	Leapfrog int
	// Every is the number of draws from one that is kept to the next.
	Every int
	// Keep bounds the number of draws kept in all.
	Keep int
	// Seed determines the random numbers.
	Seed uint64
}

// Sums are the figures of a call of Sample.
type Sums struct {
	// Gradients and Values count passes over the data, for gradients and for the likelihood alone.
	Iterations, Gradients, Values int
	// Energy is the sum of -log of the posterior's density over the iterations.
	Energy float64
	// Accepted is the sum of acceptance probabilities.
	Accepted float64
	// Diverged counts trajectories whose energy rose by 1000 or left the range of numbers.
	Diverged int
}

// source is a generator of random numbers with the same bits on every machine.
type source struct {
	*rand.Rand
	spare float64
	has   bool
}

func newSource(seed, stream uint64) *source {
	return &source{Rand: rand.New(rand.NewPCG(seed, stream))}
}

// normal returns a standard normal number (Marsaglia's polar method).
func (r *source) normal() float64 {
	if r.has {
		r.has = false
		return r.spare
	}
	for {
		u, v := 2*r.Float64()-1, 2*r.Float64()-1
		if s := float64(u*u) + float64(v*v); s > 0 && s < 1 {
			m := math.Sqrt(-2 * hblr.Log(s) / s)
			r.spare, r.has = v*m, true
			return u * m
		}
	}
}

// gamma returns a number of the Gamma distribution with a shape of 1 or more (Marsaglia and Tsang
// 2000).
func (r *source) gamma(shape, rate float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = float64(v*v) * v
		u := 1 - r.Float64()
		if hblr.Log(u) < float64(x*x)/2+float64(d*(1-v+hblr.Log(v))) {
			return d * v / rate
		}
	}
}

// Start returns the beginning of a chain. The precisions are 1, and phi is drawn from a wider
// distribution than the posterior, so that chains that agree have come from far apart.
func (p *Problem) Start(seed uint64) *State {
	r := newSource(seed, 1)
	st := &State{Point: Point{Phi: make([]float64, len(p.Parent)*p.Columns()), T: ones(p.Levels), S: ones(p.Features()),
		E: 1}}
	for k, info := range p.info {
		st.Phi[k] = 2 * r.normal() / math.Sqrt(1+info)
	}
	st.LogStep = hblr.Log(0.5)
	st.Center, st.LogMean = st.LogStep+hblr.Log(10), st.LogStep
	return st
}

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// Sample continues the chain st in place. It returns an error only if ctx is cancelled.
func (s *Solver) Sample(ctx context.Context, st *State, o Options) (Sums, error) {
	c := &chain{Solver: s, st: st, r: newSource(o.Seed, 2), o: o, mass: make([]float64, len(st.Phi)),
		momentum: make([]float64, len(st.Phi)), last: make([]float64, len(st.Phi)), below: make([][]int32, len(s.p.Parent)+1)}
	for j, a := range s.p.Parent {
		c.below[a+1] = append(c.below[a+1], int32(j))
	}
	batch := Batch{}
	if !o.Adapt {
		batch = Batch{Sum: make([]float64, s.p.Watched()), Square: make([]float64, s.p.Watched())}
	}
	var sums Sums
	for range o.Iterations {
		if err := ctx.Err(); err != nil {
			return sums, err
		}
		likelihood := c.move(&sums)
		c.shift()
		c.precisions()
		likelihood = c.scale(likelihood, &sums)
		c.balance()
		posterior := likelihood + s.p.LogPrior(&st.Point)
		sums.Iterations++
		sums.Energy -= posterior
		if o.Adapt {
			continue
		}
		st.Draws++
		batch.Draws++
		s.p.watch(&st.Point, likelihood, posterior, func(k int, x float64) {
			batch.Sum[k] += x
			batch.Square[k] += float64(x * x)
		})
		if st.Draws%o.Every == 0 && len(st.Kept) < o.Keep {
			st.Kept = append(st.Kept, s.Vectors(st.Phi))
		}
	}
	if batch.Draws > 0 {
		st.Batches = append(st.Batches, batch)
	}
	return sums, nil
}

// Vectors returns the vectors of all nodes: the sums of phi along their paths.
func (s *Solver) Vectors(phi []float64) []float32 {
	out := make([]float32, len(phi))
	for k, x := range s.sums(phi) {
		out[k] = float32(x)
	}
	return out
}

// Watched returns the number of watched quantities.
func (p *Problem) Watched() int {
	n := len(p.Parent)*p.Columns() + p.Levels + p.Features() + 2
	if p.Rows.Bias > 0 {
		n++
	}
	return n
}

// watch calls visit with each watched quantity.
func (p *Problem) watch(at *Point, likelihood, posterior float64, visit func(k int, x float64)) {
	k := 0
	next := func(x float64) { visit(k, x); k++ }
	for _, x := range at.Phi {
		next(x)
	}
	for _, list := range [][]float64{at.T, at.S} {
		for _, x := range list {
			next(hblr.Log(x))
		}
	}
	if p.Rows.Bias > 0 {
		next(hblr.Log(at.E))
	}
	next(likelihood)
	next(posterior)
}

// chain is the state of a running Sample.
type chain struct {
	*Solver
	st                   *State
	r                    *source
	o                    Options
	mass, momentum, last []float64
	// below lists the branches below the root, and those below branch j at j+1.
	below [][]int32
}

// energy returns U + K at a point whose log-likelihood is known.
func (c *chain) energy(likelihood float64) float64 {
	sum, columns := 0.0, c.p.Columns()
	for j := range c.p.Parent {
		for f := range columns {
			k := j*columns + f
			sum += float64(c.p.precision(&c.st.Point, j, f)*c.st.Phi[k]*c.st.Phi[k]) +
				float64(c.momentum[k]*c.momentum[k])/c.mass[k]
		}
	}
	return sum/2 - likelihood
}

// kick moves the momenta by -h grad U.
func (c *chain) kick(h float64) {
	columns := c.p.Columns()
	for j := range c.p.Parent {
		for f := range columns {
			k := j*columns + f
			c.momentum[k] += float64(h * (c.grad[k] - float64(c.p.precision(&c.st.Point, j, f)*c.st.Phi[k])))
		}
	}
}

// move runs a trajectory. It returns the log-likelihood of the chain's new point.
func (c *chain) move(sums *Sums) float64 {
	st, columns := c.st, c.p.Columns()
	for j := range c.p.Parent {
		for f := range columns {
			k := j*columns + f
			c.mass[k] = c.p.precision(&st.Point, j, f) + c.p.info[k]
			c.momentum[k] = c.r.normal() * math.Sqrt(c.mass[k])
		}
	}
	size := st.step(c.o.Adapt)
	steps := int(min(max(math.Ceil(trajectory/size), 1), float64(c.o.Leapfrog)))
	size *= 0.9 + float64(0.2*c.r.Float64())
	copy(c.last, st.Phi)
	before := c.LogLikelihood(st.Phi)
	start := c.energy(before)
	likelihood := before
	for range steps {
		c.kick(size / 2)
		for k := range st.Phi {
			st.Phi[k] += float64(size * c.momentum[k] / c.mass[k])
		}
		likelihood = c.LogLikelihood(st.Phi)
		sums.Gradients++
		c.kick(size / 2)
	}
	rise := c.energy(likelihood) - start
	accept := 0.0
	if rise < 1000 {
		accept = hblr.Exp(-max(rise, 0))
	} else {
		sums.Diverged++
	}
	sums.Accepted += accept
	if c.o.Adapt {
		st.update(accept)
	}
	if !(c.r.Float64() < accept) {
		copy(st.Phi, c.last)
		return before
	}
	return likelihood
}
