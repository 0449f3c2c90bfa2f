package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taxon/coordinator/machine"
	"taxon/coordinator/method"
	"taxon/internal/data/dataset"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
	"taxon/test/jobs"
	"taxon/worker/program"
)

// result is a small job as the coordinator hands it out.
func result(t *testing.T, j *jobs.Job, schedule string) *taxonv1.JobResult {
	t.Helper()
	o := jobs.Defaults()
	o.Set("schedule", schedule)
	spec := j.Spec(o)
	plan, err := machine.NewPlan(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &taxonv1.JobResult{Spec: spec, Plan: plan}
}

type opener = func(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error)

func of(set *dataset.Set) opener {
	return func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return set, nil }
}

// lease is one of a plan's tasks that reads nothing yet.
func lease(r *taxonv1.JobResult, op string, list, item uint32, params any) *taxonv1.Lease {
	ranges, blocks := r.Plan.Items[rr.Ranges].Count, r.Plan.Items[rr.Blocks].Count
	return &taxonv1.Lease{Job: "j", Step: 3, Attempt: 1, Op: op, Items: list, Item: item, Params: method.Encode(params),
		Inputs: []*taxonv1.Input{
			{Value: rr.X, All: true, Refs: zeros(ranges)}, {Value: rr.X, Back: 1, All: true, Refs: zeros(ranges)},
			{Value: rr.V, All: true, Refs: zeros(blocks)},
		}}
}

// TestJobErrors come again anywhere, but for data that may be there later, and say what to do.
func TestJobErrors(t *testing.T) {
	small := jobs.Small(3, 50, 10)
	for name, c := range map[string]struct {
		change func(*taxonv1.JobResult)
		open   opener
		want   string
	}{
		"other data": {func(r *taxonv1.JobResult) { r.Spec.Data.Fingerprint = "00" }, of(small.Set), "the data has changed " +
			"since the job was submitted"},
		"loss": {func(r *taxonv1.JobResult) { r.Spec.Options.Set("loss", "logit") }, of(small.Set), `unknown loss "logit"`},
		"method": {func(r *taxonv1.JobResult) { r.Spec.Options.Method = "td2" }, of(small.Set),
			`does not know method "td2": it is older`},
		"sums": {func(r *taxonv1.JobResult) { r.Plan.Sums = r.Plan.Sums[1:] }, of(small.Set), "tasks are to report 7 " +
			"figures, this worker's have 8"},
		"detail": {func(r *taxonv1.JobResult) { r.Plan.Detail = []byte("{") }, of(small.Set),
			"plan: written by another version"},
		"prune": {func(r *taxonv1.JobResult) { r.Spec.Options.Set("prune", "all") }, of(small.Set), `"all"`},
		"no data": {func(*taxonv1.JobResult) {}, func(context.Context, *taxonv1.Data) (*dataset.Set, error) {
			return nil, errors.New("gone")
		}, "gone"},
	} {
		r := result(t, small, "twoblock")
		c.change(r)
		trainer := &Trainer{Open: c.open}
		_, _, err := trainer.Run(context.Background(), r, &taxonv1.Lease{Job: "j", Op: rr.OpMap})
		unfit, later := name == "method", name == "no data"
		if err == nil || !strings.Contains(err.Error(), c.want) || program.IsDeterministic(err) != (!unfit && !later) ||
			program.IsUnfit(err) != unfit {
			t.Errorf("%s: %v (deterministic: %v, unfit: %v), want %q", name, err, program.IsDeterministic(err),
				program.IsUnfit(err), c.want)
		}
		if len(trainer.jobs) != 0 {
			t.Errorf("%s: the job that could not be loaded is kept", name)
		}
	}
}

