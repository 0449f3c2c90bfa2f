// Package registry lists the methods that a coordinator can train by.
package registry

import (
	"fmt"
	"slices"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/recursive"
)

// methods are all of them: a new one is a line here.
var methods = slices.Concat(
	recursive.Methods,
)

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
