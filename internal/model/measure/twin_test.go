package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/data/taxonomy"
)

// twinRow is a row as names.
type twinRow struct{ truth, predicted, ranked []string }

// twin computes every figure from its definition, by maps and loops over all (row, class)
// and (row, node) pairs; it shares no code with the package.
type twin struct {
	rows    []twinRow
	classes []string // class set of Macro-F1
	sizes   map[string]int
	parents map[string][]string // of every node of the structure
	nodes   []string
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func fraction(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// counts of one class, or microlabel, over rows of sets.
func counts(rows [][2]map[string]bool, name string) (tp, fp, fn float64) {
	for _, r := range rows {
		switch {
		case r[0][name] && r[1][name]:
			tp++
		case r[1][name]:
			fp++
		case r[0][name]:
			fn++
		}
	}
	return tp, fp, fn
}

func toSet(names []string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// figuresOf pools the counts of some names: micro precision, recall, F1, and their mean F1.
func figuresOf(rows [][2]map[string]bool, names, averaged []string) (precision, recall, f1, mean float64) {
	var tp, fp, fn float64
	for _, n := range names {
		a, b, c := counts(rows, n)
		tp, fp, fn = tp+a, fp+b, fn+c
	}
	for _, n := range averaged {
		a, b, c := counts(rows, n)
		mean += fraction(2*a, 2*a+b+c)
	}
	return fraction(tp, tp+fp), fraction(tp, tp+fn), fraction(2*tp, 2*tp+fp+fn), fraction(mean, float64(len(averaged)))
}

func (w *twin) flat() [][2]map[string]bool {
	var rows [][2]map[string]bool
	for _, r := range w.rows {
		rows = append(rows, [2]map[string]bool{toSet(r.truth), toSet(r.predicted)})
	}
	return rows
}

// closure is the ancestor closure of the labels within the structure.
func (w *twin) closure(labels []string) map[string]bool {
	in := map[string]bool{}
	var up func(n string)
	up = func(n string) {
		if ps, ok := w.parents[n]; ok {
			in[n] = true
			for _, p := range ps {
				up(p)
			}
		}
	}
	for _, l := range labels {
		up(l)
	}
	return in
}

func (w *twin) closed() [][2]map[string]bool {
	var rows [][2]map[string]bool
	for _, r := range w.rows {
		rows = append(rows, [2]map[string]bool{w.closure(r.truth), w.closure(r.predicted)})
	}
	return rows
}

func (w *twin) depth(n string) int { // longest way is not needed: the first-parent tree's level
	if len(w.parents[n]) == 0 {
		return 1
	}
	return 1 + w.depth(w.parents[n][0])
}

func (w *twin) allNames() []string {
	seen := map[string]bool{}
	for _, r := range w.rows {
		for _, l := range slices.Concat(r.truth, r.predicted) {
			seen[l] = true
		}
	}
	var names []string
	for n := range seen {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// ranked gives P@1, P@3, P@5 and nDCG@5.
func (w *twin) ranked() (p [3]float64, ndcg float64) {
	for _, r := range w.rows {
		truth, best := toSet(r.truth), []string{}
		for _, l := range r.ranked {
			if !contains(best, l) {
				best = append(best, l)
			}
		}
		for i, k := range []int{1, 3, 5} {
			for _, l := range best[:min(k, len(best))] {
				if truth[l] {
					p[i] += 1 / float64(k)
				}
			}
		}
		gain, ideal := 0.0, 0.0
		for i := range 5 {
			d := math.Ln2 / math.Log(float64(i)+2)
			if i < len(best) && truth[best[i]] {
				gain += d
			}
			if i < len(truth) {
				ideal += d
			}
		}
		ndcg += fraction(gain, ideal)
	}
	n := float64(len(w.rows))
	for i := range p {
		p[i] /= n
	}
	return p, ndcg / n
}

// propensityScored computes PSP@1, 3, 5 and PSnDCG@5 by the formulas of the paper, and the best values
// by trying the row's labels in the order of their weights.
func (w *twin) propensityScored(documents float64) (psp [3]float64, psndcg float64) {
	weight := func(l string) float64 { // a label without a size has 0
		c := (math.Log(documents) - 1) * math.Pow(1.5+1, 0.55)
		return 1 + c*math.Exp(-0.55*math.Log(float64(w.sizes[l])+1.5))
	}
	var sums, bests [4]float64
	for _, r := range w.rows {
		truth := toSet(r.truth)
		var ideal, best []string
		for l := range truth {
			ideal = append(ideal, l)
		}
		slices.SortFunc(ideal, func(a, b string) int { return cmp.Compare(weight(b), weight(a)) })
		for _, l := range r.ranked {
			if !contains(best, l) {
				best = append(best, l)
			}
		}
		for i, k := range []int{1, 3, 5, 5} {
			value := func(list []string) (sum float64) {
				unit := 0.0
				for place, l := range list[:min(k, len(list))] {
					gain := 1.0
					if i == 3 {
						gain = 1 / math.Log2(float64(place)+2)
					}
					if truth[l] {
						sum += gain * weight(l)
					}
				}
				for place := range min(k, len(ideal)) {
					unit += 1 / math.Log2(float64(place)+2)
				}
				if i == 3 && unit > 0 {
					sum /= unit
				}
				return sum
			}
			sums[i] += value(best)
			bests[i] += value(ideal)
		}
	}
	for i := range psp {
		psp[i] = fraction(sums[i], bests[i])
	}
	return psp, fraction(sums[3], bests[3])
}

func drawTwin(t *rapid.T) *twin {
	w := &twin{parents: map[string][]string{}, sizes: map[string]int{}}
	n := rapid.IntRange(1, 8).Draw(t, "nodes")
	tree := rapid.Bool().Draw(t, "tree")
	for v := range n {
		name := fmt.Sprint("n", v)
		w.nodes, w.parents[name] = append(w.nodes, name), nil
		for range rapid.IntRange(0, 2).Draw(t, "parents") {
			if v == 0 || tree && len(w.parents[name]) == 1 {
				continue
			}
			p := fmt.Sprint("n", rapid.IntRange(0, v-1).Draw(t, "parent"))
			if !contains(w.parents[name], p) {
				w.parents[name] = append(w.parents[name], p)
			}
		}
	}
	// two outside
	label := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("n", rapid.IntRange(0, n+1).Draw(t, "label")) })
	labels := rapid.SliceOfN(label, 0, 4)
	for range rapid.IntRange(1, 6).Draw(t, "rows") {
		w.rows = append(w.rows, twinRow{labels.Draw(t, "truth"), labels.Draw(t, "predicted"), rapid.SliceOfN(label, 0,
			7).Draw(t, "ranked")})
	}
	if rapid.Bool().Draw(t, "trained") {
		w.classes = rapid.SliceOfNDistinct(label, 1, 5, rapid.ID).Draw(t, "classes")
		for _, c := range w.classes {
			w.sizes[c] = rapid.SampledFrom([]int{0, 1, 5, 6, 20, 21, 100, 101}).Draw(t, "size")
		}
	}
	return w
}

func (w *twin) options(t *rapid.T) Options {
	s := &taxonomy.Structure{Names: w.nodes}
	for v, n := range w.nodes {
		for _, p := range w.parents[n] {
			s.Parents, s.Children = append(s.Parents, uint32(slices.Index(w.nodes, p))), append(s.Children, uint32(v))
		}
	}
	c, err := taxonomy.NewClosure(s)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Structure: c, Ranked: true, ByLevel: true}
	if w.classes != nil {
		o.Classes, o.BySize, o.Documents = w.classes, true, 1000
		for _, c := range w.classes {
			o.TrainSizes = append(o.TrainSizes, w.sizes[c])
		}
	}
	return o
}

// TestTwin compares flat, ranked and pooled hierarchical figures and both tables.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTwin(t)
		a, err := NewAccumulator(w.options(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range w.rows {
			a.AddNames(r.truth, r.predicted, r.ranked)
		}
		got := a.Result()

		flat, average := w.flat(), w.classes
		inexact := 0.0
		for i := range flat {
			for _, n := range w.allNames() {
				if flat[i][0][n] != flat[i][1][n] {
					inexact++
					break
				}
			}
		}
		if average == nil {
			for _, n := range w.allNames() {
				if tp, _, fn := counts(flat, n); tp+fn > 0 {
					average = append(average, n)
				}
			}
		}
		var want []figure
		add := func(name string, got, value float64) { want = append(want, figure{name, got, value}) }
		p, r, f, macro := figuresOf(flat, w.allNames(), average)
		add("classes", float64(got.Classes), float64(len(average)))
		add("micro_precision", got.MicroPrecision, p)
		add("micro_recall", got.MicroRecall, r)
		add("micro_f1", got.MicroF1, f)
		add("macro_f1", got.MacroF1, macro)
		add("zero_one", got.ZeroOne, inexact/float64(len(w.rows)))
		at, ndcg := w.ranked()
		add("p@1", got.P1, at[0])
		add("p@3", got.P3, at[1])
		add("p@5", got.P5, at[2])
		add("ndcg@5", got.NDCG5, ndcg)
		if w.classes != nil {
			scored, discounted := w.propensityScored(1000)
			add("psp@1", got.PSP1, scored[0])
			add("psp@3", got.PSP3, scored[1])
			add("psp@5", got.PSP5, scored[2])
			add("psndcg@5", got.PSNDCG5, discounted)
		}

		closed := w.closed()
		var roots []string
		for _, n := range w.nodes {
			if len(w.parents[n]) == 0 {
				roots = append(roots, n)
			}
		}
		pooled := w.nodes
		if len(roots) == 1 {
			pooled = slices.DeleteFunc(slices.Clone(w.nodes), func(n string) bool { return n == roots[0] })
		}
		p, r, f, _ = figuresOf(closed, pooled, nil)
		add("hier_precision", got.Precision, p)
		add("hier_recall", got.Recall, r)
		add("hier_f1", got.F1, f)
		known := w.closure(average)
		for _, l := range got.ByLevel {
			var level, counted []string
			for _, n := range w.nodes {
				if w.depth(n) == l.Level {
					level = append(level, n)
					if known[n] {
						counted = append(counted, n)
					}
				}
			}
			p, r, f, macro := figuresOf(closed, level, counted)
			add(fmt.Sprint("classes of level ", l.Level), float64(l.Classes), float64(len(counted)))
			add("precision by level", l.Precision, p)
			add("recall by level", l.Recall, r)
			add("f1 by level", l.F1, f)
			add("macro_f1 by level", l.MacroF1, macro)
		}
		inBins := 0
		sized := slices.Clone(w.classes) // and the labels that only rows have
		for _, n := range w.allNames() {
			if tp, _, fn := counts(flat, n); w.classes != nil && tp+fn > 0 && !slices.Contains(sized, n) {
				sized = append(sized, n)
			}
		}
		for _, b := range got.BySize {
			var bin []string
			for _, c := range sized {
				if s := w.sizes[c]; s >= b.From && (b.To == nil || s <= *b.To) {
					bin = append(bin, c)
				}
			}
			_, _, _, macro := figuresOf(flat, nil, bin)
			inBins += len(bin)
			add("classes by size", float64(b.Classes), float64(len(bin)))
			add("macro_f1 by size", b.MacroF1, macro)
		}
		add("classes in bins", float64(inBins), float64(len(sized)))
		for _, f := range want {
			if math.Abs(f.got-f.want) > 1e-12 {
				t.Fatalf("%s is %g, the twin says %g", f.name, f.got, f.want)
			}
		}
	})
}

// TestTwinDecisions counts the sign test's decisions over all (row, class) pairs.
func TestTwinDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTwin(t)
		c, err := NewComparison(w.options(t))
		if err != nil {
			t.Fatal(err)
		}
		plus, minus := int64(0), int64(0)
		for _, r := range w.rows { // the ranking stands in for a second model's labels
			truth, first, second := toSet(r.truth), toSet(r.predicted), toSet(r.ranked)
			c.Add(c.IDs(nil, r.truth), Output{Predicted: c.IDs(nil, r.predicted)}, Output{Predicted: c.IDs(nil, r.ranked)})
			for i := range len(w.nodes) + 2 {
				n := fmt.Sprint("n", i)
				switch a, b := first[n] == truth[n], second[n] == truth[n]; {
				case a && !b:
					plus++
				case b && !a:
					minus++
				}
			}
		}
		if s := c.Result().SignTest; s.Plus != plus || s.Minus != minus {
			t.Fatalf("%d against %d, the twin says %d against %d", s.Plus, s.Minus, plus, minus)
		}
	})
}
