// Package registry lists the methods that jobs can name: those whose packages are linked into the
// program (internal/methods/all), as each registers itself.
package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"taxon/coordinator/method"
	"taxon/internal/data/taxonomy"
	"taxon/internal/jobspec"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

// methods are those that have registered themselves, by rank.
var methods []method.Method

// ranks are those of methods.
var ranks = map[method.Method]int{}

// Register adds methods to those that jobs can name. A method's package calls it in init. Help texts
// and searches go through the methods by rising rank; methods of one rank keep the order in which
// they were registered. It panics if the name of a method is taken.
func Register(rank int, added ...method.Method) {
	for _, m := range added {
		if _, err := Lookup(m.Name()); err == nil {
			panic("two methods have the name " + m.Name())
		}
		ranks[m] = rank
		methods = append(methods, m)
	}
	slices.SortStableFunc(methods, func(a, b method.Method) int { return cmp.Compare(ranks[a], ranks[b]) })
	declared = declare(methods)
}

// Add lists one more method, of a test's own, until remove is called. Not for use while
// another goroutine looks methods up.
func Add(m method.Method) (remove func()) {
	before := methods
	methods = append(slices.Clip(methods), m)
	declared = declare(methods)
	return func() { methods, declared = before, declare(before) }
}

// All lists the methods, in the order in which help texts name them.
func All() []method.Method { return slices.Clone(methods) }

// Names lists the methods' names.
func Names() []string {
	var out []string
	for _, m := range methods {
		out = append(out, m.Name())
	}
	return out
}

// Lookup is the method of a name.
func Lookup(name string) (method.Method, error) {
	for _, m := range methods {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("method %q: use one of %s", name, strings.Join(Names(), ", "))
}

// TraitsOf are those of the jobs with such options; the zero value if their method is unknown.
func TraitsOf(o *taxonv1.Options) method.Traits {
	m, err := Lookup(o.GetMethod())
	if err != nil {
		return method.Traits{}
	}
	return m.Traits(o)
}

// traits are those of a method with the defaults of its options.
func traits(name string) method.Traits { return TraitsOf(&taxonv1.Options{Method: name}) }

// Form is that of the models of a job with such options.
func Form(o *taxonv1.Options) form.Form { return TraitsOf(o).Form }

// Precise lists the methods whose models hold precisions beside the weights, or those of them with
// one for each feature.
func Precise(byFeature bool) (names []string) {
	for _, m := range methods {
		o := &taxonv1.Options{Method: m.Name()}
		if p := Form(o).Precision; p != form.NoPrecision && (!byFeature || p == form.ByFeature) {
			names = append(names, m.Name())
		}
	}
	return names
}

// Unstructured says whether a method trains without a structure.
func Unstructured(name string) bool { return traits(name).Unstructured }

// Searched lists the methods that a search tries unless others are named.
func Searched() (names []string) {
	for _, m := range methods {
		if traits(m.Name()).Searched {
			names = append(names, m.Name())
		}
	}
	return names
}

// Tree is jobspec.Tree, as the job's method has it.
func Tree(spec *taxonv1.JobSpec) (*taxonomy.Tree, []string, error) {
	return jobspec.Tree(spec, TraitsOf(spec.GetOptions()).Rooted)
}

// Separate says whether a method trains each class for itself.
func Separate(name string) bool { return traits(name).Separate }

// Populated says whether a method may train only classes that some instances have, and others not.
func Populated(name string) bool { return traits(name).Populated }

// NoGap says why a job has no gap to train to, beginning with an option's name; nil: it has one.
func NoGap(spec *taxonv1.JobSpec) error {
	m, _ := Lookup(spec.GetOptions().GetMethod())
	if w, ok := m.(method.Warner); ok {
		return w.NoGap(spec)
	}
	return nil
}

// unlearned refuses a job whose structure was to be learned, and is not there: the one who
// submits it learns it.
func unlearned(spec *taxonv1.JobSpec) error {
	for _, p := range Of(spec.GetOptions().GetMethod()) {
		if p.Learns && p.Of(spec.GetOptions()) != p.Default && spec.GetStructure() == nil {
			return fmt.Errorf("‹%s=%s›: the job has no structure: learn one (taxon tree, or taxon submit ‹hierarchy=learned›)", p.Name, p.Of(spec.GetOptions()))
		}
	}
	return nil
}

// Job is a specification, and what follows from it alone.
type Job struct {
	Method   method.Method
	Tree     *taxonomy.Tree
	Plan     *method.Plan
	Estimate method.Estimate
}

// Prepare checks a specification, plans it and estimates what it takes. Pure, and slow for
// large structures.
func Prepare(spec *taxonv1.JobSpec) (*Job, error) {
	if spec.GetOptions() == nil {
		return nil, fmt.Errorf("the job has no options")
	}
	m, err := Lookup(spec.GetOptions().GetMethod())
	if err != nil {
		return nil, err
	}
	tree, _, err := Tree(spec)
	if err != nil {
		return nil, err
	}
	p := &method.Problem{Spec: spec, Tree: tree}
	if err := method.Violations(Check(spec.GetOptions()), unlearned(spec), m.Check(p)); err != nil {
		return nil, err
	}
	plan, err := m.Plan(p)
	if err != nil {
		return nil, err
	}
	plan.Rooted = m.Traits(spec.GetOptions()).Rooted
	return &Job{Method: m, Tree: tree, Plan: plan, Estimate: m.Estimate(p, plan)}, nil
}
