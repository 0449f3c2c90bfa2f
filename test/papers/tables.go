package main

import "strings"

// table is a table of a paper, on available data.
type table struct {
	name string // papers and numbers
	data string // a folder of TAXON_DATA

	// origin describes the data: "the paper's own data", or the data that they replace.
	origin string
	note   string // remarks on the figures
	goal   string // key of `eval --json` by which C is chosen

	// untuned keeps the C of the rows, or 1, in any case. It is set for large data.
	untuned  bool
	gapGoal  string // --gap of its trainings
	timed    bool   // whether there is a column of times
	form     form
	measures []measure
	rows     []row
}

// form says what the lines of a table stand for.
type form int

const (
	perMethod  form = iota // the measures of a method
	statistics             // the data themselves
	perLevel               // a level of the hierarchy; the methods are columns
	perSize                // classes with similar numbers of training instances
	levels                 // a method; the levels are columns
)

func (t *table) heading() string { return t.name + ", " + t.data + " (" + t.origin + ")" }

func (t *table) gap() string {
	if t.gapGoal != "" {
		return t.gapGoal
	}
	return "0.001"
}

// measure is a key of `eval --json`, and the factor of its printed figures.
type measure struct {
	key, title string
	scale      float64
}

// row is a method with its flags, and the paper's figures, which may be missing.
type row struct {
	label, flags string
	printed      []float64
	flat         bool    // without the hierarchy
	minutes      float64 // the paper's training time
	against      []rival
	hours        string // duration of a row that runs only on request
}

// tuned reports whether the row requires a cross-validation, because another row has C = 1.
func (r *row) tuned() bool { return strings.HasSuffix(r.label, ", tuned") }

// rival is a row with which this one is compared, and the paper's significance: † below 5 %, ††
// below 1 %.
type rival struct{ label, printed string }

var (
	f1   = []measure{{"macro_f1", "Macro-F1", 100}, {"micro_f1", "Micro-F1", 100}}
	sets = []measure{{"zero_one", "0/1 %", 100}, {"sym_diff", "sym. diff.", 1}, {"hier_precision", "P", 100},
		{"hier_recall", "R", 100}, {"hier_f1", "F1", 100}}
	tree   = []measure{{"zero_one", "0/1 %", 100}, {"tree_loss", "tree loss %", 100}, {"micro_f1", "Micro-F1", 100}}
	losses = []measure{{"zero_one", "0/1 %", 100}, {"sym_diff", "sym. diff.", 1}, {"l_Htilde_unif", "H~ unif", 1},
		{"l_Htilde_sibl", "H~ sibl", 1}, {"l_Htilde_subtree", "H~ subtree", 1}}
)

const (
	own     = "the paper's own data"
	standIn = "The label sets are those without their root. The paper's precision and recall count the root, which is " +
		"positive for every labelled row; ours leave it out."
	ofOT = "The printed figures are those of MCAT (Table 3), a part of RCV1 of two levels, averaged over 50 " +
		"samples. The paper has C = 1, divided by the number of rows; below are C = 1 and C by cross-validation."
	m3       = "--method hblr-m3 --x likelihood=softmax"
	fewHours = "half an hour and more"
)

// ofSVM holds the flags for [JMLR]'s SVM: a machine for every node on all rows, and then the
// breadth-first pass. The program has no such method: it is h-svm without a hierarchy on rows that
// are labelled with all ancestors of their labels.
const ofSVM = "--method h-svm"

var (
	beatsTD = []rival{{"TD", "††"}}
	rrsvm   = func(p string) []rival { return []rival{{"BSVM", p}, {"TD", "††"}} }
	rrlr    = func(p string) []rival { return []rival{{"BLR", p}, {"TD", "††"}} }
)

// transfers returns the rows of the methods of [OT] with given flags.
func transfers(label, flags string) []row {
	return []row{
		{label: "FLATMULT" + label, flags: "--method flatmult" + flags, printed: []float64{7.03, 8.96, 92.97}},
		{label: "HIERMULT" + label, flags: "--method hiermult" + flags, printed: []float64{7.36, 9.32, 92.64}},
		{label: "TRANSFER" + label, flags: "--method transfer" + flags, printed: []float64{8.20, 10.72, 91.80}},
		{label: "TREELOSS" + label, flags: "--method hsvm" + flags, printed: []float64{26.16, 34.28, 73.84}},
		{label: "ORTHOGNL" + label, flags: "--method ot" + flags, printed: []float64{6.57, 8.74, 93.43}},
	}
}

