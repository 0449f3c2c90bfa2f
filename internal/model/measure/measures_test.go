package measure

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"taxon/internal/data/taxonomy"
)

func closureOf(tb testing.TB, text string) *taxonomy.Closure {
	tb.Helper()
	s, _, err := taxonomy.Read(strings.NewReader(text), "test")
	if err != nil {
		tb.Fatal(err)
	}
	c, err := taxonomy.NewClosure(s)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// same compares with room for the rounding of a few additions only.
func same(got, want float64) bool { return math.Abs(got-want) <= 1e-14 }

type figure struct {
	name      string
	got, want float64
}

func check(t *testing.T, figures []figure) {
	t.Helper()
	for _, f := range figures {
		if !same(f.got, f.want) {
			t.Errorf("%s is %.17g, want %.17g", f.name, f.got, f.want)
		}
	}
}

// measure takes rows "truth > predicted" (names separated by blanks).
func measure(t *testing.T, o Options, rows ...string) Result {
	t.Helper()
	a, err := NewAccumulator(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		truth, predicted, ok := strings.Cut(r, ">")
		if !ok {
			t.Fatalf("row %q", r)
		}
		a.AddNames(strings.Fields(truth), strings.Fields(predicted), nil)
	}
	return a.Result()
}

// The worked example: r over a, b, c; a over a1, a2; b over b1. Labels x and y are outside
// the structure; d is a class of the training data that no row has and no node is.
const exampleTree = "r a\nr b\nr c\na a1\na a2\nb b1\n"

var exampleRows = []string{
	"a1 > a1",
	"a1 > a2",
	"b1 > a1",
	"a > a1",
	" > c", // unlabelled
	"x c > c",
	"c > ", // nothing predicted
	"a1 b1 > b1 y b1",
}

func exampleOptions(t *testing.T) Options {
	return Options{
		Classes: []string{"a1", "a2", "b1", "a", "c", "d"}, TrainSizes: []int{5, 6, 20, 21, 101, 1},
		Structure: closureOf(t, exampleTree), ByLevel: true, BySize: true,
	}
}

// TestFlatByHand. Decisions, row by row:
//
//	     TP      FP        FN            F1
//	a1   row 1   rows 3,4  rows 2,8      2/(2+2+2) = 1/3
//	a2           row 2                   0
//	b1   row 8             row 3         2/(2+1)   = 2/3
//	a                      row 4         0
//	c    row 6   row 5     row 7         2/(2+1+1) = 1/2
//	x                      row 6         not in the class set
//	y            row 8                   not in the class set
//	sum  3       5         6
//
// micro: P = 3/8, R = 3/9, F1 = 6/(6+5+6) = 6/17; macro over a1 a2 b1 a c d:
// (1/3 + 2/3 + 1/2)/6 = 1/4. Only row 1 is exactly right: zero-one 7/8.
func TestFlatByHand(t *testing.T) {
	r := measure(t, exampleOptions(t), exampleRows...)
	check(t, []figure{
		{"micro_precision", r.MicroPrecision, 3. / 8},
		{"micro_recall", r.MicroRecall, 3. / 9},
		{"micro_f1", r.MicroF1, 6. / 17},
		{"macro_f1", r.MacroF1, 1. / 4},
		{"zero_one", r.ZeroOne, 7. / 8},
	})
	if r.Instances != 8 || r.Classes != 6 || r.ClassSet != "training" {
		t.Errorf("%d instances, %d classes of %s", r.Instances, r.Classes, r.ClassSet)
	}
}

// TestFlatWithoutTrainingData: the class set is a1 b1 a x c, the labels of the truth:
// (1/3 + 2/3 + 0 + 0 + 1/2)/5 = 3/10. The micro measures stay.
func TestFlatWithoutTrainingData(t *testing.T) {
	r := measure(t, Options{}, exampleRows...)
	check(t, []figure{
		{"micro_f1", r.MicroF1, 6. / 17},
		{"macro_f1", r.MacroF1, 3. / 10},
		{"zero_one", r.ZeroOne, 7. / 8},
	})
	if r.Classes != 5 || r.ClassSet != "data" || r.Hierarchy != nil || r.Ranking != nil {
		t.Errorf("%+v", r)
	}
}

// TestHierarchyByHand. Weights: sibl r 1; a, b, c 1/3; a1, a2 1/6; b1 1/3.
// subtree, in sevenths: r 7; a 3; b 2; c, a1, a2, b1 1.
//
//	row  closures                    sym  l_H at     sibl          subtree
//	1    r a a1 / r a a1             0    -
//	2    r a a1 / r a a2             2    a1 a2      1/6+1/6       2/7
//	3    r b b1 / r a a1             4    a b        1/3+1/3       5/7
//	4    r a / r a a1                1    a1         1/6           1/7
//	5    - / r c                     2    r          1             7/7
//	6    r c / r c (x is dropped)    0    -
//	7    r c / -                     2    r          1             7/7
//	8    r a a1 b b1 / r b b1        2    a          1/3           3/7
//	sum                              13   8          7/2           25/7
//
// Without r, microlabels of truth, prediction, both: 2 2 2, 2 2 1, 2 2 0, 1 2 1, 0 1 0,
// 1 1 1, 1 0 0, 4 2 2: sums 13, 12, 7. P = 7/12, R = 7/13, F1 = 14/25.
func TestHierarchyByHand(t *testing.T) {
	r := measure(t, exampleOptions(t), exampleRows...)
	check(t, []figure{
		{"tree_loss", r.TreeLoss, 13. / 2 / 8},
		{"sym_diff", r.SymDiff, 13. / 8},
		{"l_H_unif", r.HUnif, 8. / 8},
		{"l_H_sibl", r.HSibl, 7. / 2 / 8},
		{"l_H_subtree", r.HSubtree, 25. / 7 / 8},
		{"l_Htilde_unif", r.HtildeUnif, 8. / 8},
		{"l_Htilde_sibl", r.HtildeSibl, 7. / 2 / 8},
		{"l_Htilde_subtree", r.HtildeSubtree, 25. / 7 / 8},
		{"hier_precision", r.Precision, 7. / 12},
		{"hier_recall", r.Recall, 7. / 13},
		{"hier_f1", r.F1, 14. / 25},
	})
}

// TestLevelsByHand.
//
//	level 1: r: truth 7 rows, predicted 7, both 6             P R F1 6/7, macro 6/7
//	level 2: a 3 1 1 (TP FP FN) -> 3/4; b 1 0 1 -> 2/3; c 1 1 1 -> 1/2
//	         sums 5 2 3: P 5/7, R 5/8, F1 10/15; macro (3/4 + 2/3 + 1/2)/3 = 23/36
//	level 3: a1 1 2 2 -> 1/3; a2 0 1 0 -> 0; b1 1 0 1 -> 2/3
//	         sums 2 3 3: P 2/5, R 2/5, F1 4/10; macro 1/3
func TestLevelsByHand(t *testing.T) {
	r := measure(t, exampleOptions(t), exampleRows...)
	want := []Level{
		{1, 6. / 7, 1, 6. / 7, 6. / 7, 6. / 7},
		{2, 23. / 36, 3, 5. / 7, 5. / 8, 2. / 3},
		{3, 1. / 3, 3, 2. / 5, 2. / 5, 2. / 5},
	}
	if len(r.ByLevel) != len(want) {
		t.Fatalf("levels %+v", r.ByLevel)
	}
	for i, w := range want {
		g := r.ByLevel[i]
		if g.Level != w.Level || g.Classes != w.Classes {
			t.Errorf("level %+v, want %+v", g, w)
		}
		check(t, []figure{
			{"macro_f1", g.MacroF1, w.MacroF1}, {"precision", g.Precision, w.Precision},
			{"recall", g.Recall, w.Recall}, {"f1", g.F1, w.F1},
		})
	}
}

// TestLevelsCountKnownClasses: with class b1 alone, level 2 averages over b only and
// level 3 over b1, while the totals hold all microlabels: row "b1 > b1" gives TP b, b1;
// row "c > a1" FN c, FP a, a1.
func TestLevelsCountKnownClasses(t *testing.T) {
	o := Options{Classes: []string{"b1"}, Structure: closureOf(t, exampleTree), ByLevel: true}
	r := measure(t, o, "b1 > b1", "c > a1")
	l2, l3 := r.ByLevel[1], r.ByLevel[2]
	check(t, []figure{
		{"macro 2", l2.MacroF1, 1}, {"precision 2", l2.Precision, 1. / 2}, {"recall 2", l2.Recall, 1. / 2},
		{"macro 3", l3.MacroF1, 1}, {"precision 3", l3.Precision, 1. / 2}, {"recall 3", l3.Recall, 1},
	})
	if l2.Classes != 1 || l3.Classes != 1 {
		t.Errorf("%+v", r.ByLevel)
	}
}

// TestSizesByHand: a1 (5) and d (1) in 1-5: (1/3+0)/2; a2 (6) in 6-10; b1 (20) in 11-20;
// a (21) in 21-50; none in 51-100; c (101) above.
func TestSizesByHand(t *testing.T) {
	r := measure(t, exampleOptions(t), exampleRows...)
	want := []struct {
		from, to, classes int // to 0: open
		f1                float64
	}{{0, 0, 1, 0}, {1, 1, 1, 0}, {2, 5, 1, 1. / 3}, {6, 10, 1, 0}, {11, 20, 1, 2. / 3},
		{21, 50, 1, 0}, {101, 0, 1, 1. / 2}}
	if len(r.BySize) != len(want) {
		t.Fatalf("sizes %+v", r.BySize)
	}
	for i, w := range want {
		g := r.BySize[i]
		to := 0
		if g.To != nil {
			to = *g.To
		}
		if g.From != w.from || to != w.to || g.Classes != w.classes || !same(g.MacroF1, w.f1) {
			t.Errorf("bin %+v (to %d), want %+v", g, to, w)
		}
	}
}

// TestForestByHand: p over p1, p2; q alone. There is no microlabel above p and q and both
// count everywhere. sibl: p, q 1/2; p1, p2 1/4. subtree: p 3/4; q, p1, p2 1/4.
//
//	p1 > q:  p p1 / q: sym 3, distance p1-p-*-q 3, l_H at p, q: 2, 1, 1
//	p1 > p2: sym 2, distance 2, l_H at p1, p2: 2, 1/2, 1/2
//
// Microlabels of truth, prediction, both: 2 1 0, 2 2 1: P 1/3, R 1/4, F1 2/7.
func TestForestByHand(t *testing.T) {
	o := Options{Structure: forestOfFour(t)}
	r := measure(t, o, "p1 > q", "p1 > p2")
	check(t, []figure{
		{"tree_loss", r.TreeLoss, 5. / 2 / 2}, {"sym_diff", r.SymDiff, 5. / 2},
		{"l_H_unif", r.HUnif, 4. / 2}, {"l_H_sibl", r.HSibl, 3. / 2 / 2}, {"l_H_subtree", r.HSubtree, 3. / 2 / 2},
		{"hier_precision", r.Precision, 1. / 3}, {"hier_recall", r.Recall, 1. / 4}, {"hier_f1", r.F1, 2. / 7},
	})
}

// forestOfFour has a root without children, which no file can have but a first-parent
// tree can.
func forestOfFour(t *testing.T) *taxonomy.Closure {
	t.Helper()
	c, err := taxonomy.NewClosure(&taxonomy.Structure{
		Names: []string{"p", "p1", "p2", "q"}, Parents: []uint32{0, 0}, Children: []uint32{1, 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDAGByHand: r over a, b; c below a and b. First parents: c below a. sibl: a, b, c 1/2;
// subtree: a 2/4, b 1/4, c 1/4.
//
//	c > a: r a b c / r a: sym 2, distance 1; l_H at b only (c's parent b differs): 1, 1/2, 1/4
//	b > c: r b / r a b c: sym 2, distance 3; l_H at a only: 1, 1/2, 2/4
//
// Without r: truth 3+1, prediction 1+3, both 1+1: P = R = F1 = 1/2.
func TestDAGByHand(t *testing.T) {
	o := Options{Structure: closureOf(t, "r a\nr b\na c\nb c\n")}
	check(t, []figure{{"tree_loss of c > a", measure(t, o, "c > a").TreeLoss, 1. / 2}})
	r := measure(t, o, "c > a", "b > c")
	check(t, []figure{
		{"tree_loss", r.TreeLoss, 4. / 2 / 2}, {"sym_diff", r.SymDiff, 4. / 2},
		{"l_H_unif", r.HUnif, 1}, {"l_H_sibl", r.HSibl, 1. / 2}, {"l_H_subtree", r.HSubtree, 3. / 4 / 2},
		{"hier_precision", r.Precision, 1. / 2}, {"hier_recall", r.Recall, 1. / 2}, {"hier_f1", r.F1, 1. / 2},
	})
}

// TestRankingByHand.
//
//	truth  ranking          P@1 P@3 P@5  DCG / ideal
//	a b    a x b y z b      1   2/3 2/5  (1 + 1/2) / (1 + 1/log2 3)
//	a      x a              0   1/3 1/5  1/log2 3
//	-      a                0   0   0    0
//	b      a a b            0   1/3 1/5  1/log2 3 (the second a is dropped)
//	a-f    a b c d e        1   1   1    1
//	a      -                0   0   0    0
//	a      v w x y z a      0   0   0    0 (sixth)
func TestRankingByHand(t *testing.T) {
	a, err := NewAccumulator(Options{Ranked: true, At: []int{2, 6}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{{"a b", "a x b y z b"}, {"a", "x a"}, {"", "a"}, {"b", "a a b"},
		{"a b c d e f", "a b c d e"}, {"a", ""}, {"a", "v w x y z a"}} {
		a.AddNames(strings.Fields(r[0]), nil, strings.Fields(r[1]))
	}
	r := a.Result()
	second := 1 / math.Log2(3)
	check(t, []figure{
		{"p@1", r.P1, 2. / 7},
		{"p@3", r.P3, (2. + 1 + 1 + 3) / 3 / 7},
		{"p@5", r.P5, (2. + 1 + 1 + 5) / 5 / 7},
		{"ndcg@5", r.NDCG5, (1.5/(1+second) + second + second + 1) / 7},
		{"p@2", r.Places[0].P, 2.5 / 7},
		{"ndcg@2", r.Places[0].NDCG, (1/(1+second) + second + second + 1) / 7},
		{"p@6", r.Places[1].P, 10. / 6 / 7},
	})
}

// TestNothing: no rows give zeros, not NaN, and valid JSON.
func TestNothing(t *testing.T) {
	o := exampleOptions(t)
	o.Ranked = true
	r := measure(t, o)
	if r.MicroF1 != 0 || r.MacroF1 != 0 || r.ZeroOne != 0 || r.TreeLoss != 0 || r.NDCG5 != 0 || r.Classes != 6 {
		t.Errorf("%+v", r)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// TestKeys holds the JSON keys, which other programs read, and their order.
func TestKeys(t *testing.T) {
	o := exampleOptions(t)
	o.Ranked = true
	c, err := NewComparison(o)
	if err != nil {
		t.Fatal(err)
	}
	ids := c.IDs(nil, []string{"a1", "b1"})
	c.Add(ids[:1], Output{Predicted: ids[:1], Ranked: ids}, Output{Predicted: ids[1:]})
	r := c.Result()
	r.Other = nil
	flat := "instances classes class_set micro_f1 macro_f1 micro_precision micro_recall zero_one"
	ranked := " p@1 p@3 p@5 ndcg@5"
	tree := " tree_loss sym_diff l_H_unif l_H_sibl l_H_subtree l_Htilde_unif l_Htilde_sibl l_Htilde_subtree " +
		"hier_precision hier_recall hier_f1"
	level := " by_level level macro_f1 classes precision recall f1"
	size := " by_size from to macro_f1 classes"
	if got, want := keys(t, r), flat+ranked+tree+level+size+" sign_test n_plus n_minus p wilcoxon statistic"; got != want {
		t.Errorf("keys\n got %s\nwant %s", got, want)
	}
	if got := keys(t, measure(t, Options{})); got != flat {
		t.Errorf("keys\n got %s\nwant %s", got, flat)
	}
}

// keys lists the keys of the JSON document, each once within its table.
func keys(t *testing.T, r Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile(`"([^"]+)":`).FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(list[max(0, len(list)-6):], m[1]) {
			list = append(list, m[1])
		}
	}
	return strings.Join(list, " ")
}

func TestOptionsRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"sizes without classes": {TrainSizes: []int{1}},
		"class twice":           {Classes: []string{"a", "a"}},
		"level without tree":    {ByLevel: true},
		"size without sizes":    {BySize: true},
	} {
		if _, err := NewAccumulator(o); err == nil {
			t.Errorf("%s went through", name)
		}
		if _, err := NewComparison(o); err == nil {
			t.Errorf("%s went through in a comparison", name)
		}
	}
}
