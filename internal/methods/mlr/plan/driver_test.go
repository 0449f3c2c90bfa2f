package plan

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// run is the history of a method in a few dimensions, newest point first, as the ranges store it.
type run struct {
	w, g [][]float64
	h    []float64 // preconditioner
}

// products returns the products of the newest point with `older` older ones.
func (r *run) products(older int) (p Products) {
	s, u := make([][]float64, older+1), make([][]float64, older+1)
	minus := func(a, b []float64) []float64 {
		out := slices.Clone(a)
		for i := range out {
			out[i] -= b[i]
		}
		return out
	}
	u[0] = r.g[0]
	for j := 1; j <= older; j++ {
		s[j], u[j] = minus(r.w[j-1], r.w[j]), minus(r.g[j-1], r.g[j])
	}
	scaled := func(a []float64) []float64 {
		out := slices.Clone(a)
		for i := range out {
			out[i] /= r.h[i]
		}
		return out
	}
	for j := range older + 1 {
		p.E0[j] = dot(scaled(u[0]), u[j])
		if j >= 1 {
			p.SG[j], p.SY[j], p.E1[j] = dot(s[j], u[0]), dot(s[1], u[j]), dot(scaled(u[1]), u[j])
		}
		if j >= 2 {
			p.YS[j] = dot(s[j], u[1])
		}
	}
	return p
}

// textbook computes the direction of L-BFGS by vectors: Nocedal and Wright, algorithm 7.4.
func (r *run) textbook(older int) []float64 {
	q, a := slices.Clone(r.g[0]), make([]float64, older+1)
	pair := func(j int) (s, y []float64) {
		for i := range q {
			s, y = append(s, r.w[j-1][i]-r.w[j][i]), append(y, r.g[j-1][i]-r.g[j][i])
		}
		return s, y
	}
	for j := 1; j <= older; j++ {
		s, y := pair(j)
		a[j] = dot(s, q) / dot(s, y)
		for i := range q {
			q[i] -= a[j] * y[i]
		}
	}
	gamma := 1.0
	if older > 0 {
		s, y := pair(1)
		yy := 0.0
		for i := range y {
			yy += y[i] * y[i] / r.h[i]
		}
		gamma = dot(s, y) / yy
	}
	for i := range q {
		q[i] *= gamma / r.h[i]
	}
	for j := older; j >= 1; j-- {
		s, y := pair(j)
		b := dot(y, q) / dot(s, y)
		for i := range q {
			q[i] += (a[j] - b) * s[i]
		}
	}
	for i := range q {
		q[i] = -q[i]
	}
	return q
}

// TestDirection checks that the recursion on inner products gives the textbook's direction, while
// the memory fills and when it is full.
func TestDirection(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 12
	a := &run{h: make([]float64, n)}
	curvature := make([]float64, n)
	for i := range n {
		a.h[i], curvature[i] = 1+r.Float64(), 1+10*r.Float64()
	}
	var h history
	for k := range 2*Memory + 2 {
		w, g := make([]float64, n), make([]float64, n)
		for i := range n {
			w[i] = r.NormFloat64()
			g[i] = curvature[i]*w[i] + 1
		}
		a.w, a.g = slices.Insert(a.w, 0, w), slices.Insert(a.g, 0, g)
		older := min(k, Memory)
		p := a.products(older)
		h.accept(&p, older)
		cu, cs, slope := h.direction()
		want := a.textbook(older)
		got := make([]float64, n)
		for i := range n {
			for j := range older + 1 {
				u, s := a.g[0][i], 0.0
				if j > 0 {
					u, s = a.g[j-1][i]-a.g[j][i], a.w[j-1][i]-a.w[j][i]
				}
				got[i] += cu[j]*u/a.h[i] + cs[j]*s
			}
			if math.Abs(got[i]-want[i]) > 1e-9*(1+math.Abs(want[i])) {
				t.Fatalf("point %d: direction %v, want %v", k, got, want)
			}
		}
		if math.Abs(slope-dot(want, a.g[0])) > 1e-9*(1+math.Abs(slope)) {
			t.Errorf("point %d: slope %g, want %g", k, slope, dot(want, a.g[0]))
		}
	}
}