var transferRows = append(transfers(", C = 1", " --C 1"), transfers(", tuned", "")...)

// tables lists the tables that the available data can fill.
var tables = []table{
	{name: "[TKDD] Table I, [KDD] Table 1, [NIPS] Table 1", data: "clef", origin: own, form: statistics,
		rows: []row{{printed: []float64{10000, 1006, 63, 4, 89, 1}}}},
	{name: "[TKDD] Table I, [KDD] Table 1, [NIPS] Table 1", data: "news20", origin: own, form: statistics,
		rows: []row{{printed: []float64{11260, 7505, 20, 3, 53975, 1}}}},
	{name: "[TKDD] Table I, [KDD] Table 1", data: "enron", origin: "stands in for RCV1", form: statistics,
		rows: []row{{printed: []float64{23149, 784446, 101, 6, 48734, 3.18}}}},
	{name: "[TKDD] Table I, [KDD] Table 1", data: "proteins_go", origin: "stands in for SWIKI-2011", form: statistics,
		rows: []row{{printed: []float64{456886, 81262, 36504, 11, 346299, 1.85}}}},
	{name: "[TKDD] Table I, [KDD] Table 1", data: "wordnet-freq", origin: "stands in for DMOZ-2010", form: statistics,
		rows: []row{{printed: []float64{128710, 34880, 12294, 6, 381580, 1}}}},
	{name: "[TKDD] Tables II to IV, [KDD] Tables 3 and 4, [NIPS] Table 3", data: "clef", origin: own, goal: "micro_f1",
		timed: true, measures: f1, rows: []row{
			{label: "BSVM", flags: "--method bsvm", printed: []float64{48.59, 77.53}, minutes: .15},
			{label: "BLR", flags: "--method blr", printed: []float64{53.26, 79.92}, minutes: .24},
			{label: "MSVM", flags: "--method msvm", printed: []float64{54.33, 80.02}, minutes: .20},
			{label: "MLR", flags: "--method mlr", printed: []float64{54.76, 80.52}, minutes: 1.92},
			{label: "TD", flags: "--method td", printed: []float64{32.32, 70.11}, minutes: .13},
			{label: "HSVM", flags: "--method hsvm", printed: []float64{57.23, 79.72}, minutes: 3.19},
			{label: "OT", flags: "--method ot", printed: []float64{37.12, 73.84}, minutes: 1.31},
			{label: "RR-SVM", flags: "--method rr-svm", printed: []float64{53.92, 80.02}, minutes: .42, against: rrsvm("††")},
			{label: "RR-LR", flags: "--method rr-lr", printed: []float64{55.83, 80.12}, minutes: 1.02, against: rrlr("†")},
			{label: "HBLR (M3-map)", flags: m3, printed: []float64{59.65, 81.41}, minutes: 3.05, against: beatsTD},
			{label: "HBLR (M3-map), binary", flags: "--method hblr-m3"}, {label: "rr-mlr, beyond the papers",
				flags: "--method rr-mlr"}}},
	{name: "[TKDD] Tables II to IV, [NIPS] Table 3", data: "news20", origin: own, goal: "micro_f1", timed: true,
		measures: f1, rows: []row{
			{label: "BSVM", flags: "--method bsvm", printed: []float64{82.32, 83.10}, minutes: .04},
			{label: "BLR", flags: "--method blr", printed: []float64{82.17, 82.97}, minutes: .11},
			{label: "MSVM", flags: "--method msvm", printed: []float64{81.73, 82.47}, minutes: .07},
			{label: "MLR", flags: "--method mlr", printed: []float64{81.82, 82.56}, minutes: .352},
			{label: "TD", flags: "--method td", printed: []float64{80.86, 81.20}, minutes: .04},
			{label: "HSVM", flags: "--method hsvm", printed: []float64{80.04, 80.79}, minutes: 2.31},
			{label: "OT", flags: "--method ot", printed: []float64{81.20, 81.98}, minutes: .98,
				against: []rival{{"TD", "† micro"}}},
			{label: "RR-SVM", flags: "--method rr-svm", printed: []float64{82.00, 82.78}, minutes: .14, against: rrsvm("none")},
			{label: "RR-LR", flags: "--method rr-lr", printed: []float64{82.06, 82.86}, minutes: .52, against: rrlr("none")},
			{label: "HBLR (M3-map)", flags: m3, printed: []float64{81.69, 82.56}, minutes: 1.06, against: beatsTD},
			{label: "HBLR (M3-map), binary", flags: "--method hblr-m3"}}},
	{name: "[TKDD] Tables II to IV, [KDD] Tables 3 and 4", data: "enron", origin: "stands in for RCV1: " +
		"several labels a row", goal: "micro_f1", timed: true, measures: f1,
		note: "Label sets by instance-based cut-offs, as in the papers.", rows: []row{
			{label: "BSVM", flags: "--method bsvm", printed: []float64{54.72, 80.82}, minutes: .273},
			{label: "BLR", flags: "--method blr", printed: []float64{53.38, 80.08}, minutes: 2.89},
			{label: "TD", flags: "--method td", printed: []float64{34.15, 71.34}, minutes: .213},
			{label: "RR-SVM", flags: "--method rr-svm", printed: []float64{56.56, 81.66}, minutes: .55, against: rrsvm("††")},
			{label: "RR-LR", flags: "--method rr-lr", printed: []float64{55.81, 81.23}, minutes: 11.74,
				against: rrlr("† macro, †† micro")},
			{label: "HBLR (M3-map)", flags: "--method hblr-m3", printed: []float64{56.08, 81.98}, minutes: 12.11,
				against: beatsTD}}},
	{name: "[TKDD] Tables II to IV, [KDD] Tables 3 and 4", data: "proteins_go", origin: "stands in for SWIKI-2011: " +
		"several labels a row, a graph", untuned: true, gapGoal: "0.01", timed: true, measures: f1,
		note: "C is not tuned: 1, and of the logistic loss and along the graph what [the results](results.md) found by " +
			"hand. Label sets by instance-based cut-offs. TD needs a tree.", rows: []row{
			{label: "BSVM", flags: "--method bsvm", printed: []float64{26.57, 40.87}, minutes: 54}, {label: "BLR, C = 50",
				flags: "--method blr --C 50", printed: []float64{19.51, 37.65}, minutes: 99.46},
			{label: "RR-SVM", flags: "--method rr-svm", printed: []float64{28.72, 41.79}, minutes: 89.23,
				against: []rival{{"BSVM", "not tested"}}},
			{label: "RR-SVM, anchor 10, C = 30", flags: "--method rr-svm --x anchor=10 --C 30", printed: []float64{28.72, 41.79},
				against: []rival{{"BSVM", "not tested"}}},
			{label: "RR-LR, anchor 10, C = 1000", flags: "--method rr-lr --x anchor=10 --C " +
				"1000", printed: []float64{24.26, 40.99},
				minutes: 296.87, against: []rival{{"BLR, C = 50", "not tested"}}}}},
	{name: "[TKDD] Tables II to V, [KDD] Tables 2 to 4", data: "wordnet-freq",
		origin: "stands in for DMOZ-2010: many rare classes", untuned: true, gapGoal: "0.01", timed: true, measures: f1,
		note: "C is not tuned: 1, and of the logistic loss that of [the tuned results](results.md#tuned), without " +
			"weights and shifts.", rows: []row{
			{label: "the best of the LSHTC web site", printed: []float64{34.12, 46.76}},
			{label: "BSVM", flags: "--method bsvm", printed: []float64{32.64, 45.36}, minutes: 5.12},
			{label: "BLR", flags: "--method blr --C 3", printed: []float64{31.58, 45.40}, minutes: 97.24},
			{label: "TD", flags: "--method td", printed: []float64{22.30, 38.64}, minutes: 3.97},
			{label: "RR-SVM", flags: "--method rr-svm", printed: []float64{33.12, 46.02}, minutes: 8.23,
				against: []rival{{"BSVM", "not tested"}, {"TD", "not tested"}}},
			{label: "RR-LR", flags: "--method rr-lr", printed: []float64{32.42, 45.84}, minutes: 123.22,
				against: []rival{{"BLR", "not tested"}, {"TD", "not tested"}}},
			{label: "HBLR (M3-map)", flags: "--method hblr-m3", printed: []float64{31.88, 45.64}, minutes: 151.67,
				hours: fewHours}}},
	{name: "[TKDD] Table VI, [NIPS] Table 3", data: "clef", origin: own, measures: f1, timed: true, rows: []row{
		{label: "M1-map", flags: "--method hblr-m1 --x likelihood=softmax", printed: []float64{55.53, 80.88}},
		{label: "M2-map", flags: "--method hblr-m2 --x likelihood=softmax", printed: []float64{54.76, 80.25}},
		{label: "M3-map", flags: m3, printed: []float64{59.65, 81.41}},
		{label: "M1-map, binary", flags: "--method hblr-m1"}, {label: "M2-map, binary", flags: "--method hblr-m2"},
		{label: "M3-map, binary", flags: "--method hblr-m3"}}},
	{name: "[TKDD] Table VI, [NIPS] Table 3", data: "news20", origin: own, measures: f1, timed: true, rows: []row{
		{label: "M1-map", flags: "--method hblr-m1 --x likelihood=softmax", printed: []float64{81.54, 82.24}},
		{label: "M2-map", flags: "--method hblr-m2 --x likelihood=softmax", printed: []float64{80.91, 81.54}},
		{label: "M3-map", flags: m3, printed: []float64{81.69, 82.56}}}},
	{name: "[TKDD] Table VII, [NIPS] Table 2", data: "clef", origin: own, measures: f1, timed: true, rows: []row{
		{label: "CorrMNL", flags: "--method corrmnl", printed: []float64{55.59, 81.10}, minutes: 2279,
			hours: "one to four hours"},
		{label: "CorrMNL, 40 draws of four chains, which are no posterior yet", flags: "--method corrmnl --x iterations=40 " +
			"--x burn-in=20 --x leapfrog=10 --x keep-draws=20"},
		{label: "M1-var", flags: "--method hblr-m1 --x likelihood=softmax --x " +
			"inference=variational", printed: []float64{56.67,
			81.21}, minutes: 79},
		{label: "M2-var", flags: "--method hblr-m2 --x likelihood=softmax --x " +
			"inference=variational", printed: []float64{51.23,
			79.92}, minutes: 81},
		{label: "M3-var", flags: m3 + " --x inference=variational", printed: []float64{59.67, 81.61}, minutes: 80},
		{label: "M1-map", flags: "--method hblr-m1 --x likelihood=softmax", printed: []float64{55.53, 80.88}, minutes: 3},
		{label: "M2-map", flags: "--method hblr-m2 --x likelihood=softmax", printed: []float64{54.76, 80.25}, minutes: 3},
		{label: "M3-map", flags: m3, printed: []float64{59.65, 81.41}, minutes: 3},
		{label: "M1-flat", flags: "--method hblr-m1 --x likelihood=softmax", flat: true, printed: []float64{52.13, 79.82},
			minutes: 3},
		{label: "M2-flat", flags: "--method hblr-m2 --x likelihood=softmax", flat: true, printed: []float64{48.78, 77.83},
			minutes: 3},
		{label: "M3-flat", flags: m3, flat: true, printed: []float64{55.23, 80.52}, minutes: 3}}},
	{name: "[TKDD] Table VIII", data: "wordnet-freq", origin: "stands in for DMOZ-2012", untuned: true, gapGoal: "0.01",
		form: perLevel, rows: []row{
			{label: "BSVM", flags: "--method bsvm", printed: []float64{100, 71.43, 41.62, 25.71, 26.54, 13.06}},
			{label: "RR-SVM", flags: "--method rr-svm", printed: []float64{100, 72.50, 42.93, 26.73, 27.27, 16.72}}}},
	{name: "[TKDD] Table IX", data: "wordnet-freq", origin: "stands in for DMOZ-2012", untuned: true, gapGoal: "0.01",
		form: perSize, rows: []row{
			{label: "BSVM", flags: "--method bsvm", printed: []float64{20.24, 24.84, 32.16, 39.94, 49.25, 59.81}},
			{label: "RR-SVM", flags: "--method rr-svm", printed: []float64{20.62, 26.59, 34.08, 41.23, 50.26, 60.64}}}},
	{name: "[OT] Tables 2 to 4", data: "clef", origin: "stands in for a part of RCV1", goal: "micro_f1", note: ofOT,
		measures: tree, rows: transferRows},
	{name: "[OT] Tables 2 to 4", data: "news20", origin: "stands in for a part of RCV1", goal: "micro_f1", note: ofOT,
		measures: tree, rows: transferRows},
	{name: "[JMLR] Table 1", data: "enron", origin: "stands in for REUTERS", note: standIn, goal: "hier_f1",
		measures: losses, rows: []row{
			{label: "H-M3, delta", flags: "--method hm3", printed: []float64{27.1, 0.574, 0.344, 0.114, 0.118}},
			{label: "H-M3, H~ unif", flags: "--method hm3 --x label-loss=unif", printed: []float64{26.8, 0.590, 0.338, 0.118,
				0.122}},
			{label: "H-M3, H~ sibl", flags: "--method hm3 --x label-loss=sibl", printed: []float64{28.2, 0.608, 0.381, 0.109,
				0.114}},
			{label: "H-M3, H~ subtree", flags: "--method hm3 --x " +
				"label-loss=subtree", printed: []float64{27.9, 0.588, 0.373, 0.109,
				0.109}}}},
	{name: "[JMLR] Table 2", data: "enron", origin: "stands in for REUTERS", note: standIn, goal: "hier_f1",
		measures: sets, rows: []row{
			{label: "SVM", flags: ofSVM, flat: true, printed: []float64{32.9, 0.61, 94.6, 58.4, 72.2}},
			{label: "H-SVM", flags: "--method h-svm", printed: []float64{29.8, 0.57, 92.3, 63.4, 75.1}},
			{label: "H-RLS", flags: "--method h-rls", printed: []float64{28.1, 0.55, 91.5, 65.4, 76.3}},
			{label: "H-M3, delta", flags: "--method hm3", printed: []float64{27.1, 0.58, 91.0, 64.1, 75.2}},
			{label: "H-M3, H~ subtree", flags: "--method hm3 --x label-loss=subtree", printed: []float64{27.9, 0.59, 85.4, 68.3,
				75.9}}}},
	{name: "[JMLR] Table 3", data: "enron", origin: "stands in for REUTERS", note: "Precision / recall / F1 of the " +
		"nodes of a level. The paper's level 0 is the level of the roots, the first here.", goal: "hier_f1", form: levels,
		rows: []row{
			{label: "SVM", flags: ofSVM, flat: true, printed: []float64{92.4, 89.4, 90.9, 96.8, 38.7, 55.3, 98.1, 49.3, 65.6,
				81.8, 46.2, 59.0}},
			{label: "H-SVM", flags: "--method h-svm", printed: []float64{92.4, 89.4, 90.9, 93.7, 43.6, 59.5, 91.1, 61.5, 73.4,
				72.0, 46.2, 56.3}},
			{label: "H-RLS", flags: "--method h-rls", printed: []float64{93.2, 89.1, 91.1, 90.9, 46.8, 61.8, 89.7, 64.8, 75.2,
				76.0, 48.7, 59.4}},
			{label: "H-M3, delta", flags: "--method hm3", printed: []float64{94.1, 83.0, 88.2, 87.3, 48.9, 62.7, 91.1, 63.2, 74.6,
				79.4, 69.2, 73.9}},
			{label: "H-M3, H~ subtree", flags: "--method hm3 --x label-loss=subtree", printed: []float64{91.1, 87.8, 89.4, 79.2,
				53.1, 63.6, 85.4, 66.6, 74.8, 77.9, 76.9, 77.4}}}},
}
