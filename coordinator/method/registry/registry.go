// Package registry lists the methods that jobs can name. A method registers itself in the init
// function of its package; internal/methods/all imports them all. Prepare is the entry point of
// the coordinator, Options and Fill are those of command lines and searches.
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

// methods are the registered methods by rank.
var methods []method.Method

// ranks holds the rank of each method.
var ranks = map[method.Method]int{}

// Register adds methods to those that jobs can name. A method's package calls it in init. Help
// texts and searches list the methods by rising rank; methods of one rank keep the order in which
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

// Add adds one more method, which a test has, until remove is called. It must not be called while
// another goroutine looks methods up.
func Add(m method.Method) (remove func()) {
	before := methods
	methods = append(slices.Clip(methods), m)
	declared = declare(methods)
	return func() { methods, declared = before, declare(before) }
}

// All lists the methods in the order in which help texts name them.
func All() []method.Method { return slices.Clone(methods) }

// Names lists the methods' names in the same order.
func Names() []string {
	var out []string
	for _, m := range methods {
		out = append(out, m.Name())
	}
	return out
}

// Lookup returns the method of a name. The error lists the names that exist.
func Lookup(name string) (method.Method, error) {
	for _, m := range methods {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("method %q: use one of %s", name, strings.Join(Names(), ", "))
}

// TraitsOf returns the traits of jobs with the given method and options. It returns the zero value
// if the method is unknown.
func TraitsOf(o *taxonv1.Options) method.Traits {
	m, err := Lookup(o.GetMethod())
	if err != nil {
		return method.Traits{}
	}
	return m.Traits(o)
}

// traits returns the traits of a method with the defaults of its options.
func traits(name string) method.Traits { return TraitsOf(&taxonv1.Options{Method: name}) }

// Form returns the form of the models of a job with the given options.
func Form(o *taxonv1.Options) form.Form { return TraitsOf(o).Form }

// Precise lists the methods whose models hold precisions besides the weights. With byFeature it
// lists only those with one precision per feature.
func Precise(byFeature bool) (names []string) {
	for _, m := range methods {
		o := &taxonv1.Options{Method: m.Name()}
		if p := Form(o).Precision; p != form.NoPrecision && (!byFeature || p == form.ByFeature) {
			names = append(names, m.Name())
		}
	}
	return names
}

// Unstructured reports whether a method trains without a structure.
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

// Tree returns the tree or graph that a job trains, and warnings for the user; see jobspec.Tree.
func Tree(spec *taxonv1.JobSpec) (*taxonomy.Tree, []string, error) {
	return jobspec.Tree(spec, TraitsOf(spec.GetOptions()).Rooted)
}

// Separate reports whether a method trains each class separately.
func Separate(name string) bool { return traits(name).Separate }

// Populated reports whether a method can train only classes that have both positive and negative
// instances.
func Populated(name string) bool { return traits(name).Populated }

// NoGap returns an error, beginning with an option's name, if a job has no gap to train to. It
// returns nil if it has one.
func NoGap(spec *taxonv1.JobSpec) error {
	m, _ := Lookup(spec.GetOptions().GetMethod())
	if w, ok := m.(method.Warner); ok {
		return w.NoGap(spec)
	}
	return nil
}

// unlearned returns an error for a job without a structure whose options say that one is learned.
// The submitter should have learned it.
func unlearned(spec *taxonv1.JobSpec) error {
	for _, p := range Of(spec.GetOptions().GetMethod()) {
		if p.Learns && p.Of(spec.GetOptions()) != p.Default && spec.GetStructure() == nil {
			return fmt.Errorf("‹%s=%s›: the job has no structure: learn one (taxon tree, or taxon submit ‹hierarchy=learned›)",
				p.Name, p.Of(spec.GetOptions()))
		}
	}
	return nil
}

// Job is a specification together with what follows from it alone.
type Job struct {
	Method   method.Method
	Tree     *taxonomy.Tree
	Plan     *method.Plan
	Estimate method.Estimate
}

// Prepare checks a specification, plans it and estimates its cost. It is pure, and slow for large
// structures.
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