// TestTaskErrors: what no plan or store would give is an error of the right kind.
func TestTaskErrors(t *testing.T) {
	small := jobs.Small(3, 50, 10)
	r := result(t, small, "twoblock")
	shard := memory.New(memory.Options{})
	defer shard.Close()
	blocks, ranges := r.Plan.Items[rr.Blocks].Count, r.Plan.Items[rr.Ranges].Count
	broken := store.Key{Job: "j", Step: 1, Task: 0, Attempt: 1, Name: "dual"}
	if err := shard.Put(context.Background(), []store.Value{{Key: broken, Data: []byte{9, 9}}}); err != nil {
		t.Fatal(err)
	}
	mapping := func(dual taxonv1.Place) *taxonv1.Lease {
		l := lease(r, rr.OpMap, rr.Blocks, 0, rr.Map{})
		l.Inputs = append(l.Inputs, &taxonv1.Input{Value: rr.Dual, Refs: taxonv1.NewRefs([]taxonv1.Place{dual})})
		return l
	}
	without := func(family string, l *taxonv1.Lease) *taxonv1.Lease {
		l.Inputs = slices.DeleteFunc(l.Inputs, func(in *taxonv1.Input) bool { return in.Value == family })
		return l
	}
	garbled := lease(r, rr.OpMap, rr.Blocks, 0, rr.Map{})
	garbled.Params = []byte(`{"Epochs": -1}`)
	for name, c := range map[string]struct {
		lease         *taxonv1.Lease
		deterministic bool
		want          string
	}{
		"no operation":  {lease(r, "", 0, 0, nil), true, `does not know operation ""`},
		"new operation": {lease(r, "sample", 0, 0, nil), true, `does not know operation "sample"`},
		"block":         {lease(r, rr.OpMap, rr.Blocks, blocks, rr.Map{}), true, "map of item"},
		"another list":  {lease(r, rr.OpMap, rr.Ranges, 0, rr.Map{}), true, "of list 1"},
		"emitted block": {lease(r, rr.OpEmitMap, rr.Blocks, blocks, rr.Emit{}), true, "emit_map of item"},
		"range":         {lease(r, rr.OpReduce, rr.Ranges, ranges, rr.Reduce{Rule: "full"}), true, "reduce of item"},
		"emitted range": {lease(r, rr.OpEmitReduce, rr.Ranges, ranges, rr.Emit{}), true, "emit_reduce of item"},
		"rule":          {lease(r, rr.OpReduce, rr.Ranges, 0, rr.Reduce{Rule: "median"}), true, "unknown reduce rule"},
		"parameters":    {garbled, true, "parameters of map: written by another version"},
		"no internals":  {without(rr.X, mapping(taxonv1.Place{})), true, "0 values of the internals are named"},
		"no contributions": {without(rr.V, lease(r, rr.OpReduce, rr.Ranges, 0, rr.Reduce{Rule: "full"})), true,
			"contributions of 0 blocks are named"},
		"another format": {mapping(taxonv1.Place{Step: 1, Task: 0, Attempt: 1}), true, "the worker that wrote it"},
		"lost":           {mapping(taxonv1.Place{Step: 2, Task: 0, Attempt: 1}), false, "no such value"},
	} {
		trainer := &Trainer{Store: shard, Open: of(small.Set)}
		_, _, err := trainer.Run(context.Background(), r, c.lease)
		if err == nil || !strings.Contains(err.Error(), c.want) || program.IsDeterministic(err) != c.deterministic {
			t.Errorf("%s: %v (deterministic: %v), want %q", name, err, program.IsDeterministic(err), c.want)
		}
	}
}

// zeros refers to so many items without a value.
func zeros(n uint32) *taxonv1.Refs { return taxonv1.NewRefs(make([]taxonv1.Place, n)) }

// TestPanics: a bug in one job is that job's deterministic error, whether it strikes in
// loading or in a task, and leaves nobody waiting.
func TestPanics(t *testing.T) {
	small := jobs.Small(3, 50, 10)
	r := result(t, small, "twoblock")
	lease := lease(r, rr.OpMap, rr.Blocks, 0, rr.Map{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	entered, release := make(chan struct{}), make(chan struct{})
	loading := &Trainer{Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) {
		close(entered)
		<-release
		panic("open")
	}}
	var group sync.WaitGroup
	group.Go(func() {
		if _, _, err := loading.Run(ctx, r, lease); err == nil || !program.IsDeterministic(err) ||
			!strings.Contains(err.Error(), "internal error: open") {
			t.Errorf("loading: %v", err)
		}
	})
	<-entered
	group.Go(func() {
		if _, _, err := loading.Run(ctx, r, lease); err == nil || ctx.Err() != nil {
			t.Errorf("waiting for the one that panics: %v", err)
		}
	})
	// whether the second waits by now or comes later, it gets an error
	close(release)
	group.Wait()
	if len(loading.jobs) != 0 {
		t.Error("the job whose loading panicked is kept")
	}
	damaged := *small.Set
	damaged.PosRows = []uint32{1 << 30}
	damaged.PosBegin = make([]uint64, len(damaged.PosBegin))
	for l := range damaged.PosBegin[1:] {
		damaged.PosBegin[l+1] = 1
	}
	running := &Trainer{Open: of(&damaged), Store: memory.New(memory.Options{})}
	if _, _, err := running.Run(ctx, r, lease); err == nil || !program.IsDeterministic(err) ||
		!strings.Contains(err.Error(), "please report") {
		t.Errorf("running: %v", err)
	}
}

// TestForget lets the same job be loaded anew.
func TestForget(t *testing.T) {
	small := jobs.Small(3, 50, 10)
	opened := 0
	trainer := &Trainer{Store: memory.New(memory.Options{}), Open: func(context.Context, *taxonv1.Data) (*dataset.Set,
		error) {
		opened++
		return small.Set, nil
	}}
	r := result(t, small, "twoblock")
	lease := lease(r, rr.OpMap, rr.Blocks, 0, rr.Map{Epochs: 1})
	for range 3 {
		if _, _, err := trainer.Run(context.Background(), r, lease); err != nil {
			t.Fatal(err)
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	trainer.Forget("j")
	if _, _, err := trainer.Run(context.Background(), r, lease); err != nil || opened != 2 {
		t.Errorf("after Forget: %v, opened %d times", err, opened)
	}
}
