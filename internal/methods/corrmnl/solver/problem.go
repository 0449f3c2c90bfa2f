package solver

import (
	"math"
	"slices"

	hblr "taxon/internal/methods/hblr/solver"
)

// Problem holds the data and the tree. It is read-only once Prepare has been called.
type Problem struct {
	Rows hblr.Rows
	// Class is the branch of each row's class, which is a leaf.
	Class []int32
	// Parent is the branch above each branch. It has a smaller number than the branch. It is -1 for
	// a branch directly below the root.
	Parent []int32
	Leaf   []bool
	// Level holds the level of each branch, from 0.
	Level  []int32
	Levels int

	// info is the rows' part of the masses, in the order of Phi.
	info []float64
}

// Columns returns the length of a branch's coefficients.
func (p *Problem) Columns() int { return p.Rows.Columns() }

// Features returns the number of columns without the bias.
func (p *Problem) Features() int { return p.Rows.X.Cols }

// Prepare computes the rows' part of the masses.
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
	// Phi holds the coefficients branch by branch.
	Phi []float64
	// T and S are the precisions of levels and features.
	T, S []float64
	// E is the precision of the intercepts. Without a bias it is 1.
	E float64
}

// precision returns the precision of branch j's coefficient of column f.
func (p *Problem) precision(at *Point, j, f int) float64 {
	if f == p.Features() {
		return at.E
	}
	return at.T[p.Level[j]] * at.S[f]
}

// LogPrior returns the logarithm of the density of phi and the precisions, all constants included.
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

// logs returns the logarithms of x.
func logs(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = hblr.Log(v)
	}
	return out
}

// Solver is the working memory of one goroutine.
type Solver struct {
	p      *Problem
	blocks []block
	// place is the index of a leaf's branch among the leaves.
	place []int32
	// node holds the vectors of all nodes, in the order of Phi.
	node []float64
	// w and g belong to a block of leaves, column by column, with lanes side by side.
	w, g []float64
	// exp belongs to a row.
	exp []float64
	// grad is the gradient of the log-likelihood, in the order of Phi.
	grad []float64
}

// block holds up to sixteen leaves and their scores. The scores are stored row by row, with `lanes`
// numbers per row.
type block struct {
	// leaves lists the leaves' branches.
	leaves []int32
	lanes  int
	score  []float64
}

// NewSolver returns a solver for the problem.
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

// sums sets node to the vectors of all nodes, which are sums along the paths, and returns it.
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

// add sets y += x.
func add(y, x []float64) {
	for i, v := range x {
		y[i] += v
	}
}

// LogLikelihood returns the log-likelihood of the rows, each multiplied by its weight. It sets grad
// to the gradient with respect to phi.
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

// value returns the log-likelihood without computing the gradient.
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

// residuals replaces the scores by t - p, multiplied by the rows' weights, and returns the
// log-likelihood.
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
