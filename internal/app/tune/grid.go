package tune

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
)

// Point is one combination of options: a value for each option of its method that a search may
// vary, as Option.Parse gives it.
type Point struct {
	Method string
	Values registry.Values // by option name. Read-only: points share it
}

// Equal says whether two points are the same.
func (p Point) Equal(q Point) bool { return p.Method == q.Method && maps.Equal(p.Values, q.Values) }

// number is the value of a numeric option; `without` if the method has no such option.
func (p Point) number(option string, without float64) float64 {
	if x, err := strconv.ParseFloat(p.Values[option], 64); err == nil {
		return x
	}
	return without
}

// C is the weight of the losses; 1 for a method without one.
func (p Point) C() float64 { return p.number(method.Cost.Name, 1) }

// Shift is the prior shift, which needs no training of its own.
func (p Point) Shift() float64 { return p.number(method.PriorShift.Name, 0) }

// Path names the options, except C, that differ from their defaults, in a form fit for file
// names.
func (p Point) Path() string {
	name := p.Method
	for _, o := range tunable(p.Method) {
		if v, ok := p.Values[o.Name]; ok && o.Name != method.Cost.Name && v != o.Default {
			name += "-" + o.Name + "=" + v
		}
	}
	return name
}

// Name names the point, in a form fit for file names.
func (p Point) Name() string {
	if c, ok := p.Values[method.Cost.Name]; ok {
		return p.Path() + "-C" + c
	}
	return p.Path()
}

// MarshalJSON writes the method and the options by their keys in manifests.
func (p Point) MarshalJSON() ([]byte, error) {
	out := append([]byte(`{"method":`), method.Encode(p.Method)...)
	for _, o := range tunable(p.Method) {
		if v, ok := p.Values[o.Name]; ok {
			out = append(append(append(append(out, ','), method.Encode(o.WireKey())...), ':'), o.JSON(v)...)
		}
	}
	return append(out, '}'), nil
}

// UnmarshalJSON is the way back.
func (p *Point) UnmarshalJSON(data []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return err
	}
	if err := json.Unmarshal(keys["method"], &p.Method); err != nil {
		return err
	}
	p.Values = registry.Values{}
	for _, o := range tunable(p.Method) {
		if v, ok := keys[o.WireKey()]; ok {
			p.Values[o.Name] = o.Text(v)
		}
	}
	return nil
}

// Grid says which values of the options are tried.
type Grid struct {
	Methods []string
	// Values lists the values by option name. For other options each method tries what its
	// declaration says.
	Values map[string][]string
	Text   bool // features are made of texts, whose options are tried, too
}

// values lists the values for a method's option, each once, numbers ascending: those of the grid
// that fit the method, or else the method's own.
func (g *Grid) values(o *method.Option) (out []string) {
	own := o.Grid
	if given, ok := g.Values[o.Name]; ok {
		if out = Canonical(o, given); out != nil {
			return out
		}
		own = []string{o.Default}
	}
	return Canonical(o, own)
}

// Canonical lists the values that an option accepts, each once, numbers ascending and before
// words.
func Canonical(o *method.Option, values []string) (out []string) {
	for _, v := range values {
		if text, err := o.Parse(v); err == nil && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if o.Kind != method.Choice {
		slices.SortStableFunc(out, func(a, b string) int {
			x, notX := strconv.ParseFloat(a, 64)
			y, notY := strconv.ParseFloat(b, 64)
			switch {
			case notX != nil && notY != nil:
				return 0
			case notY != nil || notX == nil && x < y:
				return -1
			}
			return 1
		})
	}
	return out
}

// Rung is a value of C on a path: one training, and the points that it serves.
type Rung struct {
	Base Point // what is trained
	// Base with each value of the options that only the trainer uses
	Points []Point
}

// Paths lists the grid's points path by path. Along a path C ascends, and all other options are
// fixed, except those that only the trainer uses. An option without effect, on this structure or
// beside the other values, keeps its default. The order is that of methods and options; the first
// varies slowest.
func (g *Grid) Paths(on method.Structure) (out [][]Rung) {
	for _, m := range g.Methods {
		bases, costs, carried := []registry.Values{{}}, []string{""}, []method.Option(nil)
		for _, o := range g.tunable(m) {
			switch {
			case o.Name == method.Cost.Name:
				costs = g.values(&o)
			case o.Carried:
				carried = append(carried, o)
			default:
				bases = g.times(bases, &o, on)
			}
		}
		for _, base := range bases {
			path := make([]Rung, len(costs))
			for i, c := range costs {
				values := maps.Clone(base)
				if c != "" {
					values[method.Cost.Name] = c
				}
				points := []registry.Values{values}
				for _, o := range carried {
					points = g.times(points, &o, on)
				}
				for _, v := range points {
					path[i].Points = append(path[i].Points, Point{m, v})
				}
				for _, o := range carried { // the base has the defaults
					values = maps.Clone(values)
					values[o.Name] = o.Default
				}
				path[i].Base = Point{m, values}
			}
			out = append(out, path)
		}
	}
	return out
}

// times combines each point with each value of an option, or with its default only if the option
// has no effect.
func (g *Grid) times(all []registry.Values, o *method.Option, on method.Structure) (out []registry.Values) {
	for _, values := range all {
		list := g.values(o)
		if o.Idle(on, values) {
			list = []string{o.Default}
		}
		for _, v := range list {
			one := maps.Clone(values)
			one[o.Name] = v
			out = append(out, one)
		}
	}
	return out
}
