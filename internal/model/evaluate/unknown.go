package evaluate

import (
	"slices"
	"strings"

	"taxon/internal/ui/format"
)

// warnUnknown warns of labels that distort the measures: classes that the training data lack, and
// classes outside the structure, in the data or in predictions.
func (e *evaluation) warnUnknown() {
	if e.opts.Classes != nil {
		trained := make(map[string]bool, len(e.opts.Classes))
		for _, name := range e.opts.Classes {
			trained[name] = true
		}
		fine := func(name string) bool { return trained[name] }
		e.warnLabels(e.o.Data.Path, e.truth, "unknown to the model: it can never predict them", fine)
		for _, f := range e.files {
			e.warnLabels(f.path, f.names, "unknown to the training data: never right",
				func(name string) bool { return trained[name] || e.truth[name] })
		}
	} else {
		e.warnForeign()
	}
	if s := e.opts.Structure; s != nil {
		inside := func(name string) bool {
			_, in := s.Node(name)
			return in
		}
		const out = "outside the class structure: hierarchical measures leave them out"
		e.warnLabels(e.o.Data.Path, e.truth, out, inside)
		for _, f := range e.files {
			e.warnLabels(f.path, f.names, out, inside)
		}
	}
}

// warnForeign warns if predictions and data have no label in common. It applies if the training
// data are unknown.
func (e *evaluation) warnForeign() {
	for _, f := range e.files {
		common := len(f.names) == 0
		for name := range f.names {
			common = common || e.truth[name]
		}
		if !common {
			e.warnLabels(f.path, f.names, "not in "+e.o.Data.Path+", which is all there are: are both of the same classes?",
				func(string) bool { return false })
		}
	}
}

// warnLabels warns of the labels for which fine returns false, with their number and the first two.
func (e *evaluation) warnLabels(path string, labels map[string]bool, what string, fine func(name string) bool) {
	var names []string
	for name := range labels {
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
	e.ui.Warn("%s: %s %s (%s)", path, format.Counted(int64(len(names)), "label", "labels"), what, some)
}
