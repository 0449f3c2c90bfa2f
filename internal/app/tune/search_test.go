package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/data/dataset"
	"taxon/internal/model"
	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

const sixClasses = "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n"

// uneven is a search on 600 rows of six classes, over half of them of the first, which a small
// C predicts for everything.
func uneven(t *testing.T, cs ...string) *Options {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 5))
	var rows strings.Builder
	for range 600 {
		c := max(0, r.IntN(13)-7)
		shown := c
		if r.IntN(10) == 0 {
			shown = r.IntN(6)
		}
		fmt.Fprintf(&rows, "c%d %d:1 %d:%.3f\n", c, 1+shown, 10+r.IntN(8), r.Float64())
	}
	o := Defaults()
	o.Train.Data, o.Train.Hierarchy = []string{filepath.Join(dir, "train.svm")}, filepath.Join(dir, "tree.txt")
	o.Train.Out, o.Train.Threads = filepath.Join(dir, "tuned"), 2
	o.Grid.Values["C"] = cs
	for path, text := range map[string]string{o.Train.Data[0]: rows.String(), o.Train.Hierarchy: sixClasses} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return &o
}

// search runs a search, in another folder if there is a name for it.
func run(t *testing.T, o *Options, name string) *Table {
	t.Helper()
	c := *o
	c.Train.Out += name
	r, err := Run(t.Context(), &c, progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(c.Train.Out + ".*"); len(left) > 0 {
		t.Errorf("left beside the search: %v", left)
	}
	return r
}

// TestSearchFitsTheMemory: the largest of the grid's trainings says how many run side by side,
// whichever comes first, and their number changes nothing.
func TestSearchFitsTheMemory(t *testing.T) {
	o := uneven(t, "0.1", "1")
	o.Folds, o.Grid.Methods = 2, []string{"bsvm", "rr-svm"}
	s, err := open(t.Context(), o, progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	largest, one, two := s.largest.Spec.GetOptions().GetMethod(), s.largest.Needs(1), s.largest.Needs(2)
	if err := s.close(); err != nil || largest != "rr-svm" {
		t.Errorf("the largest training is by %s, %v", largest, err)
	}
	free := run(t, o, "free")
	o.Train.Memory = two - 1
	if s, err = open(t.Context(), o, progress.Discard{}); err != nil || s.together != 1 {
		t.Fatalf("one training fits: %v", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	for k, p := range run(t, o, "bounded").Points {
		if !p.Equal(free.Points[k].Point) || p.MicroF1 != free.Points[k].MicroF1 || p.MacroF1 != free.Points[k].MacroF1 {
			t.Errorf("one after the other: %+v, side by side %+v", p, free.Points[k])
		}
	}
	o.Train.Memory = one - 1
	if _, err := Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(), "‹memory› is") {
		t.Errorf("none fits: %v", err)
	}
}

// Another program searches as the verb does; the second run finds all that it needs on record.
func TestRun(t *testing.T) {
	o := uneven(t, "0.1", "1")
	o.Folds = 2
	first := run(t, o, "")
	again := run(t, o, "")
	if len(first.Points) != 2 || !reflect.DeepEqual(first.Points, again.Points) { // CPU seconds included
		t.Errorf("%+v, then %+v", first, again)
	}
	o.Folds = 3
	if _, err := Run(t.Context(), o, progress.Discard{}); !option.Is(err) || !strings.Contains(err.Error(),
		"with other options") {
		t.Errorf("other folds: %v", err)
	}
}

// TestRace: the race comes to the choice of the search that drops nothing, with fewer trainings.
func TestRace(t *testing.T) {
	o := uneven(t, "1e-5", "1e-4", "0.01", "1", "100")
	o.Grid.Methods, o.Folds = []string{"rr-svm", "bsvm"}, 4
	exhaustive, one := *o, *o
	exhaustive.Exhaustive, one.FirstFolds = true, 1
	raced, whole := run(t, o, ""), run(t, &exhaustive, "-exhaustive")
	trainings := 0
	for _, p := range raced.Points {
		trainings += p.Tried
	}
	if len(whole.Points) != 10 || trainings >= 40 || raced.Points[raced.Chosen].Tried != 4 {
		t.Errorf("%d points of the whole grid, %d trainings in the race", len(whole.Points), trainings)
	}
	if !raced.Options.Equal(whole.Options) {
		t.Errorf("the race chose %+v, without it %+v", raced.Options, whole.Options)
	}
	if se := whole.Points[whole.Chosen].StandardError; se == nil || *se <= 0 || whole.Measured != 600 {
		t.Errorf("standard error %v over four folds, %d measured", se, whole.Measured)
	}
	r := run(t, &one, "-one")
	if r.Folds != 1 || r.OfFolds != 4 || r.Instances != 600 || r.Measured != 150 || r.Options.C() < 0.01 {
		t.Errorf("one fold of four: %+v", r)
	}
	if p := r.Points[r.Chosen]; p.Tried != 1 || p.StandardError != nil {
		t.Errorf("one fold: tried on %d, standard error %v", p.Tried, p.StandardError)
	}
	if job, err := os.ReadFile(r.JobFile); err != nil || !strings.Contains(string(job), "(standard error unknown: one "+
		"fold has none) on 1 of 4 folds, 150 of 600 instances") {
		t.Errorf("the job file of one fold: %s (%v)", job, err)
	}
}

// TestShift: shifts are tried without trainings of their own.
func TestShift(t *testing.T) {
	o := uneven(t, "0.01", "1")
	o.Grid.Methods, o.Folds, o.Exhaustive = []string{"bsvm"}, 2, true
	plain := run(t, o, "")
	o.Grid.Values["prior-shift"], o.Goal = []string{"0", "0.2", "5"}, "macro"
	r := run(t, o, "-shift")
	if len(r.Points) != 6 {
		t.Fatalf("%d points", len(r.Points))
	}
	sweeps := func(r *Table) (n int) {
		for _, p := range r.Points {
			n += p.Sweeps
		}
		return n
	}
	if sweeps(r) != sweeps(plain) {
		t.Errorf("%d sweeps with shifts, %d without", sweeps(r), sweeps(plain))
	}
	for i, p := range r.Points {
		if want := []float64{0, 0, 0.2, 0.2, 5, 5}[i]; p.Shift() != want {
			t.Errorf("point %d has shift %v", i, p.Shift())
		}
	}
	if r.Points[0].MicroF1 != plain.Points[0].MicroF1 || r.Points[4].MicroF1 > 0.5 {
		t.Errorf("micro F1 %v without a shift, %v with one that hides the largest class", r.Points[0].MicroF1,
			r.Points[4].MicroF1)
	}
}

// TestMethods: every method can be searched, and the value of a fold is that of a model trained
// on the other rows, predicting in the method's own way.
func TestMethods(t *testing.T) {
	for _, name := range registry.Names() {
		o := uneven(t, "0.3", "1")
		o.Grid.Methods, o.Folds, o.FirstFolds = []string{name}, 2, 1
		m, err := registry.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		points := 1 // of two C, and of its own options' values
		for _, option := range m.Options() {
			switch {
			case option.Name == "C":
				points *= 2
			case !option.Learns: // no hierarchy is learned here
				points *= max(len(option.Grid), 1)
			}
		}
		if !registry.Has(name, "C") {
			o.Grid = Grid{Methods: o.Grid.Methods}
			if registry.Has(name, "iterations") { // a tenth of the draws will do
				o.Train.Said = registry.Values{"iterations": "200", "burn-in": "80"}
			}
		}
		r := run(t, o, "")
		if len(r.Points) != points {
			t.Errorf("%s: %d points", name, len(r.Points))
			continue
		}
		p := r.Points[0]
		o.Train.Job, o.Train.Cutoff, o.Train.Store, o.Train.Pause = o.job(p.Point), "none", "memory", 10
		if want := heldOutF1(t, o); math.Abs(p.Value-want) > 0.02 {
			t.Errorf("%s: value %v, of a model trained on the other rows %v", name, p.Value, want)
		}
	}
}

// heldOutF1 trains on the rows outside the first fold and measures the model on those in it.
func heldOutF1(t *testing.T, o *Options) float64 {
	t.Helper()
	whole, err := train.Open(t.Context(), &o.Train, progress.Discard{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	set := whole.Set
	_, held := labelset.Split(labelset.Folds(set.LabelBegin, set.LabelIndex, len(set.Labels), o.Folds, 0), 0)
	m := trainedWithout(t, &o.Train, held)
	defer m.Close()
	acc, err := measure.NewAccumulator(measure.Options{Classes: set.Labels})
	if err != nil {
		t.Fatal(err)
	}
	predictHeld(t, m, set, held, scoring.Options{Rule: scoring.Argmax, Top: 1}, func(i int, best []scoring.Scored) {
		acc.AddNames([]string{set.Labels[set.LabelsOf(held[i])[0]]}, []string{m.Tree.Name[best[0].Node]}, nil)
	})
	result := acc.Result()
	return result.MicroF1
}

// trainedWithout is the model of a training without some lines of its data.
func trainedWithout(t *testing.T, o *train.Options, held []uint32) *model.Model {
	t.Helper()
	data, err := os.ReadFile(o.Data[0])
	if err != nil {
		t.Fatal(err)
	}
	rest, dir := "", t.TempDir()
	for i, line := range strings.SplitAfter(string(data), "\n") {
		if !slices.Contains(held, uint32(i)) {
			rest += line
		}
	}
	on := *o
	on.Data, on.Out = []string{filepath.Join(dir, "rest.svm")}, filepath.Join(dir, "model")
	if err := os.WriteFile(on.Data[0], []byte(rest), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := train.Run(t.Context(), &on, progress.Discard{}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(on.Out)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// predictHeld predicts rows of a set by a model whose features stand in an order of its own.
func predictHeld(t *testing.T, m *model.Model, set *dataset.Set, held []uint32, o scoring.Options,
	each func(i int, best []scoring.Scored)) {
	t.Helper()
	project := dataset.NewProjection(m.Feature)
	predictor, err := scoring.New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	next, v := 0, dataset.Vector{}
	fill := func(b *scoring.Batch) error {
		for ; !b.Full(); next++ {
			if next == len(held) {
				return io.EOF
			}
			columns, values := set.Matrix.Row(int(held[next]))
			row := dataset.Row{Value: values}
			for _, c := range columns {
				row.Index = append(row.Index, set.Feature[c])
			}
			project.Row(&row, &v)
			b.Add(v.Index, v.Value)
		}
		return nil
	}
	err = predictor.Stream(t.Context(), 1, fill, func(b *scoring.Batch, r *scoring.Result) error {
		for i := range b.Rows() {
			if each(int(b.First)+i, r.Set(i)); o.Rule == scoring.TopK && len(r.Set(i)) < o.Top {
				t.Errorf("%d classes", len(r.Set(i)))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStopsWithinATraining: a training that is under way when a search is interrupted goes on
// from there, not from its beginning.
func TestStopsWithinATraining(t *testing.T) {
	o := uneven(t, "100")
	o.Exhaustive, o.Grid.Methods = true, []string{"rr-svm"}
	o.Folds = 2
	o.Train.Job.Set("gap", 1e-12)
	o.Train.Job.Set("max_sweeps", 1<<20)
	start := func() *search {
		s, err := open(t.Context(), o, progress.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	trial := func(ctx context.Context, s *search) {
		step := s.paths[0][0]
		if _, _, err := s.trainer.trial(ctx, s.folds.acquire(s.whole, 0), step.Base, step.Points,
			trialOptions{seconds: math.Inf(1)}); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("the interrupted training ended with %v", err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
	const reached = 5
	sweepOf := func(s *search) uint32 {
		r, err := s.trainer.engine.Jobs.ListJobs(t.Context(), &taxonv1.ListJobsRequest{})
		if err != nil || len(r.GetJobs()) == 0 {
			return 0
		}
		return r.GetJobs()[0].GetSweep()
	}
	// The training takes less than a tenth of a second, and may end before it is interrupted.
	left := []string(nil)
	for range 20 {
		o.Train.Out = t.TempDir()
		first := start()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil && sweepOf(first) < reached {
				runtime.Gosched()
			}
			cancel()
		}()
		trial(ctx, first)
		cancel()
		var err error
		if left, err = filepath.Glob(filepath.Join(o.Train.Out, "states", "*")); err != nil || len(left) > 1 {
			t.Fatalf("checkpoints %v (%v)", left, err)
		}
		if len(left) == 1 {
			break
		}
	}
	if len(left) == 0 {
		t.Fatal("no training left a checkpoint")
	}
	second := start()
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan uint32, 1)
	go func() {
		sweep := uint32(0)
		for sweep == 0 {
			sweep = sweepOf(second)
		}
		began <- sweep
		cancel()
	}()
	trial(ctx, second)
	if sweep := <-began; sweep < reached {
		t.Errorf("the second run begins at sweep %d, the first had done %d", sweep, reached)
	}
}

// TestValidate: everything that is wrong is told at once.
func TestValidate(t *testing.T) {
	o := Defaults()
	o.Train.Data, o.Train.Out = []string{"train.svm"}, "out"
	if err := o.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	o.Train.Data, o.Train.Out = []string{"-"}, ""
	o.Goal, o.FirstFolds, o.Grid = "mcro", 9, Grid{[]string{"td"}, map[string][]string{"positive-weight": {"1", "much"},
		"prior-shift": {"0", "1"}, "internal-weight": {"1"}}, false, false}
	err := o.Validate()
	if !option.Is(err) {
		t.Fatal(err)
	}
	for _, want := range []string{"‹data=-›", "‹out", "did you mean micro?", "raise ‹folds›", "‹positive-weight=much›: " +
		"must be a finite number, or balanced", "‹prior-shift› means nothing to ‹method=td›"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	o.Grid.Methods = nil
	if err := o.Validate(); err == nil {
		t.Error("no method")
	}
}

// warned keeps what a search warns of.
type warned struct {
	progress.Discard
	lines []string
}

func (w *warned) Warn(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// TestLastTime: the last training may take at least what the trial took, by the rows; a sweep under way and one for the
// certificate are kept for, but not where a training is one sweep, and the model's writing is.
func TestLastTime(t *testing.T) {
	o := uneven(t, "1")
	o.Grid.Methods = []string{"bsvm", "rr-svm"}
	o.NoTrain = true
	r := run(t, o, "")
	s, err := open(t.Context(), validated(t, o), progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	results, err := s.record.results([]Point{r.Options}, 0)
	if err != nil || len(results) != 1 {
		t.Fatalf("%v (%v)", results, err)
	}
	trained, _ := s.folds.split(0)
	grown := 600 / float64(len(trained))
	for sweeps, after := range map[int]float64{1: writing + grown, 10: writing + grown*(1+2*0.5)} {
		one := *results[0]
		one.Sweeps, one.CPUSeconds, one.Bytes = sweeps, 10, writeRate
		if err := s.record.keep(&one); err != nil {
			t.Fatal(err)
		}
		least, got := s.lastTime(t.Context(), r)
		if threads := float64(s.threads()); math.Abs(least-grown*10/threads) > 1e-9 || math.Abs(got-after) > 1e-9 &&
			threads == 2 {
			t.Errorf("%d sweeps: at least %g s, %g s after the end", sweeps, least, got)
		}
	}
	s.clock.limit, s.clock.now = time.Hour, func() time.Time { return s.clock.began.Add(time.Hour) }
	if err := s.train(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if made := madeOf(s.record); made.MaxTime != strconv.FormatFloat(math.Ceil(grown*10/float64(s.threads())),
		'g', -1, 64) {
		t.Errorf("with no time left the last training may take %s s", made.MaxTime)
	}
}

// TestAnotherGoal: a search for another goal in the same folder is told.
func TestAnotherGoal(t *testing.T) {
	o, w := uneven(t, "1", "10"), &warned{}
	o.NoTrain = true
	for _, goal := range []string{"micro_f1", "micro", "macro_f1"} {
		o.Goal = goal
		if len(w.lines) > 0 {
			t.Errorf("told of the same goal: %q", w.lines)
		}
		if _, err := Run(t.Context(), o, w); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(w.lines, func(l string) bool {
		return strings.Contains(l, "best micro_f1") && strings.Contains(l, "macro_f1 now")
	}) {
		t.Errorf("told %q", w.lines)
	}
}

// TestShortTime: where no training could end, the time is named, not what some method does not take.
func TestShortTime(t *testing.T) {
	o := climbing(t, "bsvm", "mlr")
	rows, err := os.ReadFile(o.Train.Data[0])
	if err == nil {
		err = os.WriteFile(o.Train.Data[0], append(rows, "c0,c1 1:1\n"...), 0o666) // mlr takes one label a row
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Time = 1
	if _, err := Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(),
		"was not enough for one training") {
		t.Errorf("%v", err)
	}
}
