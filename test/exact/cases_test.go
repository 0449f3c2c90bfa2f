package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// kind is one kind of unusual problem: a generator of its data and structure. The caller sets C,
// loss and bias.
type kind struct {
	name string
	make func(r *rand.Rand) *Problem
}

// kinds lists the unusual kinds of problems that the trainer must solve exactly.
var kinds = []kind{
	{"labels at internal nodes", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root a", "root b", "a a1", "a a2", "b b1", "b b2", "b2 b21", "b2 b22")}
		p.Rows = draw(r, 24, 7, "root", "a", "a1", "a2", "b", "b1", "b2", "b21", "b22")
		return p
	}},
	{"deep chains", func(r *rand.Rand) *Problem {
		p := &Problem{}
		for d := range 14 {
			p.Edges = append(p.Edges, Edge{fmt.Sprint("c", d), fmt.Sprint("c", d+1)})
		}
		p.Edges = append(p.Edges, edges("c2 side", "c9 low", "low lower", "lower lowest")...)
		p.Rows = draw(r, 20, 6, "c14", "side", "lowest", "c5")
		return p
	}},
	{"forest, labels outside", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("t a", "t b", "u c", "u d", "d e", "d f")}
		p.Rows = draw(r, 22, 6, "a", "b", "c", "e", "f", "u", "out1", "out2")
		return p
	}},
	{"half the leaves empty, pruned", func(r *rand.Rand) *Problem { return halfEmpty(r) }},
	{"half the leaves empty, kept", func(r *rand.Rand) *Problem {
		p := halfEmpty(r)
		p.KeepEmpty = true
		return p
	}},
	{"a class with every instance", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root all", "root g", "g x", "g y")}
		p.Rows = draw(r, 16, 5, "x", "y")
		for i := range p.Rows {
			p.Rows[i].Labels = append(p.Rows[i].Labels, "all")
		}
		return p
	}},
	{"a class with one instance", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root g", "root h", "g x", "g y", "h z", "h one")}
		p.Rows = draw(r, 19, 6, "x", "y", "z")
		p.Rows = append(p.Rows, draw(r, 1, 6, "one")...)
		return p
	}},
	{"duplicate columns and rows", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root g", "root z", "g x", "g y")}
		p.Rows = draw(r, 12, 4, "x", "y", "z")
		for i := range p.Rows { // column f is repeated as f+4 and f+8
			row := &p.Rows[i]
			for k := range len(row.Index) {
				row.Index = append(row.Index, row.Index[k]+4, row.Index[k]+8)
				row.Value = append(row.Value, row.Value[k], row.Value[k])
			}
		}
		p.Rows = append(p.Rows, p.Rows[:6]...)
		p.Rows = append(p.Rows, p.Rows[:3]...)
		p.Rows[17].Labels = []string{"z"} // the same row under two labels
		return p
	}},
	{"dense rows", func(r *rand.Rand) *Problem { // the hinge descends lane by lane
		p := &Problem{Edges: edges("root g", "root z", "g x", "g y", "z z1", "z z2")}
		p.Rows = draw(r, 36, 17, "x", "y", "z1", "z2")
		for i := range p.Rows {
			row := &p.Rows[i]
			for f := 1; f <= 17; f++ {
				if k := slices.Index(row.Index, f); k < 0 {
					row.Index, row.Value = append(row.Index, f), append(row.Value, float32(r.NormFloat64()/8))
				}
			}
		}
		return p
	}},
	{"zero rows", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root g", "root z", "g x", "g y")}
		p.Rows = append(draw(r, 14, 5, "x", "y", "z"), Row{Labels: []string{"x"}}, Row{Labels: []string{"z", "y"}},
			Row{Labels: []string{"x"}, Index: []int{2, 9}, Value: []float32{0, 0}}) // feature 9 has no value but zero
		return p
	}},
	{"unsorted indices, far apart", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root g", "root z", "g x", "g y")}
		p.Rows = draw(r, 16, 8, "x", "y", "z")
		far := []int{0, 7, 1, 2147483647, 300, 65537, 40, 1 << 20, 99}
		for i := range p.Rows {
			row := &p.Rows[i]
			for k := range row.Index {
				row.Index[k] = far[row.Index[k]]
			}
			r.Shuffle(len(row.Index), func(a, b int) {
				row.Index[a], row.Index[b] = row.Index[b], row.Index[a]
				row.Value[a], row.Value[b] = row.Value[b], row.Value[a]
			})
		}
		return p
	}},
	{"unlabelled rows", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root g", "root z", "g x", "g y")}
		p.Rows = draw(r, 18, 6, "x", "y", "z")
		for i := 0; i < len(p.Rows); i += 3 {
			p.Rows[i].Labels = nil
		}
		return p
	}},
	{"multi-label", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root a", "root b", "a a1", "a a2", "b b1", "b b2")}
		names := []string{"a", "a1", "a2", "b1", "b2", "loose"}
		p.Rows = draw(r, 20, 6, names...)
		for i := range p.Rows {
			for range r.IntN(3) {
				if l := names[r.IntN(len(names))]; !slices.Contains(p.Rows[i].Labels, l) {
					p.Rows[i].Labels = append(p.Rows[i].Labels, l)
				}
			}
		}
		return p
	}},
	{"no structure", func(r *rand.Rand) *Problem {
		return &Problem{Rows: draw(r, 20, 6, "x", "y", "z", "u")}
	}},
	{"one class, no structure", func(r *rand.Rand) *Problem {
		p := &Problem{Rows: draw(r, 9, 3, "only")}
		p.Rows[2].Labels, p.Rows[5].Labels = nil, nil
		return p
	}},
	{"one instance with the one class, one without, a chain", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("r s", "s t"), Rows: draw(r, 2, 2, "t")}
		p.Rows[1].Labels = nil
		return p
	}},
	{"only the root has a label", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root a", "a b"), Rows: draw(r, 8, 3, "root")}
		p.Rows[1].Labels, p.Rows[6].Labels = nil, nil
		return p
	}},
	{"labels outside the structure but one", func(r *rand.Rand) *Problem {
		return &Problem{Edges: edges("root a", "root b"), Rows: draw(r, 12, 4, "p", "q", "s", "b")}
	}},
	{"identical rows in all classes", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root g", "root z", "g x", "g y"), Rows: draw(r, 9, 5, "x", "y", "z")}
		for i := range p.Rows {
			p.Rows[i].Index, p.Rows[i].Value = p.Rows[0].Index, p.Rows[0].Value
		}
		return p
	}},
	{"a pair of separable rows far out", func(r *rand.Rand) *Problem {
		p := &Problem{Edges: edges("root g", "root z", "g x", "g y"), Rows: draw(r, 14, 5, "x", "y", "z")}
		for k := range p.Rows[0].Value {
			p.Rows[0].Value[k] *= 8
		}
		for k := range p.Rows[1].Value {
			p.Rows[1].Value[k] /= 1024
		}
		return p
	}},
	{"several blocks and families", func(r *rand.Rand) *Problem {
		p := &Problem{}
		var names []string
		for l := range 37 {
			names = append(names, fmt.Sprint("big", l))
			p.Edges = append(p.Edges, Edge{"big", names[l]})
		}
		p.Edges = append(p.Edges, edges("top big", "top mid")...)
		for l := range 18 {
			names = append(names, fmt.Sprint("mid", l))
			p.Edges = append(p.Edges, Edge{"mid", names[37+l]})
		}
		p.Edges = append(p.Edges, edges("mid sub", "sub s1", "sub s2")...)
		names = append(names, "s1", "s2", "big")
		p.Rows = draw(r, 70, 10, names...)
		return p
	}},
	{"a binary tree", func(r *rand.Rand) *Problem {
		p := &Problem{}
		var names []string
		for n := 2; n < 32; n++ {
			p.Edges = append(p.Edges, Edge{fmt.Sprint("n", n/2), fmt.Sprint("n", n)})
			names = append(names, fmt.Sprint("n", n))
		}
		p.Rows = draw(r, 45, 8, names[14:]...)
		return p
	}},
	{"random", randomProblem},
}

