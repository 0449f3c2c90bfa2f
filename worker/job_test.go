package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taxon/coordinator"
	"taxon/internal/dataset"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
	"taxon/test/jobs"
)

// result is a small job as the coordinator hands it out.
func result(t *testing.T, j *jobs.Job, schedule string) *taxonv1.JobResult {
	t.Helper()
	o := jobs.Defaults()
	o.Schedule = schedule
	spec := j.Spec(o)
	tree, _, err := jobspec.Tree(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &taxonv1.JobResult{Spec: spec, Plan: coordinator.NewPlan(tree, spec)}
}

func of(set *dataset.Set) opener {
	return func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return set, nil }
}

// TestJobNumbers: internals are numbered in preorder without gaps, and know their
// parents, children, terminals and sets as the tree has them.
func TestJobNumbers(t *testing.T) {
	small := jobs.Small(3, 200, 60)
	j, err := newJob(context.Background(), "j", result(t, small, "parity"), of(small.Set))
	if err != nil {
		t.Fatal(err)
	}
	sets, _ := jobspec.NodeSets(j.tree, &taxonv1.Options{Schedule: "parity"})
	internals := j.tree.Internals()
	if len(internals) != len(j.forest.Parent) || len(internals) < 10 {
		t.Fatalf("%d internals, %d numbered", len(internals), len(j.forest.Parent))
	}
	terminals, children := make([]int32, len(internals)), make([]int32, len(internals))
	for n := range j.tree.Len() {
		if p := j.tree.Parent[n]; p >= 0 && j.tree.Leaf[n] {
			terminals[j.internal[p]]++
		} else if p >= 0 {
			children[j.internal[p]]++
		}
		if j.tree.Leaf[n] != (j.internal[n] < 0) {
			t.Errorf("node %d: leaf %v, internal number %d", n, j.tree.Leaf[n], j.internal[n])
		}
	}
	for p, n := range internals {
		if j.internal[n] != int32(p) {
			t.Errorf("internal %d is numbered %d", p, j.internal[n])
		}
		want := int32(-1)
		if q := j.tree.Parent[n]; q >= 0 {
			want = j.internal[q]
		}
		if j.forest.Parent[p] != want || j.forest.Parent[p] >= int32(p) {
			t.Errorf("internal %d: parent %d, want %d", p, j.forest.Parent[p], want)
		}
		if j.forest.Set[p] != int32(sets[n]) {
			t.Errorf("internal %d: set %d, want %d", p, j.forest.Set[p], sets[n])
		}
	}
	if !slices.Equal(terminals, j.forest.Terminals) || !slices.Equal(children, j.forest.Children) {
		t.Errorf("terminals %v, want %v; children %v, want %v", j.forest.Terminals, terminals, j.forest.Children, children)
	}
}

// TestJobGroups: each group has the parents of its blocks' terminals and all their
// ancestors, and nothing else.
func TestJobGroups(t *testing.T) {
	small := jobs.Small(4, 200, 90)
	r := result(t, small, "twoblock")
	blocks := uint32(len(r.Plan.BlockBegin) - 1)
	r.Plan.GroupBegin = []uint32{0, 1, blocks} // uneven, more than the plan would have
	j, err := newJob(context.Background(), "j", r, of(small.Set))
	if err != nil {
		t.Fatal(err)
	}
	if len(j.groups) != 2 || j.groupOf[0] != 0 || j.groupOf[blocks-1] != 1 {
		t.Fatalf("%d groups, blocks' groups %v", len(j.groups), j.groupOf)
	}
	for g, nodes := range j.groups {
		want := map[int32]bool{}
		for b := range blocks {
			if j.groupOf[b] == g {
				for _, n := range j.terminals(b) {
					for p := j.parent(n); p >= 0; p = j.forest.Parent[p] {
						want[p] = true
					}
				}
			}
		}
		if len(want) != len(nodes) || !slices.IsSorted(nodes) {
			t.Errorf("group %d: %v, want %d nodes, ascending", g, nodes, len(want))
		}
		for _, p := range nodes {
			if !want[p] {
				t.Errorf("group %d holds %d for nothing", g, p)
			}
		}
	}
}

