package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Values are options by name, as the command line takes them.
type Values map[string]string

// Options are those that jobs of any method have: each once, with all the choices that some
// method has of it, and the default of the first method that has it.
func Options() []method.Option {
	var out []method.Option
	for _, m := range methods {
		for _, p := range m.Options() {
			at := slices.IndexFunc(out, func(o method.Option) bool { return o.Name == p.Name })
			if at < 0 {
				out = append(out, p)
				continue
			}
			for _, c := range p.Choices {
				if !slices.Contains(out[at].Choices, c) {
					out[at].Choices = append(slices.Clip(out[at].Choices), c)
				}
			}
		}
	}
	return append(out, method.JobOptions...)
}

// Option is that of a name among Options; nil: there is none.
func Option(name string) *method.Option { return find(Options(), name) }

// Of are the options of a method's jobs; of an unknown method, all.
func Of(name string) []method.Option {
	if m, err := Lookup(name); err == nil {
		return slices.Concat(m.Options(), method.JobOptions)
	}
	return Options()
}

// Tunable are the options that a search can try several values of. Option.Grid is what it tries
// where it is not told.
func Tunable() []method.Option {
	return slices.DeleteFunc(Options(), func(p method.Option) bool { return len(p.Grid) == 0 })
}

// Having lists the methods that have an option, and with a value, those in which it can have it.
func Having(option, value string) (names []string) {
	for _, m := range methods {
		if p := find(m.Options(), option); p != nil {
			if _, err := p.Parse(value); value == "" || err == nil {
				names = append(names, m.Name())
			}
		}
	}
	return names
}

// Has says whether a method has an option.
func Has(name, option string) bool { return find(Of(name), option) != nil }

// find is the option of a name; nil: it is none of them.
func find(options []method.Option, name string) *method.Option {
	at := slices.IndexFunc(options, func(p method.Option) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	return &options[at]
}

// Fill sets all options of a job's method, which is set, to the values said, or their defaults.
// The error joins one for each value that does not fit the method, beginning with the option's name.
func Fill(o *taxonv1.Options, said Values) error {
	if _, err := Lookup(o.GetMethod()); err != nil {
		return err
	}
	var errs []error
	all := Of(o.GetMethod())
	for _, p := range all {
		if p.Carried {
			continue
		}
		text, err := p.Default, error(nil)
		if s, ok := said[p.Name]; ok {
			text, err = parse(&p, s, o.GetMethod())
		}
		if err == nil {
			err = o.Set(p.WireKey(), text)
		}
		errs = append(errs, err)
	}
	for _, p := range Options() { // in this order
		if _, ok := said[p.Name]; ok && find(all, p.Name) == nil {
			errs = append(errs, Lacks(o.GetMethod(), p.Name))
		}
	}
	return errors.Join(errs...)
}

// Lacks says that a method has no option of a name.
func Lacks(name, option string) error {
	if by := Having(option, ""); len(by) > 0 {
		return fmt.Errorf("%s means nothing to --method %s: leave it out, or use one of %s", option, name, strings.Join(by, ", "))
	}
	return fmt.Errorf("%s: no method of this version has an option of this name", option)
}

// parse reads a value of a method's option. One that fits other methods is refused with them.
func parse(p *method.Option, s, name string) (string, error) {
	text, err := p.Parse(s)
	if err == nil {
		return text, nil
	}
	if by := Having(p.Name, s); len(by) > 0 {
		return "", fmt.Errorf("%s %s: --method %s has %s: leave it out, or use one of %s", p.Name, s, name, strings.Join(p.Choices, ", "), strings.Join(by, ", "))
	}
	return "", fmt.Errorf("%s %s: %w", p.Name, s, err)
}

// Check reports all options of a job that its method can't go by, or has not. Jobs of earlier
// versions name options that their method lacks, with the default of those that have them.
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
		if !slices.ContainsFunc(Options(), func(p method.Option) bool { return p.WireKey() == v.GetName() }) {
			errs = append(errs, Lacks(o.GetMethod(), v.GetName()))
		}
	}
	return errors.Join(errs...)
}
