package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// gridVariable enables the full grid: every kind with every C, loss and bias, every schedule, and
// more random problems. Its only value is "full".
const gridVariable = "TAXON_TEST_EXACT"

func full() bool { return os.Getenv(gridVariable) == "full" }

const tolerance = 1e-5

// setting is one point of the grid.
type setting struct {
	c, bias float64
	squared bool
}

func (s setting) String() string {
	loss := "hinge"
	if s.squared {
		loss = "squared"
	}
	return fmt.Sprintf("C=%v/%s/bias=%v", s.c, loss, s.bias)
}

func settings() []setting {
	var all []setting
	for _, c := range []float64{1, 0.01, 10, 100, 0.1} {
		for _, squared := range []bool{false, true} {
			for _, bias := range []float64{1, 0} {
				all = append(all, setting{c, bias, squared})
			}
		}
	}
	return all
}

func (s setting) apply(p *Problem) *Problem {
	p.C, p.Bias, p.Squared = s.c, s.bias, s.squared
	return p
}

// check trains the problem and compares every claim of the result with the reference.
func check(t *testing.T, p *Problem, flags ...string) *trained {
	t.Helper()
	best := p.Solve(1e-10)
	if !(best.Width() < sure) {
		t.Fatalf("the reference did not find the optimum: %v .. %v", best.Dual, best.Primal)
	}
	m, err := train(t, p, append([]string{"--gap", format(tolerance)}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	failed := t.Failed()
	nodes := p.Nodes()
	if !sameNodes(m.nodes, nodes) {
		t.Fatalf("exported nodes %v, want %v", m.nodes, nodes)
	}
	terminals := 0
	for _, n := range nodes {
		if n.Terminal {
			terminals++
		}
	}
	if m.Nodes != len(nodes) || m.Terminals != terminals || m.Instances != len(p.Rows) || m.Features != len(p.Columns()) {
		t.Errorf("%d nodes, %d terminals, %d instances, %d features, want %d, %d, %d, %d",
			m.Nodes, m.Terminals, m.Instances, m.Features, len(nodes), terminals, len(p.Rows), len(p.Columns()))
	}
	if m.StoppedBy != "gap" || !(m.Gap <= tolerance) || !(m.Gap >= 0) {
		t.Errorf("stopped by %s at gap %.3g after %d sweeps, %.1f s", m.StoppedBy, m.Gap, m.Sweeps, m.Seconds)
	}
	// compared with the sharp end of the bracket, within 1e-9, which is the accuracy of P and D
	if above := (m.Objective - best.Dual) / best.Dual; above > tolerance {
		t.Errorf("objective %v is %.2e above the optimum %v", m.Objective, above, best.Dual)
	}
	if m.Objective < best.Dual*(1-1e-9) {
		t.Errorf("objective %v is below the optimum, which is at least %v", m.Objective, best.Dual)
	}
	if m.Dual > best.Primal*(1+1e-9) {
		t.Errorf("dual %v is above the optimum, which is at most %v", m.Dual, best.Primal)
	}
	if real := (m.Objective - best.Primal) / m.Objective; m.Gap < real-1e-9 {
		t.Errorf("gap %.4e, the true one is %.4e", m.Gap, real)
	}
	if gap := (m.Objective - m.Dual) / m.Objective; math.Abs(gap-m.Gap) > 1e-12 {
		t.Errorf("gap %v, but objective %v and dual %v give %v", m.Gap, m.Objective, m.Dual, gap)
	}
	if own := p.Primal(m.w); math.Abs(own-m.Objective) > 1e-9*m.Objective {
		t.Errorf("objective %v, the exported weights give %v (%.1e relative)", m.Objective, own, own/m.Objective-1)
	}
	if !failed && t.Failed() {
		t.Logf("data:\n%sstructure:\n%s", p.Data(), p.Hierarchy())
	}
	return m
}

// TestExact checks, for every unusual kind of problem, that the reported objective is the optimum
// up to the gap, that the exported weights give it, and that the reported dual and gap are bounds.
// By default each kind is tried at a few settings, which vary so that all pairs of C, loss and bias
// meet many kinds.
func TestExact(t *testing.T) {
	all, tried := settings(), kinds
	if full() {
		tried = slices.Concat(kinds, counts)
	}
	for k, kind := range tried {
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

// TestExactRandom generates random problems.
func TestExactRandom(t *testing.T) {
	all, count := settings(), 25
	if full() {
		count = 400
	}
	for seed := range count {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			check(t, all[seed%len(all)].apply(randomProblem(rand.New(rand.NewPCG(uint64(seed), 4)))))
		})
	}
}

// TestBaselineIsFlat checks that bsvm ignores the structure.
func TestBaselineIsFlat(t *testing.T) {
	p := setting{c: 1, bias: 1}.apply(kinds[0].make(rand.New(rand.NewPCG(1, 1))))
	p.Edges = nil
	check(t, p, "--method", "bsvm")
}

// paths lists the options that change the path to the optimum.
var paths = [][]string{
	{"--x", "schedule=twoblock", "--x", "stiffness=support", "--x", "momentum=fista"},
	{"--x", "schedule=twoblock", "--x", "stiffness=support", "--x", "momentum=none"},
	{"--x", "schedule=twoblock", "--x", "stiffness=full", "--x", "momentum=fista"},
	{"--x", "schedule=twoblock", "--x", "stiffness=full", "--x", "momentum=none"},
	{"--x", "schedule=parity"},
	{"--x", "schedule=colour"},
	{"--x", "schedule=jacobi"},
	{"--seed", "1"},
	{"--seed", "18446744073709551615"},
	{"--x", "epochs=1"},
}

// TestEveryPathReachesTheOptimum checks that schedules, momentum, stiffness and seeds change the
// path, but not the result.
func TestEveryPathReachesTheOptimum(t *testing.T) {
	for k, kind := range kinds {
		if !full() && k%4 != 1 {
			continue
		}
		for s, setting := range []setting{{0.1, 1, false}, {1, 0, true}, {10, 1, false}, {1, 1, false}} {
			if !full() && s != k/4%4 {
				continue
			}
			t.Run(kind.name+"/"+setting.String(), func(t *testing.T) {
				t.Parallel()
				for _, path := range paths {
					t.Run(path[len(path)-1], func(t *testing.T) {
						check(t, setting.apply(kind.make(rand.New(rand.NewPCG(uint64(k), 9)))), path...)
					})
				}
			})
		}
	}
}

// TestSeedChangesThePath checks that the seed is used.
func TestSeedChangesThePath(t *testing.T) {
	weights := map[string]bool{}
	for _, seed := range []string{"0", "1", "2"} {
		p := setting{c: 1, bias: 1}.apply(kinds[0].make(rand.New(rand.NewPCG(3, 3))))
		weights[check(t, p, "--seed", seed).WeightsSHA256] = true
	}
	if len(weights) == 1 {
		t.Error("three seeds gave the same weights")
	}
}
