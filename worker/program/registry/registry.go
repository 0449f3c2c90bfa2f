// Package registry lists the methods whose tasks a worker can run: one line each.
package registry

import (
	"fmt"
	"slices"

	corrmnl "taxon/internal/methods/corrmnl/program"
	hblr "taxon/internal/methods/hblr/program"
	hm3 "taxon/internal/methods/hm3/program"
	mlr "taxon/internal/methods/mlr/program"
	msvm "taxon/internal/methods/msvm/program"
	rr "taxon/internal/methods/rr/program"
	td "taxon/internal/methods/td/program"
	"taxon/worker/program"
)

var methods = []program.Method{
	rr.Method("rr-svm"),
	rr.Method("rr-lr"),
	rr.Method("bsvm"),
	rr.Method("blr"),
	td.Method("td"),
	td.Method("h-svm"),
	td.Method("h-rls"),
	mlr.Method{},
	mlr.Method{OnTree: true},
	msvm.Method("msvm"),
	msvm.Method("flatmult"),
	msvm.Method("hiermult"),
	msvm.Method("hsvm"),
	msvm.Method("transfer"),
	msvm.Method("ot"),
	msvm.Method("rr-msvm"),
	hm3.Method{},
	corrmnl.Method{},
	hblr.Method("hblr-m1"),
	hblr.Method("hblr-m2"),
	hblr.Method("hblr-m3"),
}

// Add lists one more method, of a program's own, until remove is called. Not for use while
// another goroutine looks methods up.
func Add(m program.Method) (remove func()) {
	before := methods
	methods = append(slices.Clip(methods), m)
	return func() { methods = before }
}

// Lookup finds a method by its name. The error is marked by program.Unfit.
func Lookup(name string) (program.Method, error) {
	for _, m := range methods {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, program.Unfit(fmt.Errorf("this worker does not know method %q: it is older than the coordinator; install the same version", name))
}
