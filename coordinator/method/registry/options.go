package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// declared caches the methods' own options, because help texts ask for them hundreds of times.
var declared = map[method.Method][]method.Option{}

// declare returns the options that belong to each method alone.
func declare(methods []method.Method) map[method.Method][]method.Option {
	out := map[method.Method][]method.Option{}
	for _, m := range methods {
		out[m] = m.Options()
	}
	return out
}

// Values maps option names to values, as the command line takes them.
type Values map[string]string

// Options returns the options of jobs of any method, each once. An option has all choices that some
// method gives it, and a default if that is the same for all.
func Options() []method.Option {
	var out []method.Option
	for _, m := range methods {
		for _, p := range declared[m] {
			o := find(out, p.Name)
			if o == nil {
				out = append(out, p)
				continue
			}
			if o.Default != p.Default {
				o.Default = ""
			}
			for _, c := range p.Choices {
				if !slices.Contains(o.Choices, c) {
					o.Choices = append(slices.Clip(o.Choices), c)
				}
			}
		}
	}
	return append(out, method.JobOptions...)
}

// Option returns the option of a name among Options, or nil.
func Option(name string) *method.Option { return find(Options(), name) }

// Of returns the options of a method's jobs. For an unknown method it returns Options.
func Of(name string) []method.Option {
	if m, err := Lookup(name); err == nil {
		return slices.Concat(declared[m], method.JobOptions)
	}
	return Options()
}

// Tunable returns the options of which a search can try several values. Option.Grid is what it
// tries by default.
func Tunable() []method.Option {
	return slices.DeleteFunc(Options(), func(p method.Option) bool { return len(p.Grid) == 0 })
}

// Having lists the methods that have an option and, if value is not empty, accept that value.
func Having(option, value string) (names []string) {
	for _, m := range methods {
		p := find(declared[m], option)
		if p != nil && value != "" {
			if _, err := p.Parse(value); err != nil {
				continue
			}
		}
		if p != nil {
			names = append(names, m.Name())
		}
	}
	return names
}

// Taking lists the methods that have an option.
func Taking(option string) []string { return Having(option, "") }

// Usage returns the help on an option, followed by the methods that have it if not all do.
func Usage(p *method.Option) string {
	var names, parts []string // methods, and the choices that they have
	for _, c := range append([]string{""}, p.Choices...) {
		by := strings.Join(Having(p.Name, c), ", ")
		if at := slices.Index(names, by); at < 0 {
			names, parts = append(names, by), append(parts, c)
		} else if parts[at] != "" {
			parts[at] += ", " + c
		}
	}
	switch {
	case len(names) > 1:
		for i := range names[1:] {
			parts[i+1] += " of " + names[i+1]
		}
		return p.Help + " (" + strings.Join(parts[1:], "; ") + ")"
	case names[0] == "" || names[0] == strings.Join(Names(), ", "):
		return p.Help
	}
	return p.Help + " (" + names[0] + ")"
}

// Find returns the option of a name of a method, or nil.
func Find(name, option string) *method.Option { return find(Of(name), option) }

// Has reports whether a method has an option.
func Has(name, option string) bool { return Find(name, option) != nil }

// Number returns the value of an option in a job as a number. It is zero if the method does not have
// the option.
func Number(o *taxonv1.Options, option string) float64 {
	if p := Find(o.GetMethod(), option); p != nil {
		return p.Number(o)
	}
	return 0
}

// Seed returns the seed of a job.
func Seed(o *taxonv1.Options) uint64 {
	n, _ := strconv.ParseUint(o.Value("seed"), 10, 64) // Check has parsed it
	return n
}

// find returns the option of a name, or nil.
func find(options []method.Option, name string) *method.Option {
	for i := range options {
		if options[i].Name == name {
			return &options[i]
		}
	}
	return nil
}

// Fill sets the options of a job, whose method must be set, to the given values. It sets all
// options that the job does not have yet to their defaults. The error joins one error for each
// value that does not fit the method, and each begins with the option's name. An option that the
// method lacks may be set to its default, which changes nothing. An option that belongs to a value
// of another option may be set only beside that value.
func Fill(o *taxonv1.Options, said Values) error {
	if _, err := Lookup(o.GetMethod()); err != nil {
		return err
	}
	var errs []error
	all := Of(o.GetMethod())
	for _, p := range all {
		text, ok := said[p.Name]
		if !ok {
			text = cmp.Or(o.Value(p.WireKey()), p.Default)
		}
		var err error
		if text != "" || ok {
			text, err = parse(&p, text, o.GetMethod())
		}
		if err == nil && !p.Carried {
			o.Set(p.WireKey(), text)
		}
		errs = append(errs, err)
	}
	for _, p := range all {
		name, value, with := strings.Cut(p.With, "=")
		if _, ok := said[p.Name]; ok && with && o.Value(name) != value {
			errs = append(errs, fmt.Errorf("‹%s› is for the %s %s: add ‹%s=%s›, or leave it out", p.Name, value, name, name,
				value))
		}
	}
	for _, p := range Options() { // in this order
		if text, ok := said[p.Name]; ok && (text != p.Default || text == "") && find(all, p.Name) == nil {
			errs = append(errs, Lacks(o.GetMethod(), p.Name))
		}
	}
	return errors.Join(errs...)
}