// TestJobErrors come again anywhere, but for data that may be there later, and say what to do.
func TestJobErrors(t *testing.T) {
	small := jobs.Small(3, 50, 10)
	for name, c := range map[string]struct {
		change func(*taxonv1.JobResult)
		open   opener
		want   string
	}{
		"other data": {func(r *taxonv1.JobResult) { r.Spec.Data.Fingerprint = "00" }, of(small.Set), "the data has changed since the job was submitted"},
		"loss":       {func(r *taxonv1.JobResult) { r.Spec.Options.Loss = "logit" }, of(small.Set), `unknown loss "logit"`},
		"prune":      {func(r *taxonv1.JobResult) { r.Spec.Options.Prune = "all" }, of(small.Set), `"all"`},
		"no data": {func(*taxonv1.JobResult) {}, func(context.Context, *taxonv1.Data) (*dataset.Set, error) {
			return nil, errors.New("gone")
		}, "gone"},
	} {
		r := result(t, small, "twoblock")
		c.change(r)
		trainer := &Trainer{Open: c.open}
		_, _, err := trainer.Run(context.Background(), r, &taxonv1.Lease{Job: "j", Kind: taxonv1.TaskKind_TASK_KIND_MAP})
		if err == nil || !strings.Contains(err.Error(), c.want) || IsDeterministic(err) != (name != "no data") {
			t.Errorf("%s: %v (deterministic: %v), want %q", name, err, IsDeterministic(err), c.want)
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
	blocks := uint32(len(r.Plan.BlockBegin) - 1)
	ranges := uint32(len(r.Plan.RangeBegin) - 1)
	broken := store.Key{Job: "j", Step: 1, Task: 0, Attempt: 1, Name: "dual"}
	if err := shard.Put(context.Background(), []store.Value{{Key: broken, Data: []byte{9, 9}}}); err != nil {
		t.Fatal(err)
	}
	first := &taxonv1.Ref{Step: 1, Task: 0, Attempt: 1}
	for name, c := range map[string]struct {
		lease         *taxonv1.Lease
		deterministic bool
		want          string
	}{
		"no kind":       {&taxonv1.Lease{}, true, "does not know task kind 0"},
		"new kind":      {&taxonv1.Lease{Kind: 77}, true, "does not know task kind 77"},
		"block":         {&taxonv1.Lease{Kind: taxonv1.TaskKind_TASK_KIND_MAP, Map: &taxonv1.MapTask{Block: blocks}}, true, "block"},
		"emitted block": {&taxonv1.Lease{Kind: taxonv1.TaskKind_TASK_KIND_EMIT_MAP, Map: &taxonv1.MapTask{Block: blocks}}, true, "block"},
		"range":         {&taxonv1.Lease{Kind: taxonv1.TaskKind_TASK_KIND_REDUCE, Reduce: &taxonv1.ReduceTask{Range: ranges, Rule: "full"}}, true, "feature range"},
		"rule":          {&taxonv1.Lease{Kind: taxonv1.TaskKind_TASK_KIND_REDUCE, Reduce: &taxonv1.ReduceTask{Rule: "median"}}, true, "unknown reduce rule"},
		"another format": {&taxonv1.Lease{Kind: taxonv1.TaskKind_TASK_KIND_MAP, Map: &taxonv1.MapTask{Dual: first,
			X: zeros(ranges), XPrev: zeros(ranges)}}, true, "written by a different version"},
		"lost": {&taxonv1.Lease{Kind: taxonv1.TaskKind_TASK_KIND_MAP, Map: &taxonv1.MapTask{Dual: &taxonv1.Ref{Step: 2, Task: 0, Attempt: 1},
			X: zeros(ranges), XPrev: zeros(ranges)}}, false, "no such value"},
	} {
		trainer := &Trainer{Store: shard, Open: of(small.Set)}
		c.lease.Job, c.lease.Step, c.lease.Attempt = "j", 3, 1
		_, _, err := trainer.Run(context.Background(), r, c.lease)
		if err == nil || !strings.Contains(err.Error(), c.want) || IsDeterministic(err) != c.deterministic {
			t.Errorf("%s: %v (deterministic: %v), want %q", name, err, IsDeterministic(err), c.want)
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
	lease := &taxonv1.Lease{Job: "j", Step: 1, Attempt: 1, Kind: taxonv1.TaskKind_TASK_KIND_MAP}
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
		if _, _, err := loading.Run(ctx, r, lease); err == nil || !IsDeterministic(err) || !strings.Contains(err.Error(), "internal error: open") {
			t.Errorf("loading: %v", err)
		}
	})
	<-entered
	group.Go(func() {
		if _, _, err := loading.Run(ctx, r, lease); err == nil || ctx.Err() != nil {
			t.Errorf("waiting for the one that panics: %v", err)
		}
	})
	close(release) // whether the second waits by now or comes later, it gets an error
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
	if _, _, err := running.Run(ctx, r, lease); err == nil || !IsDeterministic(err) || !strings.Contains(err.Error(), "please report") {
		t.Errorf("running: %v", err)
	}
}

// TestForget lets the same job be loaded anew.
func TestForget(t *testing.T) {
	small := jobs.Small(3, 50, 10)
	opened := 0
	trainer := &Trainer{Store: memory.New(memory.Options{}), Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) {
		opened++
		return small.Set, nil
	}}
	r := result(t, small, "twoblock")
	lease := &taxonv1.Lease{Job: "j", Step: 1, Attempt: 1, Kind: taxonv1.TaskKind_TASK_KIND_MAP,
		Map: &taxonv1.MapTask{Epochs: 1, X: zeros(uint32(len(r.Plan.RangeBegin) - 1))}}
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
