package main

import "slices"

// study says what is searched on a data set. Grids are narrow on large sets, on which a point takes
// minutes.
type study struct {
	set string

	// structure holds the flags that name the structure. Its file is relative to the set's folder.
	structure []string
	methods   []method
	folds     []string // flags of the cross-validation
	gap       string   // gap to which the table's model is trained
	peers     string   // the best results of other programs on the same files

	// known is the best micro F1 known from long searches (docs/results.md), in percent.
	known float64
}

// method is a row of the table: one search.
type method struct {
	name  string // name in the table
	flags []string
	flat  bool

	// bar is the row of the same loss with which this one is compared. It may be empty.
	bar string

	learns bool // the method learns its priors, so nothing is searched
}

// grid lists the values that the searches of a set try.
type grid struct {
	hinge, squared, logistic, positive, inner, shift string
	smoothPositive, smoothShift                      string // grids of the logistic loss
}

// methods returns the six searches of a set, one-versus-rest and along the structure, and the
// methods without a search.
func (g grid) methods() []method {
	squared := []string{"--loss", "squared-hinge", "--C", g.squared, "--positive-weight", g.positive, "--x",
		"prior-shift=" + g.shift}
	hinge := []string{"--C", g.hinge, "--x", "prior-shift=" + g.shift}
	logistic := []string{"--C", g.logistic, "--positive-weight", g.smoothPositive, "--x", "prior-shift=" + g.smoothShift}
	flat := func(name string, flags []string) []string { return slices.Concat([]string{"--method", name}, flags) }
	out := []method{
		{"bsvm hinge", flat("bsvm", hinge), true, "", false},
		{"bsvm squared hinge", flat("bsvm", squared), true, "", false},
		{"blr", flat("blr", logistic), true, "", false},
		{"rr-svm hinge", hinge, false, "bsvm hinge", false},
		{"rr-svm squared hinge", append(slices.Clone(squared), "--x", "internal-weight="+g.inner), false, "bsvm " +
			"squared hinge",
			false},
		{"rr-lr", flat("rr-lr", logistic), false, "blr", false},
	}
	for _, name := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
		out = append(out, method{name, flat(name, nil), false, "rr-lr", true}, method{name + " flat", flat(name, nil), true,
			"blr", true})
	}
	return out
}

// These are the flags that name structures. Their files lie in the set's folder.
var (
	tree  = []string{"--hierarchy", "hierarchy.txt"}
	first = []string{"--hierarchy", "tree.txt"}
	graph = []string{"--graph", "graph.txt"}
)

// These are the flags for cross-validation: all of five folds, or only the first if a training
// takes minutes.
var (
	all = []string{"--folds", "5"}
	one = []string{"--folds", "5", "--first-folds", "1"}
)

// The logistic loss has scores that are log-odds, and needs larger shifts if many classes are rare:
// 1 would be the whole prior.
const (
	shifts     = "0,0.05,0.1,0.15,0.2"
	wideShifts = "0,0.2,0.4,0.6,0.8,1"
)

var studies = []study{
	{"clef", tree, grid{"0.01,0.03,0.1,0.3,1", "0.01,0.03,0.1,0.3,1", "0.1,0.3,1,3,10,30", "1,4", "1", shifts, "1",
		shifts}.methods(), all, "1e-3", "79.9 / 53.8 (LIBLINEAR -s 7, -s 1)", 79.8},
	{"news20", tree, grid{"0.1,0.3,1,3", "0.1,0.3,1,3", "3,10,30,100", "1,4", "1", "0", "1", "0"}.methods(), all, "1e-3",
		"83.3 / 82.5 (LIBLINEAR -s 3)", 83.4},
	{"enron", tree, grid{"0.03,0.1,0.3,1,3", "0.03,0.1,0.3,1,3", "0.3,1,3,10,30", "1,4", "1", "0", "1", "0"}.methods(),
		all, "1e-3", "", 53.7},
	{"proteins_go", graph, grid{"1,3", "0.3,1", "10", "1", "1", "0", "1", "0"}.methods(), one, "1e-2",
		"P@1 62.4 (PECOS one-versus-rest)", 62.8},
	{"wordnet-freq", first, grid{"0.3,1", "0.15,0.5", "1,3", "4,8", "1", shifts, "4", wideShifts}.methods(), one, "3e-3",
		"60.8 / 39.6, P@1 61.4 (omikuji, 3 learned trees)", 61.2},
	{"wordnet", first, grid{"1", "0.15", "3", "8", "1", "0.1", "4", "0.8"}.methods(), nil, "1e-2",
		"P@1 46.3, 45.7 / 11.0 (omikuji); macro 12.4 (nearest centroid)", 47.3},
}