func testPlan(t *testing.T) *method.Plan {
	t.Helper()
	spec := &taxonv1.JobSpec{Options: methodtest.Options("mlr",
		"bias", 1), Data: &taxonv1.Data{Instances: 5000, Features: 400,
		Nonzeros: 50_000}}
	p, err := Method{}.Plan(&method.Problem{Spec: spec, Tree: testTree(t, 20)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testTree(t *testing.T, classes int) *taxonomy.Tree {
	t.Helper()
	labels, counts := make([]string, classes), make([]int, classes)
	for k := range labels {
		labels[k], counts[k] = strings.Repeat("x", k+1), 1
	}
	tree, _, err := taxonomy.Build(nil, labels, counts, taxonomy.PruneEmpty)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestPlan checks that the ranges cover all columns, including the bias, and that there are few
// shards.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		features, nonzeros, instances uint64
		classes                       int
		shards, ranges                int
	}{
		{400, 50_000, 5000, 20, 3, 8},               // small: divided by work
		{3, 100, 50, 2, 1, 1},                       // tiny
		{6104, 77_496, 6602, 502, 3, 12},            // as the demo: divided by the size of a shard's output
		{80, 800_000, 10_000, 63, 64, 5},            // dense
		{100_000, 10_000_000, 100_000, 100, 24, 39}, // large
		{1, 40, 40, 1 << 20, 5, 2},                  // a column is more than a range
	} {
		spec := &taxonv1.JobSpec{Options: methodtest.Options("mlr", "bias", 1), Data: &taxonv1.Data{Instances: c.instances,
			Features: c.features, Nonzeros: c.nonzeros}}
		tree := &taxonomy.Tree{Leaf: slices.Repeat([]bool{true}, c.classes), Parent: slices.Repeat([]int32{-1}, c.classes)}
		problem := &method.Problem{Spec: spec, Tree: tree}
		p, err := Method{}.Plan(problem)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Detail(p.Detail)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Items[Rows].Count; got != c.shards {
			t.Errorf("%+v: %d shards", c, got)
		}
		if n := uint64(p.Items[Ranges].Count); int(n) != c.ranges || n*uint64(d.Width) < c.features+1 ||
			(n-1)*uint64(d.Width) >= c.features+1 {
			t.Errorf("%+v: %d ranges of %d columns", c, n, d.Width)
		}
		if e := (Method{}).Estimate(problem, p); e.StoreJob < (2*Memory+2)*8*uint64(c.classes)*c.features ||
			e.WorkerSlot < 8*uint64(c.classes)*c.features {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}

// parabola is the problem 1/2 w^2 + C sum (a w - b)^2 / 2 of one weight. It reports losses and a
// norm as tasks do.
type parabola struct {
	w, g  []float64 // accepted, newest first
	trial float64
	curve float64
}

func (p *parabola) loss(w float64) float64 { return p.curve / 2 * (w - 3) * (w - 3) }

// run executes the driver's step and returns its figures.
func (p *parabola) run(t *testing.T, s method.Step) []method.Sums {
	t.Helper()
	tasks := s.Tasks[0]
	all := make([]method.Sums, tasks.Count)
	for i := range all {
		all[i] = make(method.Sums, Figures)
	}
	first := all[0]
	switch tasks.Op {
	case OpMove:
		var m Move
		if err := method.Decode(tasks.Params, &m); err != nil {
			t.Fatal(err)
		}
		d := m.U[0] * p.g[0]
		for j := 1; j < len(m.U); j++ {
			d += m.U[j]*(p.g[j-1]-p.g[j]) + m.S[j]*(p.w[j-1]-p.w[j])
		}
		p.trial = p.w[0] + m.Step*d
		first[SumNorm] = p.trial * p.trial
	case OpScore:
		first[SumLoss] = p.loss(p.trial)
	case OpGather:
		g := p.trial + p.curve*(p.trial-3)
		p.w, p.g = slices.Insert(p.w, 0, p.trial), slices.Insert(p.g, 0, g)
		first[SumNorm], first[SumGradient] = p.trial*p.trial, g*g
		var m Gather
		if err := method.Decode(tasks.Params, &m); err != nil {
			t.Fatal(err)
		}
		r := &run{h: []float64{1}}
		for i := range m.Past + 1 {
			r.w, r.g = append(r.w, []float64{p.w[i]}), append(r.g, []float64{p.g[i]})
		}
		products := r.products(m.Past)
		all[0] = products.AppendTo(first[:sumProducts])
	}
	return all
}

func (p *parabola) step(t *testing.T, d method.Driver) (method.Step, method.Outcome, bool) {
	t.Helper()
	s, more := d.Next()
	if !more {
		return s, method.Outcome{}, false
	}
	out, err := d.Commit(p.run(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return s, out, true
}

func testOptions(change func(*taxonv1.Options)) *taxonv1.JobSpec {
	o := methodtest.Options(Name, "gap", 1e-12)
	change(o)
	return &taxonv1.JobSpec{Options: o}
}

func testDriver(t *testing.T, change func(*taxonv1.Options)) *driver {
	t.Helper()
	d, err := Method{}.Driver(testOptions(change), testPlan(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.(*driver)
}

// TestSteps checks that the first search shortens its step, because a full gradient step overshoots
// at a curvature of 100, that the trial's values are dropped, and that a driver restored from the
// state behaves alike.
func TestSteps(t *testing.T) {
	d, p := testDriver(t, func(*taxonv1.Options) {}), &parabola{curve: 100}
	var ops []string
	dropped := 0
	for range 100 {
		before := d.State()
		again, err := Method{}.Driver(testOptions(func(*taxonv1.Options) {}), testPlan(t), before)
		if err != nil || !bytes.Equal(again.State(), before) {
			t.Fatalf("%v: state %s, again %s", err, before, again.State())
		}
		s, out, more := p.step(t, d)
		if !more {
			break
		}
		ops = append(ops, s.Tasks[0].Op)
		if slices.Contains(out.Drop, V) {
			dropped++
			if s.Tasks[0].Op != OpScore || out.SweepDone {
				t.Errorf("%+v drops %v", s, out)
			}
		}
		if out.SweepDone != (s.Tasks[0].Op == OpGather) || out.SweepDone != out.Certified {
			t.Errorf("%s: %+v", s.Tasks[0].Op, out)
		}
	}
	if strings.Join(ops[:6], " ") != "score gather move score move score" || ops[len(ops)-1] != OpEmit || dropped == 0 {
		t.Errorf("%v, dropped %d", ops, dropped)
	}
	c := d.Progress().Certificate
	if best := 0.5*9*100/101 - 0; d.StoppedBy != method.StoppedByGap || math.Abs(c.Objective-best) > 1e-9 || c.Gap < 0 {
		t.Errorf("%s with %+v, optimum %g", d.StoppedBy, c, best)
	}
}

// TestTimeUp checks that a pending trial point is dropped, except for the first point, that the job
// ends at the last accepted point, and that it continues there with more time.
func TestTimeUp(t *testing.T) {
	for steps, late := range []method.DeadlinePolicy{method.RunFull, method.RunFull, method.Skip, method.Skip} {
		d, p := testDriver(t, func(*taxonv1.Options) {}), &parabola{curve: 3}
		for range steps {
			p.step(t, d)
		}
		if got := d.TimeUp(true); got != late {
			t.Errorf("after %d steps late tasks are %d", steps, got)
		}
		var all []method.Sums
		if late == method.Skip { // nobody has begun
			all = make([]method.Sums, 3)
			if _, err := d.Commit(all); err != nil {
				t.Fatal(err)
			}
		}
		for {
			s, _, more := p.step(t, d)
			if !more {
				break
			}
			if s.Tasks[0].Op == OpMove {
				t.Errorf("after %d steps and the time another point is tried", steps)
			}
		}
		if d.StoppedBy != method.StoppedByMaxTime || d.Sweep != 1 || d.Progress().Certificate == nil {
			t.Errorf("after %d steps: %s in sweep %d", steps, d.StoppedBy, d.Sweep)
		}
		d.TimeUp(false)
		d.Resume(false)
		if s, more := d.Next(); !more || s.Tasks[0].Op != OpMove || s.Sweep != 2 {
			t.Errorf("goes on with %s of sweep %d, %v", s.Phase, s.Sweep, more)
		}
	}
}

// TestStops checks caps and a changed tolerance.
func TestStops(t *testing.T) {
	d := testDriver(t, func(o *taxonv1.Options) { o.Set("max_sweeps", 1); o.Set("eval_every", 1) })
	p := &parabola{curve: 50}
	shown := 0
	for {
		s, out, more := p.step(t, d)
		if !more {
			break
		}
		if s.Show {
			shown++
			if !out.SweepDone || out.Phase != phases[stageGather] || s.Sweep != 1 {
				t.Errorf("%+v", out)
			}
		}
	}
	if d.StoppedBy != method.StoppedByMaxSweeps || shown != 1 {
		t.Errorf("%s, %d shown", d.StoppedBy, shown)
	}
	d.MaxSweeps = 0
	d.Resume(false)
	for {
		if _, _, more := p.step(t, d); !more {
			break
		}
	}
	if d.StoppedBy != method.StoppedByGap {
		t.Error(d.StoppedBy)
	}
}

// TestDigitsEnd checks that a tolerance beyond the precision of float64 ends as stationary.
func TestDigitsEnd(t *testing.T) {
	d, p := testDriver(t, func(o *taxonv1.Options) { o.Set("gap", 1e-300) }), &parabola{curve: math.Pi}
	for range 100_000 {
		if _, _, more := p.step(t, d); !more {
			break
		}
	}
	if c := d.Progress().Certificate; d.StoppedBy != method.StoppedByStationary && c.Gap != 0 || c.Gap > 1e-14 {
		t.Errorf("%s with %+v", d.StoppedBy, c)
	}
}
