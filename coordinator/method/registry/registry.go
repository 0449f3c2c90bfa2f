// Package registry lists the methods that a coordinator can train by.
package registry

import (
	"fmt"
	"slices"
	"strings"

	"taxon/coordinator/method"
	"taxon/internal/data/taxonomy"
	"taxon/internal/jobspec"
	corrmnl "taxon/internal/methods/corrmnl/plan"
	hblr "taxon/internal/methods/hblr/plan"
	hm3 "taxon/internal/methods/hm3/plan"
	mlr "taxon/internal/methods/mlr/plan"
	msvm "taxon/internal/methods/msvm/plan"
	rr "taxon/internal/methods/rr/plan"
	td "taxon/internal/methods/td/plan"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

// methods are all of them: a new one is a line here.
var methods = slices.Concat(
	rr.Methods,
	td.Methods,
	[]method.Method{mlr.Method{}, mlr.Method{OnTree: true}},
	msvm.Methods,
	[]method.Method{hm3.Method{}, corrmnl.Method{}},
	hblr.Methods,
)

// searched are those that a search tries unless others are named, baselines left out.
var searched = slices.Concat(rr.Methods, []method.Method{td.Method, mlr.Method{}}, hblr.Methods)

// Add lists one more method, of a program's own, until remove is called. Not for use while
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

// Form is that of the models of a job with such options.
func Form(o *taxonv1.Options) form.Form {
	if m, err := Lookup(o.GetMethod()); err == nil {
		if f, ok := m.(method.Modeller); ok {
			return f.Form(o)
		}
	}
	return form.Form{}
}

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
func Unstructured(name string) bool {
	m, _ := Lookup(name)
	u, ok := m.(method.Unstructured)
	return ok && u.Unstructured()
}

// Searched lists the methods that a search tries unless others are named.
func Searched() (names []string) {
	for _, m := range searched {
		names = append(names, m.Name())
	}
	return names
}

// Rooted says whether a method without a structure hangs the classes below a root.
func Rooted(name string) bool {
	m, _ := Lookup(name)
	r, ok := m.(method.Rooted)
	return ok && r.Rooted()
}

// Tree is jobspec.Tree, as the job's method has it.
func Tree(spec *taxonv1.JobSpec) (*taxonomy.Tree, []string, error) {
	return jobspec.Tree(spec, Rooted(spec.GetOptions().GetMethod()))
}

// Separate says whether a method trains each class for itself.
func Separate(name string) bool {
	m, _ := Lookup(name)
	s, ok := m.(method.Separate)
	return ok && s.Separate()
}

// Populated says whether a method may train only classes that some instances have, and others not.
func Populated(name string) bool {
	m, _ := Lookup(name)
	p, ok := m.(method.Populated)
	return ok && p.Populated()
}

// NoGap says why a job has no gap to train to, beginning with an option's name; nil: it has one.
func NoGap(spec *taxonv1.JobSpec) error {
	m, _ := Lookup(spec.GetOptions().GetMethod())
	if c, ok := m.(method.Cautious); ok {
		return c.NoGap(spec)
	}
	return nil
}

// unlearned refuses a job whose structure was to be learned, and is not there: the one who
// submits it learns it.
func unlearned(spec *taxonv1.JobSpec) error {
	for _, p := range Of(spec.GetOptions().GetMethod()) {
		if p.Learns && p.Of(spec.GetOptions()) != p.Default && spec.GetStructure() == nil {
			return fmt.Errorf("%s %s: the job has no structure: learn one (taxon tree, or taxon submit --hierarchy learned)", p.Name, p.Of(spec.GetOptions()))
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
	return &Job{Method: m, Tree: tree, Plan: plan, Estimate: m.Estimate(p, plan)}, nil
}
