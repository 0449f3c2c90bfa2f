package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"testing"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/data/dataset"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

func TestMain(m *testing.M) {
	// heaps are small here, so the collector would run all the time
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestMachineAddsNothing replays the tasks of an engine's training by calling mapper and reducer.
// It must get the same figures task by task and the same bits in every weight.
func TestMachineAddsNothing(t *testing.T) {
	for n, change := range []func(*taxonv1.Options){
		func(*taxonv1.Options) {},
		func(o *taxonv1.Options) { o.Set("stiffness", "full"); o.Set("loss", "squared-hinge"); o.Set("bias", 0) },
		func(o *taxonv1.Options) { o.Set("schedule", "parity") },
		func(o *taxonv1.Options) { o.Set("schedule", "colour") },
		func(o *taxonv1.Options) { o.Set("schedule", "jacobi") },
		func(o *taxonv1.Options) { o.Method = "bsvm" },
	} {
		o := jobs.Defaults()
		o.Set("gap", 1e-2)
		o.Set("max_sweeps", 14)
		change(o)
		t.Run(fmt.Sprintf("%s %s %s", o.Method, o.Value("schedule"), o.Value("stiffness")), func(t *testing.T) {
			j := jobs.Small(uint64(n), 150, 35)
			if o.Method == "bsvm" {
				j.Structure = nil
			}
			r, want := recorded(t, j, j.Spec(o))
			replay, err := New(r.Job(), j.Set)
			if err != nil {
				t.Fatal(err)
			}
			got, err := replay.Run(context.Background(), r.Steps(), 1+n%3)
			if err != nil {
				t.Fatal(err)
			}
			if got.Hash() != want {
				t.Error("the weights differ")
			}
		})
	}
}

// TestReplayChecks checks that figures that differ from the recorded ones give an error that names
// the task.
func TestReplayChecks(t *testing.T) {
	j := jobs.Small(1, 100, 20)
	r, _ := recorded(t, j, j.Spec(jobs.Defaults()))
	steps := r.Steps()
	steps[2][0].Sums.Values[rr.SumVisits]++
	replay, err := New(r.Job(), j.Set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Run(context.Background(), steps, 1); err == nil {
		t.Error("other sums went through")
	}
}

// recorded trains on an engine and returns the tasks and the weights' hash.
func recorded(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec) (*Recorder, string) {
	t.Helper()
	r, _, nodes := trained(t, j, spec, 2)
	return r, nodes.Hash()
}

// trained trains on an engine and returns the tasks, the last status and the weights.
func trained(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec, slots int) (*Recorder, *taxonv1.JobStatus, *jobs.Nodes) {
	t.Helper()
	r := &Recorder{}
	var n jobs.Nodes
	st := watched(t, j, spec, slots, r, &n)
	if st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		t.Fatal(st.GetError())
	}
	return r, st, &n
}

// failed trains on an engine and returns the reason for the job's failure.
func failed(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec) string {
	t.Helper()
	return watched(t, j, spec, 1, &Recorder{}, nil).GetError()
}

// watched runs a job to its end. nodes receives the weights if it succeeds.
func watched(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec, slots int, r *Recorder,
	n *jobs.Nodes) *taxonv1.JobStatus {
	t.Helper()
	e, err := engine.Start(engine.Config{Slots: slots, Shards: 2, ShardBytes: 1 << 30, Wrap: r.Wrap,
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return j.Set, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	if _, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Job: "j", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	stream, err := e.Jobs.Watch(ctx, &taxonv1.StatusRequest{Job: "j"})
	if err != nil {
		t.Fatal(err)
	}
	var st *taxonv1.JobStatus
	for {
		next, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		st = next
	}
	tree, _, err := registry.Tree(spec)
	if err != nil {
		t.Fatal(err)
	}
	if st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		return st
	}
	if err := e.StreamWeights(ctx, tree.Len(), st, n.Add); err != nil {
		t.Fatal(err, st.GetError())
	}
	return st
}
