package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// graphPaths lists the options that change the path to a graph's optimum.
var graphPaths = [][]string{
	{"--x", "stiffness=full"},
	{"--x", "momentum=none"},
	{"--x", "schedule=colour"},
	{"--x", "schedule=colour", "--x", "colouring=smallest-last"},
	{"--x", "schedule=colour", "--x", "colouring=dsatur"},
	{"--x", "schedule=jacobi"},
}

// TestGraphs checks that anchored graphs of every unusual kind reach the optimum of the reference.
func TestGraphs(t *testing.T) {
	all := settings()
	for k, kind := range graphKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for s, setting := range all {
				if !full() && (s+3*k)%7 != 0 {
					continue
				}
				t.Run(setting.String(), func(t *testing.T) {
					check(t, setting.apply(kind.make(rand.New(rand.NewPCG(uint64(k), uint64(s))))))
				})
			}
		})
	}
}

// TestRandomGraphs generates random graphs.
func TestRandomGraphs(t *testing.T) {
	all, count := settings(), 20
	if full() {
		count = 300
	}
	for seed := range count {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			p := graphKinds[len(graphKinds)-1].make(rand.New(rand.NewPCG(uint64(seed), 5)))
			check(t, all[seed%len(all)].apply(p))
		})
	}
}

// TestEveryPathOfAGraph checks that schedules and colourings reach the same optimum.
func TestEveryPathOfAGraph(t *testing.T) {
	for k, kind := range graphKinds {
		if !full() && k%4 != 1 {
			continue
		}
		for _, path := range graphPaths {
			t.Run(kind.name+"/"+fmt.Sprint(path), func(t *testing.T) {
				t.Parallel()
				p := setting{1, 1, k%2 == 0}.apply(kind.make(rand.New(rand.NewPCG(uint64(k), 9))))
				p.Anchor = 0.3
				m := check(t, p, path...)
				if path[1] == "colour" && m.Colours < 2 {
					t.Errorf("%d colours", m.Colours)
				}
			})
		}
	}
}

// TestEdgeWeights checks --internal-weight on trees and graphs.
func TestEdgeWeights(t *testing.T) {
	for k, kind := range []kind{kinds[0], kinds[1], graphKinds[6], graphKinds[7], graphKinds[8]} {
		for s, b := range []float64{0.3, 3} {
			t.Run(fmt.Sprint(kind.name, " b=", b), func(t *testing.T) {
				t.Parallel()
				p := setting{[]float64{0.1, 1, 10}[(k+s)%3], 1, (k+s)%2 == 0}.apply(kind.make(rand.New(rand.NewPCG(uint64(k), 21))))
				p.Inner = b
				check(t, p)
				if k > 1 {
					check(t, p, "--x", "schedule=colour")
				} else {
					check(t, p, "--x", "schedule=parity")
				}
			})
		}
	}
}

// TestPulls checks --bias-pull zero on trees and graphs, --edge-weights on trees, and --cost-by on
// graphs, with all losses and schedules: the optimum, and a certificate that bounds it.
func TestPulls(t *testing.T) {
	for k, kind := range []kind{kinds[0], kinds[1], kinds[2], graphKinds[6], graphKinds[7], graphKinds[8]} {
		for s, by := range []string{"", "depth", "size"} {
			t.Run(fmt.Sprint(kind.name, " ", by), func(t *testing.T) {
				t.Parallel()
				p := setting{[]float64{0.1, 1, 10}[(k+s)%3], 1, (k+s)%2 == 0}.apply(kind.make(rand.New(rand.NewPCG(uint64(k), 33))))
				p.Apart = s != 1 || p.IsGraph
				p.Logistic = (k+s)%4 == 1
				if s == 2 {
					p.Inner = 0.7
				}
				schedule := []string{"parity", "jacobi"}[s%2]
				if p.IsGraph {
					schedule, p.Degree = "colour", s > 0
				} else {
					p.EdgesBy = by
				}
				check(t, p)
				if !p.Logistic {
					check(t, p, "--x", "schedule="+schedule)
				}
			})
		}
	}
}

// TestNoAnchor checks that the papers' objective has no certificate: the job ends stationary, with
// the objective of its own weights. The optimum with the smallest anchor is a lower bound, and at
// the end P is close to it.
func TestNoAnchor(t *testing.T) {
	for _, k := range []int{0, 1, 6} {
		p := setting{1, 1, k == 1}.apply(graphKinds[k].make(rand.New(rand.NewPCG(uint64(k), 3))))
		p.Anchor = 1e-6
		low := p.Solve(1e-9)
		p.Anchor = 0
		m, err := train(t, p, "--gap", "1e-4")
		if err != nil {
			t.Fatal(err)
		}
		if m.StoppedBy != "stationary" {
			t.Errorf("%s: stopped by %s", graphKinds[k].name, m.StoppedBy)
		}
		if own := p.Primal(m.w); math.Abs(own-m.Objective) > 1e-9*own {
			t.Errorf("objective %v, the weights give %v", m.Objective, own)
		}
		// the two objectives differ by lambda0/2 sum ||w||^2 only
		if m.Objective > low.Primal*(1+1e-3) || m.Objective < low.Dual*(1-1e-3) {
			t.Errorf("%s: objective %v, with a least anchor %v", graphKinds[k].name, m.Objective, low.Primal)
		}
	}
}