// counts lists kinds whose rows are not normalised, like word counts: C ||x||^2 is in the thousands
// at C = 100, which demands the highest precision of the duals. They run only in the full grid.
var counts = []kind{
	{"small counts", func(r *rand.Rand) *Problem { return drawCounts(r, 1) }},
	{"counts", func(r *rand.Rand) *Problem { return drawCounts(r, 5) }},
}

func drawCounts(r *rand.Rand, scale int) *Problem {
	p := kinds[0].make(r)
	for i := range p.Rows {
		for k := range p.Rows[i].Value {
			p.Rows[i].Value[k] = float32(scale * (1 + r.IntN(3)))
		}
	}
	return p
}

func edges(lines ...string) []Edge {
	var all []Edge
	for _, l := range lines {
		var e Edge
		fmt.Sscan(l, &e.Parent, &e.Child)
		all = append(all, e)
	}
	return all
}

func halfEmpty(r *rand.Rand) *Problem {
	p := &Problem{Edges: edges("root a", "root b", "root dead", "dead d1", "dead d2", "a a1", "a a2", "b b1", "b b2",
		"b2 b21", "b2 b22", "a a3")}
	p.Rows = draw(r, 20, 6, "a1", "a3", "b1", "b2") // all children of b2 are empty
	return p
}

