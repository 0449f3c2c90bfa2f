// Package registry lists the methods whose tasks a worker can run: one line each.
package registry

import (
	"fmt"

	"taxon/worker/program"
	"taxon/worker/program/mlr"
	"taxon/worker/program/recursive"
	"taxon/worker/program/td"
)

var methods = []program.Method{
	recursive.Method("rr-svm"),
	recursive.Method("rr-lr"),
	recursive.Method("bsvm"),
	recursive.Method("blr"),
	td.Method{},
	mlr.Method{},
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
