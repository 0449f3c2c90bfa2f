package tune

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/linalg/sparse"
	"taxon/internal/model"
	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
	"taxon/internal/ui/progress"
)

// climbing is a search by one method without lists of values, and without a limit.
func climbing(t *testing.T, methods ...string) *Options {
	t.Helper()
	o := uneven(t)
	delete(o.Grid.Values, "C")
	o.Methods, o.Folds, o.Time, o.NoTrain = methods, 2, 0, true
	return o
}

// TestClimb: a search without lists and without a clock takes the same way twice, comes to a
// point no worse than the defaults, says what mattered, and trains the model, which the same
// command finds there.
func TestClimb(t *testing.T) {
	o := climbing(t, "bsvm")
	o.NoTrain = false
	r, again := run(t, o, ""), run(t, o, "-again")
	if len(r.Points) != len(again.Points) || !r.Options.Equal(again.Options) {
		t.Fatalf("%d points, %s chosen; then %d, %s", len(r.Points), r.Options.Name(), len(again.Points),
			again.Options.Name())
	}
	for i, p := range r.Points {
		if q := again.Points[i]; !p.Equal(q.Point) || p.Value != q.Value || p.Tried != q.Tried {
			t.Errorf("point %d: %+v, then %+v", i, p, q)
		}
		if p.Tried == r.Folds && p.Value > r.Points[r.Chosen].Value {
			t.Errorf("%s is better than what was chosen", p.Name())
		}
	}
	at := slices.IndexFunc(r.Points, func(p *TablePoint) bool { return p.Path() == "bsvm" && p.C() == 1 })
	if at < 0 || r.Points[at].Value > r.Points[r.Chosen].Value || r.Sample || r.TimeUp {
		t.Errorf("the defaults are point %d; %+v", at, r)
	}
	for _, option := range []string{"C", "prior-shift", "loss"} {
		if !slices.ContainsFunc(r.Effects, func(e Effect) bool { return e.Option == option }) {
			t.Errorf("nothing about %s among the effects %+v", option, r.Effects)
		}
	}
	m, err := model.Open(r.Model)
	if err != nil {
		t.Fatal(err)
	}
	if m.Close(); r.Model != filepath.Join(o.Train.Out, "model") || m.Options.Method != "bsvm" ||
		r.Report.StoppedBy != "gap" || *r.Report.Gap > 0.01 {
		t.Errorf("the model %s, %+v, %+v", r.Model, m.Options, r.Report)
	}
	before, err := os.Stat(filepath.Join(r.Model, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	third := run(t, o, "")
	if after, err := os.Stat(filepath.Join(r.Model, "manifest.json")); err != nil ||
		!after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the finished model was made anew (%v)", err)
	}
	if a, b := r.Points, third.Points; !reflect.DeepEqual(a, b) || third.Model != r.Model {
		t.Error("the same command comes to something else")
	}
	data, err := json.Marshal(third)
	if err != nil || !strings.Contains(string(data), `"model":"`+r.Model) {
		t.Errorf("%v: no model in %s", err, data)
	}
}

// TestClimbGoesOn: a search that is interrupted leaves the best so far, and goes on to what one
// that was not comes to.
func TestClimbGoesOn(t *testing.T) {
	o := climbing(t, "bsvm", "td")
	whole := run(t, o, "-whole")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if done, _ := filepath.Glob(filepath.Join(o.Train.Out, "points", "*.json")); len(done) >= 25 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := Run(ctx, o, progress.Discard{})
	cancel()
	if !errors.Is(err, jobs.ErrInterrupted) {
		t.Fatalf("it ended with %v", err)
	}
	if job, err := os.ReadFile(filepath.Join(o.Train.Out, "job.yaml")); err != nil || !strings.Contains(string(job),
		"the best so far") || !strings.Contains(string(job), " of 600 instances") {
		t.Errorf("the job file: %s (%v)", job, err)
	}
	r := run(t, o, "")
	if len(r.Points) != len(whole.Points) || !r.Options.Equal(whole.Options) {
		t.Fatalf("%d points, %s chosen; undisturbed %d, %s", len(r.Points), r.Options.Name(), len(whole.Points),
			whole.Options.Name())
	}
	for i, p := range r.Points {
		if w := whole.Points[i]; p.Value != w.Value || !p.Equal(w.Point) {
			t.Errorf("point %d: %+v, undisturbed %+v", i, p, w)
		}
	}
}

// TestTimeIsKept: by a clock on which every point that is measured takes a tenth of a second, the
// search begins no training when its time is up; the less time, the less is tried. Of hardly any
// it still makes a model.
func TestTimeIsKept(t *testing.T) {
	defer func(before func(time.Duration) *clock) { newClock = before }(newClock)
	tried := math.MaxInt
	for _, limit := range []time.Duration{8 * time.Second, 4 * time.Second, time.Second} {
		o := climbing(t, "bsvm", "rr-svm")
		o.Time, o.NoTrain = limit, false
		began := time.Now()
		k := &clock{began: began, limit: limit, secondsRatio: 1}
		k.now = func() time.Time {
			return began.Add(time.Duration(recordIn(t.Context(), o.Train.Out).finished()) * 100 * time.Millisecond)
		}
		newClock = func(time.Duration) *clock { return k }
		s, err := open(t.Context(), validated(t, o), progress.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shifts := o.Grid.listValues(o.Grid.find("bsvm", "prior-shift"))
		underWay := 0.1 * float64(s.together*len(shifts)) // seconds of the points that may still end
		if over := -k.left(0); over >= underWay && limit > time.Second {
			t.Errorf("the search took %g s more than %s", over, limit)
		}
		if !r.TimeUp || len(r.Points) >= tried {
			t.Errorf("%s: time up %t, %d points, %d with more time", limit, r.TimeUp, len(r.Points), tried)
		}
		tried = len(r.Points)
		if err := s.train(t.Context(), r); err != nil || !model.IsModel(r.Model) {
			t.Errorf("no model after %s: %v", limit, err)
		}
	}
}

// TestBeginsAtFlat: a method with a structure begins where its flat form stands after its climb
// along C, and shifts are all measured at once where labels need no cut-offs.
func TestBeginsAtFlat(t *testing.T) {
	o := climbing(t, "bsvm", "rr-svm")
	o.Grid.Values["loss"] = []string{"squared-hinge"}
	s, err := open(t.Context(), validated(t, o), progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	c := newHillClimb(s)
	c.line, c.stage = c.ui.Start("tune", 0), &stage{to: 1}
	c.o.Grid.Values["C"] = []string{"0.0001", "0.001", "100"} // a climb begins at the first of these
	c.starts = c.o.Grid.starts(c.structure())
	if err := c.list(); err != nil {
		t.Fatal(err)
	}
	if err := c.begin(t.Context(), 1, 1); err != nil {
		t.Fatal(err)
	}
	if len(c.inTree) != len(c.whole.Set.Labels) {
		t.Errorf("%d labels in the tree, %d in all", len(c.inTree), len(c.whole.Set.Labels))
	}
	flat, joint := c.families[0], c.families[1]
	if joint.start.Method != "rr-svm" || joint.flat != flat || flat.flat != nil {
		t.Fatalf("families %+v, %+v", flat, joint)
	}
	of := func(f *family) (out []*trial) {
		return slices.DeleteFunc(slices.Clone(c.stage.trials), func(r *trial) bool { return r.family != f })
	}
	if len(of(flat)) != 2 || len(of(joint)) != 1 || of(joint)[0].base.C() != 100 || flat.best.base.C() != 100 {
		t.Errorf("%d and %d trainings; C = %g, %g", len(of(flat)), len(of(joint)), flat.best.base.C(), of(joint)[0].base.C())
	}
	if shifts := c.o.Grid.listValues(c.o.Grid.find("bsvm", "prior-shift")); len(flat.best.points) != len(shifts) {
		t.Errorf("%d points of one training, %d shifts", len(flat.best.points), len(shifts))
	}
}

// TestRefined: options that change with C are refined before others, and by the best families
// however far behind; others only by those near the best.
func TestRefined(t *testing.T) {
	var order []int
	g := &Grid{Methods: []string{"rr-svm"}}
	options := g.tunable("rr-svm")
	for i := range options {
		order = append(order, orderOf(&options[i]))
	}
	if !slices.Contains(order, withCost) || !slices.Contains(order, fine) {
		t.Errorf("the options' orders are %v", order)
	}
	c := &hillClimb{search: &search{o: &Options{NoTrain: true}, goal: &measure.Measure{Key: "micro_f1"},
		clock: newClock(0)},
		stage: &stage{to: 1}}
	for i, v := range []float64{0.5, 0.9, 0.6, 0.4} {
		f, p := &family{start: Point{"bsvm", registry.Values{}}}, &candidate{jack: &Jackknife{}}
		for k := range p.jack {
			p.jack[k] = v + 1e-4*float64(k*(i+1)) // a standard error far below the differences
		}
		p.results = []*result{{}}
		f.best = &trial{base: f.start, family: f, top: p}
		c.families, c.stage.trials = append(c.families, f), append(c.stage.trials, f.best)
	}
	for least, want := range map[int][]int{1: {1}, 2: {1, 2}, 3: {1, 2, 0}} {
		var got []int
		for _, f := range c.leading(least) {
			got = append(got, slices.Index(c.families, f))
		}
		if !slices.Equal(got, want) {
			t.Errorf("leading(%d): %v, not %v", least, got, want)
		}
	}
	c.families[1].flat = c.families[2] // whose structured form is ahead
	if best := c.leading(4); len(best) != 3 || slices.Contains(best, c.families[2]) {
		t.Errorf("a flat form behind its structured one leads: %v", best)
	}
}

// exactly opens a climb whose trainings end at the gap asked for, not at a rough one.
func exactly(t *testing.T, o *Options) *hillClimb {
	t.Helper()
	s, err := open(t.Context(), validated(t, o), progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	delete(o.rough, "gap")
	c := newHillClimb(s)
	c.line = c.ui.Start("tune", 0)
	return c
}

// TestAgain: a training that its time has cut short continues from there once it may take longer, and
// counts as one.
func TestAgain(t *testing.T) {
	o := climbing(t, "rr-svm")
	o.Grid.Values = map[string][]string{"C": {"1000"}, "loss": {"hinge"}}
	o.Train.Said = registry.Values{"gap": "1e-13", "max-sweeps": "100000"}
	c := exactly(t, o)
	f := &family{start: c.starts[0]}
	c.families, c.stage = []*family{f}, &stage{from: 0, to: 1}
	c.clock.limit, c.share = time.Hour, leastSeconds/3600/breakOffFactor
	if err := c.try(t.Context(), f, f.start); err != nil || len(c.stage.trials) != 1 || !f.best.stopped {
		t.Fatalf("not cut short: %+v (%v)", f.best, err)
	}
	short := f.best.top.results[0].outcome
	states := func() []string {
		out, _ := filepath.Glob(filepath.Join(o.Train.Out, "states", "*"))
		return out
	}
	if len(states()) != 1 {
		t.Errorf("it has left %v", states())
	}
	if err := c.continueStopped(t.Context()); err != nil || !f.best.stopped {
		t.Errorf("it went on without more time: %+v (%v)", f.best, err)
	}
	c.share = 1
	if err := c.continueStopped(t.Context()); err != nil || f.best.stopped || f.best != c.stage.trials[0] ||
		len(c.stage.trials) != 1 {
		t.Fatalf("with more time: %+v (%v)", f.best, err)
	}
	long := f.best.top.results[0].outcome
	// A quick machine may have come to where float32 ends before the time did: the gap then stands still.
	if long.Sweeps <= short.Sweeps || long.CPUSeconds <= short.CPUSeconds || long.Gap > max(1.1*short.Gap, 1e-7) ||
		long.From != nil {
		t.Errorf("cut short %+v, then %+v", short, long)
	}
	if len(states()) != 0 {
		t.Errorf("what is of no more use stays: %v", states())
	}
}

func validated(t *testing.T, o *Options) *Options {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestMethodsThatFit: all methods but baselines are searched, those that can't be trained are left
// out and named, with the reason; one that is named alone is an error.
func TestMethodsThatFit(t *testing.T) {
	o := climbing(t)
	if err := o.Validate(); err != nil || slices.Contains(o.Grid.Methods, "msvm") || !slices.Contains(o.Grid.Methods,
		"hblr-m3") {
		t.Errorf("searched are %v, %v", o.Grid.Methods, err)
	}
	o = climbing(t, "bsvm", "mlr")
	lines, err := os.ReadFile(o.Train.Data[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Train.Data[0], []byte("c0,c1 1:1\n"+string(lines)), 0o666); err != nil {
		t.Fatal(err)
	}
	r := run(t, o, "")
	if at := slices.IndexFunc(r.Untried, func(u Untried) bool { return u.Method == "mlr" }); at < 0 ||
		!strings.Contains(r.Untried[at].Why, "exactly one label") {
		t.Errorf("not tried: %+v", r.Untried)
	}
	data := o.Train.Data
	o = climbing(t, "mlr")
	o.Train.Data = data
	if _, err := Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(),
		"exactly one label") {
		t.Errorf("mlr on label sets: %v", err)
	}
}

// TestSample: a sample takes the part of the work that it is to take, of classes where there are
// many, is the same in every run, and its folds are parts of the folds.
func TestSample(t *testing.T) {
	set := func(rows, classes int) *dataset.Set {
		s := &dataset.Set{Matrix: &sparse.Matrix{Rows: rows}, LabelBegin: []uint64{0}, PosBegin: []uint64{0},
			Labels: make([]string, classes)}
		s.Stats.LabelEntries = int64(rows)
		for r := range rows {
			s.LabelIndex, s.LabelBegin = append(s.LabelIndex, uint32(r%classes)), append(s.LabelBegin, uint64(r+1))
		}
		for c := range classes {
			for r := c; r < rows; r += classes {
				s.PosRows = append(s.PosRows, uint32(r))
			}
			s.PosBegin = append(s.PosBegin, uint64(len(s.PosRows)))
		}
		return s
	}
	for _, c := range []struct {
		classes int
		graph   bool
		whole   bool // classes are drawn, all of each
	}{{500, false, true}, {500, true, false}, {10, false, false}} {
		s := set(20000, c.classes)
		p := &partition{whole: s, fold: labelset.Folds(s.LabelBegin, s.LabelIndex, c.classes, 5, 7)}
		n := p.draw(0.25, c.graph, nil, 7)
		q := &partition{whole: s, fold: p.fold}
		if q.draw(0.25, c.graph, nil, 7) != n || !slices.Equal(q.in, p.in) || math.Abs(p.work-0.25) > 0.01 {
			t.Errorf("%+v: %d, a work of %g", c, n, p.work)
		}
		seen, rows := map[uint32]int{}, 0
		for r, in := range p.in {
			if in {
				rows++
				seen[s.LabelIndex[r]]++
			}
		}
		if whole := len(seen) < c.classes; n != -rows || whole != c.whole || whole &&
			seen[s.LabelIndex[slices.Index(p.in, true)]] != 20000/c.classes {
			t.Errorf("%+v: %d rows of %d classes", c, rows, len(seen))
		}
		train, held := p.split(n)
		if len(train)+len(held) != rows || p.rows(n, n+1) != len(held) || len(held)*5 < rows*9/10 || slices.ContainsFunc(held,
			func(r uint32) bool { return p.fold[r] != 0 || !p.in[r] }) {
			t.Errorf("%+v: %d to train on, %d held out", c, len(train), len(held))
		}
	}
}

// TestOnAllRows: what a sample of rows chose is tried on all of them with a smaller C, what a sample of
// classes chose with the same.
func TestOnAllRows(t *testing.T) {
	c := &hillClimb{search: &search{o: &Options{Grid: Grid{}}, folds: &partition{share: 0.1}}}
	p := Point{"bsvm", registry.Values{"C": "10"}}
	if got := c.onAllRows(p).C(); got != 3 {
		t.Errorf("a tenth of the rows: C = %g", got)
	}
	if c.folds.share = 1; c.onAllRows(p).C() != 10 {
		t.Error("all rows of some classes: another C")
	}
	if c.folds.share = 0.1; len(c.onAllRows(Point{"hblr-m1", registry.Values{}}).Values) != 0 {
		t.Error("a method without a C has one")
	}
}

// TestSampleInTree: classes next to each other in the tree are drawn together.
func TestSampleInTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var inTree []int32
	for l := int32(999); l >= 0; l-- {
		inTree = append(inTree, l)
	}
	out := shuffled(r, 2000, inTree)
	if sorted := slices.Sorted(slices.Values(out)); len(out) != 1000 || sorted[0] != 0 || sorted[999] != 999 ||
		slices.IsSortedFunc(out, func(a, b int) int { return b - a }) {
		t.Fatalf("%d labels, of 1000 in the tree", len(out))
	}
	breaks := 0
	for i := range out[1:] {
		if out[i+1] != out[i]-1 {
			breaks++
		}
	}
	if breaks > 1000/kin {
		t.Errorf("%d runs of 1000 labels", breaks+1)
	}
	if out = shuffled(r, 10, nil); len(out) != 10 {
		t.Errorf("without a tree %v", out)
	}
}

// TestStarts: a climb on a graph begins where options say, at what was given before that, and on a
// tree at the defaults of what has no effect there.
func TestStarts(t *testing.T) {
	for _, c := range []struct {
		on           method.Structure
		given        string
		anchor, cost string
	}{{method.Graphs, "", "1", "degree"}, {method.Graphs, "0.1", "0.1", "degree"}, {method.Structured, "", "0.01",
		"class"}} {
		g := &Grid{Methods: []string{"rr-lr"}, Values: map[string][]string{}}
		if c.given != "" {
			g.Values["anchor"] = []string{c.given}
		}
		if p := g.starts(c.on)[0]; p.Values["anchor"] != c.anchor || p.Values["cost-by"] != c.cost || p.C() != 1 {
			t.Errorf("%+v: it begins at %s", c, p.Name())
		}
	}
}

// TestChosen: of points that are as good the one that trains far quicker is taken, not one that is
// worse; by the one-standard-error rule the smallest C of the best one's path within the error.
func TestChosen(t *testing.T) {
	c := &hillClimb{search: &search{o: &Options{NoTrain: true}, clock: &clock{}, goal: &measure.Measure{Key: "micro_f1"}},
		stage: &stage{to: 1}}
	table := &Table{Folds: 1}
	add := func(cost, bias string, value, cpu float64) {
		p := &candidate{point: Point{"bsvm", registry.Values{"C": cost, "bias": bias}}, jack: &Jackknife{},
			results: []*result{{}}}
		for i := range p.jack {
			p.jack[i] = value + 0.02*float64(i%2)
		}
		p.jack[0] = value
		c.stage.trials = append(c.stage.trials, &trial{base: p.point, top: p, cpu: cpu})
		table.Points = append(table.Points, &TablePoint{p.point, Figures{Value: value, Tried: 1}})
	}
	add("1", "9", 0.9, 8)
	add("1", "3", 0.9, 3)
	add("1", "1", 0.9, 5)
	add("0.3", "9", 0.89, 1)
	add("0.1", "9", 0.7, 1)
	c.trials = c.stage.trials
	if !c.choose(table) || table.Chosen != 1 || table.Best != 0 || table.Rule != "quickest" ||
		!table.Options.Equal(c.trials[1].base) {
		t.Errorf("%d chosen, %d best, by %s", table.Chosen, table.Best, table.Rule)
	}
	c.o.OneSE = true
	if !c.choose(table) || table.Chosen != 3 || table.Rule != "one-se" {
		t.Errorf("%d chosen by %s", table.Chosen, table.Rule)
	}
}

// TestLadder: steps go along the values, beyond their ends in the same ratio as far as the option
// allows, and weights of losses are also tried with a C that offsets them.
func TestLadder(t *testing.T) {
	g := &Grid{}
	of := func(option string) *valueList {
		o := registry.Find("rr-svm", option)
		return &valueList{option: o, values: g.listValues(o), open: true}
	}
	at := func(option, value string) Point { return Point{"rr-svm", registry.Values{"C": "1", option: value}} }
	l := of("bias")
	for from, want := "1", ""; from != "27"; from = want {
		want = map[string]string{"1": "3", "3": "9", "9": "27"}[from]
		if got := l.step(at("bias", from), 1); len(got) != 1 || got[0].Values["bias"] != want {
			t.Errorf("above %s: %v, want %s", from, got, want)
		}
	}
	if got := l.step(at("bias", "0.3"), -1); len(got) != 1 || got[0].Values["bias"] != "0.09" {
		t.Errorf("below 0.3: %v", got)
	}
	if l = of("bias"); len(l.values) != 3 {
		t.Fatalf("%v", l.values)
	}
	if l.open = false; l.step(at("bias", "3"), 1) != nil || l.step(at("bias", "2"), 1) != nil {
		t.Error("a closed list continues beyond its end, or from a value that it lacks")
	}
	w := of("positive-weight")
	w.cost = of("C")
	got := w.step(at("positive-weight", "1"), 2)
	if len(got) != 2 || got[0].Values["positive-weight"] != "4" || got[0].Values["C"] != "1" ||
		got[1].Values["C"] != "0.3" {
		t.Errorf("positives weighted more: %v", got)
	}
	from := at("positive-weight", "1")
	from.Values["C"] = "1e-05" // the smallest listed C: the list continues below it
	if got = w.step(from, 3); len(got) != 2 || got[1].Values["C"] != "1.1e-06" {
		t.Errorf("positives weighted more at the least C: %v", got)
	}
	a := of("anchor")
	a.cost = of("C")
	if got = a.step(at("anchor", "0.01"), 2); len(got) != 2 || got[0].Values["anchor"] != "1" ||
		got[1].Values["C"] != "10" {
		t.Errorf("a larger anchor: %v", got)
	}
	if got = a.step(at("anchor", "0.0001"), -1); len(got) != 2 || got[1].Values["C"] != "0.3" {
		t.Errorf("a smaller anchor: %v", got)
	}
	if s := of("prior-shift"); len(s.step(at("prior-shift", "0"), -1)) != 0 {
		t.Error("a shift below 0")
	}
}

// TestCosts: trainings that took twice their CPU time on a busy machine are predicted so, and
// what comes beside a training is counted by itself.
func TestCosts(t *testing.T) {
	c, now := newCosts(2), time.Now()
	if s := c.seconds(10); s < 5 || s > 10 {
		t.Errorf("10 s of CPU on two threads are foretold %g s before anything was measured", s)
	}
	for range 20 {
		b := c.batch(now)
		b.add(10, 3)
		b.add(10, 3)
		b.end(now.Add(43*time.Second), 2) // 40 s of training, both measured in 3 s
	}
	if s := c.seconds(100); math.Abs(s-200) > 10 {
		t.Errorf("100 s of CPU are foretold %g s", s)
	}
	if s := c.seconds(0); math.Abs(s-1.5) > 0.1 {
		t.Errorf("measuring alone is foretold %g s", s)
	}
}
