package drift

import (
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/sparse"
	"taxon/internal/taxonomy"
)

// problem is a graph over classes a.. whose rows are dense and bear the classes listed.
func problem(t *testing.T, edges [][2]int, classes int, bias float64, rows [][]float32, bears [][]int) *Problem {
	t.Helper()
	s := &taxonomy.Structure{}
	last := classes
	for _, e := range edges {
		last = max(last, e[0]+1, e[1]+1)
		s.Parents, s.Children = append(s.Parents, uint32(e[0])), append(s.Children, uint32(e[1]))
	}
	for n := range last {
		s.Names = append(s.Names, string(rune('a'+n)))
	}
	counts := make([]int, classes)
	positives := make([][]uint32, classes)
	index := make([][]uint32, len(rows))
	for i, of := range bears {
		for _, c := range of {
			counts[c]++
			positives[c] = append(positives[c], uint32(i))
		}
		for f := range rows[i] {
			index[i] = append(index[i], uint32(f))
		}
	}
	g, _, err := taxonomy.BuildGraph(s, s.Names[:classes], counts)
	if err != nil {
		t.Fatal(err)
	}
	return &Problem{
		Graph: g, Rows: sparse.FromRows(len(rows[0]), index, rows), Bias: bias,
		Positives: func(n int32) []uint32 { return positives[g.Label[n]] },
	}
}

// TestFind by hand. Classes a, b hang together by the internal node c, or d, e do.
func TestFind(t *testing.T) {
	joined := [][2]int{{0, 2}, {1, 2}}
	for _, test := range []struct {
		name     string
		edges    [][2]int
		classes  int
		bias     float64
		rows     [][]float32
		bears    [][]int
		drifting int
		features int
	}{
		{"every row bears one of two", joined, 2, 1, [][]float32{{1, 0}, {0, 1}}, [][]int{{0}, {1}}, 0, 0},
		{"a row with neither, on a feature of its own", joined, 2, 1, [][]float32{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, [][]int{{0}, {1}, {}}, 1, 1},
		{"a row with both", joined, 2, 1, [][]float32{{1, 0, 0}, {0, 1, 0}, {0, 0, -2}}, [][]int{{0}, {1}, {0, 1}}, 1, 1},
		{"the feature has both signs in rows with neither", joined, 2, 0, [][]float32{{1, 0}, {1, 0}, {0, 1}, {0, -1}}, [][]int{{0}, {1}, {}, {}}, 0, 0},
		{"only along a combination: u = (1, -1)", joined, 2, 0, [][]float32{{1, 1}, {2, 2}, {1, 2}, {3, 4}}, [][]int{{0}, {1}, {}, {}}, 1, 0},
		{"rows with neither on both sides", joined, 2, 0, [][]float32{{1, 1}, {2, 2}, {1, 2}, {4, 3}}, [][]int{{0}, {1}, {}, {}}, 0, 0},
		{"one class, told apart", [][2]int{{0, 2}, {1, 3}}, 2, 1, [][]float32{{2, 1}, {3, 1}, {-1, 1}}, [][]int{{0}, {0}, {1}}, 2, 1},
		{"one class, not told apart", [][2]int{{0, 2}}, 2, 1, [][]float32{{2}, {3}, {2.5}, {2.5}}, [][]int{{0}, {0}, {1}, {0}}, 0, 0},
		{"no edges: zero holds them", nil, 2, 1, [][]float32{{1, 0}, {0, 1}}, [][]int{{0}, {1}}, 0, 0},
		{"bias alone: every row bears all", joined, 2, 1, [][]float32{{0}, {0}}, [][]int{{0, 1}, {0, 1}}, 1, 1},
		{"nothing to move along", joined, 2, 0, [][]float32{{0}, {0}}, [][]int{{0}, {1}}, 0, 0},
	} {
		r := Find(problem(t, test.edges, test.classes, test.bias, test.rows, test.bears))
		if len(r.Drifting) != test.drifting || r.Open != 0 || len(r.Drifting) > 0 && r.Drifting[0].Features != test.features {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestComponents: each for itself, terminals ascending, dead and bare ones left out.
func TestComponents(t *testing.T) {
	p := problem(t, [][2]int{{3, 4}, {4, 0}, {5, 6}, {2, 7}}, 4, 1, [][]float32{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}, [][]int{{0}, {1}, {2}, {3}})
	got := components(p.Graph)
	if want := [][]int32{{0, 3}, {2}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("components %v, want %v", got, want)
	}
	if r := Find(p); r.Components != 2 || len(r.Drifting) != 2 || r.Drifting[0].Features != 2 || r.Drifting[1].Features != 4 {
		t.Errorf("%+v", r)
	}
}

// TestFindByConstruction: rows laid on one side of a random plane drift, and no longer once
// the opposite of the sum of the pure rows is among them, scaled, when the plane holds all others.
func TestFindByConstruction(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		width, count := 2+r.IntN(4), 8+r.IntN(20)
		u := make([]float32, width)
		for f := range u {
			u[f] = float32(r.IntN(5) - 2)
		}
		u[0] = 1
		var rows [][]float32
		var bears [][]int
		sum := make([]float32, width)
		for i := range count {
			x, dot := make([]float32, width), float32(0)
			for f := 1; f < width; f++ {
				x[f] = float32(r.IntN(9) - 4)
				dot += u[f] * x[f]
			}
			x[0] = -dot // u.x = 0, exactly
			of := []int{i % 2}
			if i%4 >= 2 {
				x[0] -= float32(1 + r.IntN(3)) // a row with neither, u.x < 0
				of = nil
				for f := range sum {
					sum[f] -= x[f]
				}
			}
			rows, bears = append(rows, x), append(bears, of)
		}
		edges := [][2]int{{0, 2}, {1, 2}}
		if got := Find(problem(t, edges, 2, 0, rows, bears)); len(got.Drifting) != 1 {
			t.Errorf("seed %d: separable, %+v", seed, got)
		}
		rows, bears = append(rows, sum), append(bears, nil)
		if got := Find(problem(t, edges, 2, 0, rows, bears)); len(got.Drifting) != 0 || got.Open != 0 {
			t.Errorf("seed %d: the rows' sum is zero, %+v", seed, got)
		}
	}
}

// TestFindIsBounded: a search that is cut short says so.
func TestFindIsBounded(t *testing.T) {
	p := problem(t, [][2]int{{0, 2}, {1, 2}}, 2, 0, [][]float32{{1, 1}, {2, 2}, {1, 2}, {3, 4}}, [][]int{{0}, {1}, {}, {}})
	f := newFinder(p)
	f.divide([]int32{0, 1})
	f.visits = 1
	if v := f.combination(); v != open {
		t.Errorf("verdict %d", v)
	}
}