// Lacks returns the error for an option that a method does not have.
func Lacks(name, option string) error {
	if by := Taking(option); len(by) > 0 {
		return fmt.Errorf("‹%s› means nothing to ‹method=%s›: leave it out, or use one of %s", option, name,
			strings.Join(by, ", "))
	}
	return fmt.Errorf("‹%s›: no method of this version has an option of this name", option)
}

// parse reads a value of a method's option. If other methods accept the value, the error names
// them.
func parse(p *method.Option, s, name string) (string, error) {
	text, err := p.Parse(s)
	if err == nil {
		return text, nil
	}
	if by := Having(p.Name, s); len(by) > 0 {
		return "", fmt.Errorf("‹%s=%s›: ‹method=%s› has %s: leave it out, or use ‹method=%s›", p.Name, s, name,
			either(p.Choices), either(by))
	}
	return "", fmt.Errorf("‹%s=%s›: %w", p.Name, s, err)
}

// either joins names as "a, b or c".
func either(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Check returns an error that lists all options of a job that its method does not have or whose
// values it can't use. Jobs of earlier versions name options that their method lacks, with the
// default of those that have them.
func Check(o *taxonv1.Options) error {
	var errs []error
	all := Of(o.GetMethod())
	for _, p := range all {
		if text := p.Of(o); !p.Carried && text != "" {
			_, err := parse(&p, text, o.GetMethod())
			errs = append(errs, err)
		}
	}
	for _, p := range Options() {
		if text := o.Value(p.WireKey()); text != "" && text != p.Default && find(all, p.Name) == nil {
			errs = append(errs, Lacks(o.GetMethod(), p.Name))
		}
	}
	for _, v := range o.GetOwn() {
		if !slices.ContainsFunc(Options(), func(p method.Option) bool {
			return strings.ToLower(p.WireKey()) == v.GetName()
		}) {
			errs = append(errs, Lacks(o.GetMethod(), v.GetName()))
		}
	}
	return errors.Join(errs...)
}

// Report returns the options of a job that its report shows, by their keys.
func Report(o *taxonv1.Options) map[string]json.RawMessage {
	return stored(o, func(p *method.Option) bool { return p.Report && p.Goes(o) })
}

// NeedTree returns an error for each option of a job that has a value which only trees allow, all
// of them joined.
func NeedTree(o *taxonv1.Options) error { return method.NeedTree(o, Of(o.GetMethod())) }

// Manifest returns the options of a job that have an effect, by their keys.
func Manifest(spec *taxonv1.JobSpec) map[string]json.RawMessage {
	return stored(spec.GetOptions(), func(p *method.Option) bool { return p.HasEffect(spec) })
}

// stored returns the options of a job for which `which` is true.
func stored(o *taxonv1.Options, which func(*method.Option) bool) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, p := range Of(o.GetMethod()) {
		if !p.Carried && which(&p) {
			out[p.WireKey()] = p.JSON(p.Of(o))
		}
	}
	return out
}

// Differ lists the options of a method that differ between two trainings, as "C 1, not 10". Each
// training is given by its Manifest and by its options that have Carried set. If ended is true, the
// options that decide when a training ends are compared as well.
func Differ(name string, a, b map[string]json.RawMessage, ended bool) (out []string) {
	for _, p := range Of(name) {
		if p.Effect == method.OnNothing || p.Effect == method.OnEnd && !ended {
			continue
		}
		if x, y := p.Text(a[p.WireKey()]), p.Text(b[p.WireKey()]); x != y {
			out = append(out, fmt.Sprintf("%s %s, not %s", p.WireKey(), x, y))
		}
	}
	return out
}

// Words describes in words a method and the options that its report shows.
func Words(name string, report map[string]json.RawMessage) string {
	words := []string{name}
	for _, p := range Of(name) {
		value, ok := report[p.WireKey()]
		switch {
		case !p.Report || !ok:
		case p.Name == "loss":
			words = append(words, p.Text(value))
		default:
			words = append(words, p.Name+" "+p.Text(value))
		}
	}
	return strings.Join(words, ", ")
}
