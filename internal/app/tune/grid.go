package tune

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
)

// Point is one combination of options: a method, and a value for each of its options that a search
// may vary, in the form that Option.Parse returns.
type Point struct {
	Method string
	// Values is keyed by option name. It is read-only, because points share it.
	Values registry.Values
}

// Equal reports whether two points are the same.
func (p Point) Equal(q Point) bool { return p.Method == q.Method && maps.Equal(p.Values, q.Values) }

// number returns the value of a numeric option, or `without` if the method has no such option.
func (p Point) number(option string, without float64) float64 {
	if x, err := strconv.ParseFloat(p.Values[option], 64); err == nil {
		return x
	}
	return without
}

// C returns the weight of the losses. It is 1 for a method without C.
func (p Point) C() float64 { return p.number(method.Cost.Name, 1) }

// Shift returns the factor of the prior shift, which needs no training of its own.
func (p Point) Shift() float64 { return p.number(method.PriorShift.Name, 0) }

// Path returns the options, except C, that differ from their defaults. It is usable in file names.
func (p Point) Path() string {
	name := p.Method
	for _, o := range tunable(p.Method) {
		if v, ok := p.Values[o.Name]; ok && o.Name != method.Cost.Name && v != o.Default {
			name += "-" + o.Name + "=" + v
		}
	}
	return name
}

// Name returns a name of the point that is usable in file names.
func (p Point) Name() string {
	if c, ok := p.Values[method.Cost.Name]; ok {
		return p.Path() + "-C" + c
	}
	return p.Path()
}

// MarshalJSON writes the method and the options, under their keys in manifests.
func (p Point) MarshalJSON() ([]byte, error) {
	out := append([]byte(`{"method":`), method.Encode(p.Method)...)
	for _, o := range tunable(p.Method) {
		if v, ok := p.Values[o.Name]; ok {
			out = append(append(append(append(out, ','), method.Encode(o.WireKey())...), ':'), o.JSON(v)...)
		}
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
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

// Grid is the set of option values to try.
type Grid struct {
	// Methods lists the methods to try.
	Methods []string
	// Values lists the values by option name. For other options each method uses those of its
	// declaration.
	Values map[string][]string
	// Text reports that features are made from text, so that the text options are tried as well.
	Text bool
	// Stems reports that the language of the texts is known, so that stems are tried as well.
	Stems bool
}

// values lists the values for a method's option without duplicates and with numbers ascending. They
// are the grid's values that the method accepts. If the grid has none, they are the method's own
// values.
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

// Canonical lists the values that an option accepts without duplicates, numbers ascending and
// before words.
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

// PathStep is one training of a path, that is, one value of C, with the points that share it.
type PathStep struct {
	// Base is the point that is trained.
	Base Point
	// Points are Base with each combination of the options that only the trainer uses.
	Points []Point
}

// Paths lists the points of the grid by path. Along a path C ascends, and all other options are
// fixed, except those that only the trainer uses. An option without effect, on this structure or
// beside the other values, keeps its default. Paths are in the order of methods and options; the
// first varies slowest.
func (g *Grid) Paths(on method.Structure) (out [][]PathStep) {
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
			path := make([]PathStep, len(costs))
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

// times combines each point with each value of an option, or with the default alone if the option
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
