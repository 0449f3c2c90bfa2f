package main

import (
	"slices"
	"strings"
)

// warnStrange says which labels of the data the measures cannot do justice to: classes
// that the training data lack, and classes outside the structure.
func (e *evaluation) warnStrange() {
	if e.opts.Classes != nil {
		trained := make(map[string]bool, len(e.opts.Classes))
		for _, name := range e.opts.Classes {
			trained[name] = true
		}
		e.warnLabels("unknown to the model: it can never predict them", func(name string) bool { return trained[name] })
	}
	if s := e.opts.Structure; s != nil {
		e.warnLabels("outside the class structure: hierarchical measures leave them out", func(name string) bool {
			_, inside := s.Node(name)
			return inside
		})
	}
}

// warnLabels counts the labels of the data that are not fine and names the first two.
func (e *evaluation) warnLabels(what string, fine func(name string) bool) {
	var names []string
	for name := range e.truth {
		if !fine(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	some := strings.Join(names[:min(2, len(names))], ", ")
	if len(names) > 2 {
		some += ", ..."
	}
	e.a.ui.Warn("%s: %s %s (%s)", e.o.rows.path, counted(int64(len(names)), "label", "labels"), what, some)
}
