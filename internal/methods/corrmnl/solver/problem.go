package solver

import (
	"math"
	"slices"

	hblr "taxon/internal/methods/hblr/solver"
)

// Problem is the data and the tree. Read-only, but for the scratch of its Solvers.
type Problem struct {
	Rows   hblr.Rows
	Class  []int32 // of each row: its branch, a leaf
	Parent []int32 // of each branch: the one above, before it in order; -1: it hangs below the root
	Leaf   []bool
	Level  []int32 // from 0
	Levels int

	info []float64 // the rows' part of the masses, as Phi
}

// Columns is the length of a branch's coefficients.
func (p *Problem) Columns() int { return p.Rows.Columns() }

// Features are the columns but the bias.
func (p *Problem) Features() int { return p.Rows.X.Cols }

// Prepare finds what the masses take from the rows.
func (p *Problem) Prepare() {
	share, total := make([]float64, len(p.Parent)), p.Rows.Total()
	for i, y := range p.Class {
		for j := y; j >= 0; j = p.Parent[j] {
			share[j] += p.Rows.WeightOf(i) / total
		}
	}
	squares, columns := p.Rows.Squares(), p.Columns()
	p.info = make([]float64, len(p.Parent)*columns)
	for j, q := range share {
		for f, s := range squares {
			p.info[j*columns+f] = s * max(q*(1-q), 0)
		}
	}
}

// Point is the current point of a chain.
type Point struct {
	Phi  []float64 // branch by branch
	T, S []float64 // precisions of levels and features
	E    float64   // of the intercepts; without a bias it is 1
}

// precision is that of branch j's coefficient of column f.
func (p *Problem) precision(at *Point, j, f int) float64 {
	if f == p.Features() {
		return at.E
	}
	return at.T[p.Level[j]] * at.S[f]
}

// LogPrior is the logarithm of the density of phi and the precisions, all constants included.
func (p *Problem) LogPrior(at *Point) (sum float64) {
	columns := p.Columns()
	logT, logS := logs(at.T), logs(at.S)
	logE := hblr.Log(at.E)
	for j := range p.Parent {
		for f := range columns {
			x, log := at.Phi[j*columns+f], logE
			if f < p.Features() {
				log = logT[p.Level[j]] + logS[f]
			}
			sum += (log - float64(p.precision(at, j, f)*x*x) - log2Pi) / 2
		}
	}
	for _, list := range [][]float64{at.T, at.S} {
		for _, x := range list {
			sum -= x
		}
	}
	if p.Rows.Bias > 0 {
		sum -= at.E
	}
	return sum
}

var log2Pi = hblr.Log(2 * math.Pi)

func logs(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = hblr.Log(v)
	}
	return out
}

// Solver is the scratch of one goroutine.
type Solver struct {
	p      *Problem
	blocks []block
	place  []int32   // leaf's branch -> its place among leaves
	node   []float64 // vectors of all nodes, as Phi
	w, g   []float64 // of a block of leaves, column by column, lanes side by side
	exp    []float64 // of a row
	grad   []float64 // of the log-likelihood, as Phi
}

// block are some leaves, sixteen at most, and their scores, row by row of `lanes` numbers.
type block struct {
	leaves []int32 // branches
	lanes  int
	score  []float64
}

// NewSolver makes scratch.
func (p *Problem) NewSolver() *Solver {
	size := len(p.Parent) * p.Columns()
	s := &Solver{p: p, place: make([]int32, len(p.Parent)), node: make([]float64, size), grad: make([]float64, size)}
	leaves := []int32(nil)
	for j, leaf := range p.Leaf {
		if leaf {
			s.place[j] = int32(len(leaves))
			leaves = append(leaves, int32(j))
		}
	}
	s.exp = make([]float64, len(leaves))
	s.w, s.g = make([]float64, hblr.Lanes*p.Columns()), make([]float64, hblr.Lanes*p.Columns())
	for b := range slices.Chunk(leaves, hblr.Lanes) {
		lanes := (len(b) + 3) / 4 * 4 // whole quarters of a kernel's line
		s.blocks = append(s.blocks, block{b, lanes, make([]float64, len(p.Class)*lanes)})
	}
	return s
}

// sums sets node to the vectors of all nodes, which are sums along the paths.
func (s *Solver) sums(phi []float64) []float64 {
	columns := s.p.Columns()
	copy(s.node, phi)
	for j, a := range s.p.Parent {
		if a >= 0 {
			add(s.node[j*columns:][:columns], s.node[int(a)*columns:][:columns])
		}
	}
	return s.node
}

func add(y, x []float64) {
	for i, v := range x {
		y[i] += v
	}
}

// LogLikelihood is that of the rows, by their weights; grad is set to its gradient in phi.
func (s *Solver) LogLikelihood(phi []float64) float64 {
	p, columns := s.p, s.p.Columns()
	sum := s.value(phi)
	clear(s.grad)
	for _, b := range s.blocks {
		g := s.g[:b.lanes*columns]
		clear(g)
		p.Rows.Gather(b.score, g, b.lanes)
		for l, j := range b.leaves {
			to := s.grad[int(j)*columns:][:columns]
			for f := range to {
				to[f] = g[f*b.lanes+l]
			}
		}
	}
	for j := len(p.Parent) - 1; j >= 0; j-- {
		if a := p.Parent[j]; a >= 0 {
			add(s.grad[int(a)*columns:][:columns], s.grad[j*columns:][:columns])
		}
	}
	return sum
}

// value is LogLikelihood alone, without the gradient.
func (s *Solver) value(phi []float64) float64 {
	p, columns := s.p, s.p.Columns()
	node := s.sums(phi)
	for _, b := range s.blocks {
		w := s.w[:b.lanes*columns]
		clear(w)
		for l, j := range b.leaves {
			for f, x := range node[int(j)*columns:][:columns] {
				w[f*b.lanes+l] = x
			}
		}
		p.Rows.Scores(w, b.score, b.lanes)
	}
	return s.residuals()
}

// residuals turns the scores into t - p, by the rows' weights, and gives the log-likelihood.
func (s *Solver) residuals() (sum float64) {
	for i, y := range s.p.Class {
		most := math.Inf(-1)
		for _, b := range s.blocks {
			for _, x := range b.score[i*b.lanes:][:len(b.leaves)] {
				most = max(most, x)
			}
		}
		own, weight := int(s.place[y]), s.p.Rows.WeightOf(i)
		at, total, score := 0, 0.0, 0.0
		for _, b := range s.blocks {
			for _, x := range b.score[i*b.lanes:][:len(b.leaves)] {
				if at == own {
					score = x - most
				}
				e := hblr.Exp(x - most)
				s.exp[at] = e
				total += e
				at++
			}
		}
		sum += float64(weight * (score - hblr.Log(total)))
		s.exp[own] -= total // t - p = -(exp - total t) / total
		by, rest := -weight/total, s.exp
		for _, b := range s.blocks {
			line := b.score[i*b.lanes:][:len(b.leaves)]
			for l, e := range rest[:len(line)] {
				line[l] = by * e
			}
			rest = rest[len(line):]
		}
	}
	return sum
}
