package tune

import (
	"fmt"
	"slices"
	"strconv"

	"taxon/coordinator/method/registry"
	"taxon/internal/jobspec"
	"taxon/internal/train"
)

// Point is one combination of options.
type Point struct {
	Method   string  `json:"method"`
	Loss     string  `json:"loss"`
	Bias     float64 `json:"bias"`
	Positive string  `json:"positive_weight"`
	Internal float64 `json:"internal_weight"`
	C        float64 `json:"C"`
	Shift    float64 `json:"prior_shift"` // of rare classes' scores: needs no training of its own
}

// Path is the name of the options other than C, fit for a file's name.
func (p Point) Path() string {
	name := fmt.Sprintf("%s-%s-bias%s-pos%s-int%s", p.Method, p.Loss, number(p.Bias), p.Positive, number(p.Internal))
	if p.Shift != 0 {
		name += "-shift" + number(p.Shift)
	}
	return name
}

// Name names the point, fit for a file's name.
func (p Point) Name() string { return p.Path() + "-C" + number(p.C) }

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Grid lists the values of each option; no list is empty.
type Grid struct {
	Methods  []string
	Losses   []string // of the methods that have a choice
	Bias     []float64
	Positive []string
	Internal []float64
	Shift    []float64
	C        []float64
}

// Rung is a value of C on a path: one training, and the points that need no other.
type Rung struct {
	Base   Point   // what is trained: without a shift
	Points []Point // Base with each shift
}

// values are those of each option.
func (g *Grid) values() map[string][]string {
	texts := func(list []float64) (out []string) {
		for _, x := range list {
			out = append(out, number(x))
		}
		return out
	}
	return map[string][]string{"loss": g.Losses, "C": texts(g.C), "bias": texts(g.Bias), "positive-weight": g.Positive,
		"internal-weight": texts(g.Internal), "prior-shift": texts(g.Shift)}
}

// losses lists the losses that a method is tried with: its own one where it has none of the
// grid's.
func (g *Grid) losses(method string) (out []string) {
	p := registry.Find(method, "loss")
	if p == nil {
		return []string{""}
	}
	for _, l := range g.Losses {
		if slices.Contains(p.Choices, l) {
			out = append(out, l)
		}
	}
	if out == nil {
		return []string{p.Default}
	}
	return out
}

// Paths lists the grid's points path by path: all options but C and the shift fixed, C
// ascending. Points that differ in nothing that has an effect stand there once. The order is
// that of the lists, the first the slowest. structured: there are internal nodes.
func (g *Grid) Paths(structured bool) (out [][]Rung) {
	for _, m := range g.Methods {
		cs := orDefault(Sorted(g.C), 1, registry.Has(m, "C"))
		inner := structured && !train.Flat(m) && registry.Has(m, "internal-weight")
		for _, loss := range g.losses(m) {
			for _, bias := range g.Bias {
				for _, weight := range orDefault(distinct(g.Positive), "1", registry.Has(m, "positive-weight")) {
					for _, internal := range orDefault(g.Internal, 1, inner) {
						path := make([]Rung, len(cs))
						for i, c := range cs {
							base := Point{Method: m, Loss: loss, Bias: bias, Positive: weight, Internal: internal, C: c}
							path[i].Base = base
							for _, base.Shift = range orDefault(g.Shift, 0, registry.Has(m, "prior-shift")) {
								path[i].Points = append(path[i].Points, base)
							}
						}
						out = append(out, path)
					}
				}
			}
		}
	}
	return out
}

// orDefault is the list where the option means something, else its default alone.
func orDefault[T any](list []T, def T, means bool) []T {
	if means {
		return list
	}
	return []T{def}
}

// distinct keeps the first of the weights that are one number.
func distinct(weights []string) (out []string) {
	seen := map[float64]bool{}
	for _, w := range weights {
		x, _ := jobspec.ParsePositiveWeight(w) // Validate has parsed it
		if !seen[x] {
			out = append(out, w)
		}
		seen[x] = true
	}
	return out
}

// Sorted is the list in ascending order, each value once.
func Sorted(values []float64) []float64 {
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}
