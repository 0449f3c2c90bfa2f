package generate

import (
	"fmt"

	"taxon/internal/ui/format"
)

// Request is a shape like that of a named data set, scaled. Each of its counts above 0 replaces the
// count of that data set.
type Request struct {
	Like             string
	Scale            float64
	DAG              bool
	Instances, Test  int
	Classes          int
	Internals        int
	Features         int
	Depth            int
	Nonzeros, Labels float64
}

// Shape returns the requested shape. Its errors name counts by the flags of `taxon generate`.
func (r *Request) Shape() (Shape, error) {
	s, err := Like(r.Like, r.Scale)
	if err != nil {
		return s, err
	}
	for _, c := range []struct {
		to   *int
		from int
	}{{&s.Instances, r.Instances}, {&s.Test, r.Test}, {&s.Classes, r.Classes}, {&s.Internals, r.Internals},
		{&s.Features, r.Features}, {&s.Depth, r.Depth}} {
		if c.from > 0 {
			*c.to = c.from
		}
	}
	if r.Classes > 0 && r.Internals == 0 { // the mean number of children is kept
		s.Internals = min(s.Internals, max(1, s.Classes/2))
	}
	if r.Depth == 1 && r.Internals == 0 { // all classes are children of the root
		s.Internals = min(s.Internals, 1)
	}
	if r.Nonzeros > 0 {
		s.Nonzeros = r.Nonzeros
	}
	if r.Labels > 0 {
		s.Labels = r.Labels
	}
	s.DAG = r.DAG
	if err := r.fits(s); err != nil {
		return s, err
	}
	return s, s.Validate()
}

// fits returns an error if counts contradict each other.
func (r *Request) fits(s Shape) error {
	from := func(given int, option string, n int) string {
		if given > 0 {
			return fmt.Sprintf("‹%s=%d›", option, n)
		}
		return fmt.Sprintf("‹scale=%g› (%d)", r.Scale, n)
	}
	switch {
	case s.Classes > s.Instances && r.Instances == 0 && r.Classes == 0:
		return fmt.Errorf("‹scale=%g› leaves %s for %d classes, and each class needs one: choose a larger ‹scale›", r.Scale,
			format.Counted(int64(s.Instances), "instance", "instances"), s.Classes)
	case s.Classes > s.Instances:
		return fmt.Errorf("more classes, by %s, than instances, by %s: each class needs one",
			from(r.Classes, "classes", s.Classes), from(r.Instances, "instances", s.Instances))
	case s.Internals > s.Classes:
		return fmt.Errorf("‹internals=%d›: at most as many as classes, %d", s.Internals, s.Classes)
	case s.Depth == 1 && s.Internals > 1:
		return fmt.Errorf("‹depth=1› leaves room for one inner node, the root, not for ‹internals=%d›", s.Internals)
	}
	return nil
}