// draw generates n unit rows of d features, about half of them nonzero, each with one of the labels
// in turn, and shifted towards a centre of its label.
func draw(r *rand.Rand, n, d int, labels ...string) []Row {
	centre := make([][]float64, len(labels))
	for l := range centre {
		centre[l] = make([]float64, d)
		for f := range d {
			centre[l][f] = r.NormFloat64()
		}
	}
	rows := make([]Row, n)
	for i := range rows {
		l := i % len(labels)
		row, norm := Row{Labels: []string{labels[l]}}, 0.0
		for f := range d {
			if r.IntN(2) == 0 && f != l%d {
				continue
			}
			v := math.Abs(centre[l][f] + r.NormFloat64())
			row.Index, row.Value = append(row.Index, f+1), append(row.Value, float32(v))
			norm += v * v
		}
		for k := range row.Value {
			row.Value[k] /= float32(math.Sqrt(norm))
		}
		rows[i] = row
	}
	return rows
}

// randomProblem generates a random forest, random labels anywhere in it or outside, repeated rows,
// zero rows and rows without a label.
func randomProblem(r *rand.Rand) *Problem {
	p := &Problem{KeepEmpty: r.IntN(2) == 0}
	size := 2 + r.IntN(24)
	names := []string{"outside"}
	for n := range size {
		name := fmt.Sprint("n", n)
		names = append(names, name)
		if n > 0 && r.IntN(8) > 0 {
			p.Edges = append(p.Edges, Edge{fmt.Sprint("n", n-1-r.IntN(min(n, 6))), name})
		}
	}
	if len(p.Edges) == 0 {
		p.Edges = edges("n0 n1")
	}
	r.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
	p.Rows = draw(r, 6+r.IntN(30), 2+r.IntN(8), names[:1+r.IntN(len(names))]...)
	for i := range p.Rows {
		row := &p.Rows[i]
		switch r.IntN(10) {
		case 0:
			row.Index, row.Value = nil, nil
		case 1:
			row.Labels = nil
		case 2:
			if l := names[r.IntN(len(names))]; len(row.Labels) > 0 && row.Labels[0] != l {
				row.Labels = append(row.Labels, l)
			}
		case 3:
			*row = p.Rows[r.IntN(i+1)]
		case 4:
			scale := float32(math.Exp(2 * r.NormFloat64()))
			row.Value = slices.Clone(row.Value)
			for k := range row.Value {
				row.Value[k] *= scale
			}
		}
	}
	learnable(p)
	return p
}

// learnable adds what train requires of data, if it is missing: a label of the structure, and a row
// without it.
func learnable(p *Problem) {
	p.Rows[0].Labels, p.Rows[1].Labels = []string{p.Edges[0].Parent}, nil
}
