package tune

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
)

// starts returns the first points, which are each method with each of its losses. Every other
// option has the given value, or the start that it declares.
func (g *Grid) starts(on method.Structure) (out []Point) {
	for _, m := range g.Methods {
		losses := []string{""}
		if o := registry.Find(m, "loss"); o != nil {
			losses = g.listValues(o)
		}
		for _, loss := range losses {
			p := Point{m, registry.Values{}}
			for _, o := range g.tunable(m) {
				p.Values[o.Name] = o.Default
				listed := g.listValues(&o)
				switch idle := o.Idle(on, p.Values); {
				case idle:
				case o.Learns: // without a structure the method equals a flat one
					p.Values[o.Name] = listed[len(listed)-1]
				case o.Start != "" && slices.Contains(listed, o.Start):
					p.Values[o.Name] = o.Start
				case !slices.Contains(listed, o.Default):
					p.Values[o.Name] = listed[0]
				}
			}
			if loss != "" {
				p.Values["loss"] = loss
			}
			out = append(out, p)
		}
	}
	return out
}

// as returns the point `to` with values from the point `from`, which is of another method. It takes
// over the values of the options that both methods have.
func (g *Grid) as(from, to Point) Point {
	for _, o := range g.tunable(to.Method) {
		if v, ok := from.Values[o.Name]; ok && !o.Carried && !o.Learns && slices.Contains(g.listValues(&o), v) {
			to = to.with(o.Name, v)
		}
	}
	return to
}

// textStart returns the values of the text options with which a search starts.
func (g *Grid) textStart() registry.Values {
	values := registry.Values{}
	for _, o := range textOptions {
		if listed := g.listValues(&o); !slices.Contains(listed, o.Default) {
			values[o.Name] = listed[0]
		}
	}
	return values
}

// listValues returns the values that a hill climb may give an option: numbers ascending, then words.
func (g *Grid) listValues(o *method.Option) []string {
	if given, ok := g.Values[o.Name]; ok {
		if out := Canonical(o, given); out != nil {
			return out
		}
		return []string{o.Default}
	}
	if o.Name == featuresOption && !g.Stems {
		return slices.DeleteFunc(slices.Clone(o.Choices), func(kind string) bool { return strings.Contains(kind, "stems") })
	}
	if o.Kind == method.Choice {
		return o.Choices
	}
	return Canonical(o, slices.Concat([]string{o.Default}, o.Grid, o.Ladder))
}

// with returns the point with another value of one option.
func (p Point) with(option, value string) Point {
	values := maps.Clone(p.Values)
	values[option] = value
	return Point{p.Method, values}
}

// valueList is the ordered list of values along which a hill climb varies an option.
type valueList struct {
	option *method.Option
	values []string
	// open reports that the list can be extended beyond its ends.
	open bool
	// cost lists the values of C, for an option that is varied together with C. It is nil for other
	// options.
	cost *valueList
}

// at returns the index of the point's value, or -1 if it is not listed.
func (l *valueList) at(p Point) int { return slices.Index(l.values, p.Values[l.option.Name]) }

// has reports whether the list has a value `by` places after the point's value, or before it if by
// is negative.
func (l *valueList) has(from Point, by int) bool {
	at := l.at(from) + by
	return at >= 0 && at < len(l.values)
}

// step returns the points whose value is `by` places away.
func (l *valueList) step(from Point, by int) (out []Point) {
	v := l.value(l.at(from), by)
	if v == "" {
		return nil
	}
	out = []Point{from.with(l.option.Name, v)}
	if l.cost != nil {
		old, now := number(from.Values[l.option.Name]), number(v)
		if c := l.cost.times(l.cost.at(from), math.Pow(now/old, l.option.Offset)); c != "" {
			out = append(out, out[0].with(l.cost.option.Name, c))
		}
	}
	return out
}

// times returns the listed value nearest to `factor` times the one at index at. It is empty if that
// is the same value, or if one of them is not a positive number.
func (l *valueList) times(at int, factor float64) string {
	if at < 0 {
		return ""
	}
	first := l.values[at]
	by, last, wanted := 1, first, math.Log(number(first)*factor)
	if factor < 1 {
		by = -1
	}
	for {
		v := l.value(slices.Index(l.values, last), by)
		if v == "" || !(math.Abs(math.Log(number(v))-wanted) < math.Abs(math.Log(number(last))-wanted)) {
			break
		}
		last = v
	}
	if last == first {
		return ""
	}
	return last
}

// number returns a value as a number, or NaN if it is a word.
func number(value string) float64 {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// value returns the value `by` places from index at, or "" if there is none. Beyond the ends of an
// open list the values continue in the ratio of the last two.
func (l *valueList) value(at, by int) string {
	for l.open && at >= 0 && len(l.values) > 1 && (at+by < 0 || at+by >= len(l.values)) {
		end, before := 0, 1
		if by > 0 {
			end, before = len(l.values)-1, len(l.values)-2
		}
		x, y := number(l.values[end]), number(l.values[before])
		if !(x > 0 && y > 0) {
			break
		}
		text, err := l.option.Parse(strconv.FormatFloat(round(x*x/y), 'g', -1, 64))
		if err != nil || slices.Contains(l.values, text) {
			break
		}
		if by > 0 {
			l.values = append(l.values, text)
		} else {
			l.values = slices.Insert(l.values, 0, text)
			at++
		}
	}
	if at < 0 || at+by < 0 || at+by >= len(l.values) {
		return ""
	}
	return l.values[at+by]
}

// round returns x with two significant digits.
func round(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	y, _ := strconv.ParseFloat(strconv.FormatFloat(math.Round(x/unit)*unit, 'g', 2, 64), 64)
	return y
}
