package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
)

// keeper is one shard as a cluster's data store.
type keeper struct{ store.Store }

func (k keeper) Drop(ctx context.Context, job string) error {
	_, err := k.Store.Drop(ctx, store.DropSpec{Job: job, All: true})
	return err
}

func (k keeper) Refill(context.Context, string, int) (int, error) { return 0, nil }

// jobList is a coordinator with jobs on data sets.
type jobList struct {
	taxonv1.JobsClient
	mu   sync.Mutex
	jobs []*taxonv1.JobInfo
	data map[string]*taxonv1.Data
	// replicas is the number of copies that each job asks for.
	replicas uint32
}

func (j *jobList) ListJobs(context.Context, *taxonv1.ListJobsRequest,
	...grpc.CallOption) (*taxonv1.ListJobsResult, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &taxonv1.ListJobsResult{Jobs: append([]*taxonv1.JobInfo(nil), j.jobs...)}, nil
}

func (j *jobList) Describe(_ context.Context, r *taxonv1.JobRequest, _ ...grpc.CallOption) (*taxonv1.JobResult, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.data[r.GetJob()] == nil {
		return nil, status.Error(codes.NotFound, "no such job")
	}
	return &taxonv1.JobResult{Spec: &taxonv1.JobSpec{Data: j.data[r.GetJob()]}, Replicas: j.replicas}, nil
}

// submit adds a job, as a coordinator does.
func (j *jobList) submit(id string, d *taxonv1.Data, info *taxonv1.JobInfo) {
	j.mu.Lock()
	defer j.mu.Unlock()
	info.Job = id
	j.jobs = append(j.jobs, info)
	if j.data == nil {
		j.data = map[string]*taxonv1.Data{}
	}
	j.data[id] = d
}

// A data set goes when no job has referred to it for long enough, and not before; one
// that is gone can't be submitted.
func TestCollect(t *testing.T) {
	st := keeper{memory.New(memory.Options{})}
	data := func(rows int) *taxonv1.Data {
		dir := ingested(t, rows)
		path, err := Upload(t.Context(), st, 1, dir, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)}
	}
	running, resumable, over, orphan, late := data(10), data(20), data(30), data(40), data(50)
	jobs := &jobList{}
	jobs.submit("running", running, &taxonv1.JobInfo{})
	jobs.submit("resumable", resumable, &taxonv1.JobInfo{EndedUnixMs: 1, Resumable: true})
	jobs.submit("over", over, &taxonv1.JobInfo{EndedUnixMs: 1})
	jobs.jobs = append(jobs.jobs, &taxonv1.JobInfo{Job: "forgotten"})
	c := &Collector{Data: st, Jobs: jobs, Keep: time.Hour}
	if err := st.Put(t.Context(), []store.Value{{Key: store.Key{Job: "job-1", Step: 1, Attempt: 1, Name: "dual"},
		Data: []byte{1}}}); err != nil {
		t.Fatal(err)
	}
	there := func(d *taxonv1.Data) bool { return complete(t.Context(), st, d, false, d) == nil }
	now := time.Now()
	for _, after := range []time.Duration{0, 30 * time.Minute, 59 * time.Minute} {
		if err := c.collect(t.Context(), now.Add(after)); err != nil {
			t.Fatal(err)
		}
		if !there(over) || !there(orphan) {
			t.Fatalf("dropped after %v", after)
		}
	}
	if err := c.Submitting(t.Context(), late,
		func() error { jobs.submit("late", late, &taxonv1.JobInfo{}); return nil }); err != nil {
		t.Fatal(err)
	}
	var dropped []string
	c.Dropped = func(set string) { dropped = append(dropped, set) }
	if err := c.collect(t.Context(), now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(dropped) != 2 || there(over) || there(orphan) || !there(running) || !there(resumable) || !there(late) {
		t.Errorf("dropped %v", dropped)
	}
	if got, err := st.Get(t.Context(), []store.Key{{Job: "job-1", Step: 1, Attempt: 1, Name: "dual"}}); err != nil ||
		got[0] == nil {
		t.Errorf("a job's value went too: %v", err)
	}
	err := c.Submitting(t.Context(), orphan, func() error { t.Error("a job was taken whose data is gone"); return nil })
	if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "taxon submit") {
		t.Errorf("submit on data that is gone: %v", err)
	}
}

// However submissions and the collector meet, a job that was taken has its data.
func TestCollectRace(t *testing.T) {
	st := keeper{memory.New(memory.Options{})}
	dir := ingested(t, 10)
	jobs := &jobList{}
	c := &Collector{Data: st, Jobs: jobs, Keep: time.Nanosecond}
	var rest sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	rest.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if err := c.collect(ctx, time.Now()); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	taken, refused := 0, 0
	for taken < 20 {
		path, err := Upload(t.Context(), st, 1, dir, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)}
		err = c.Submitting(t.Context(), d, func() error { jobs.submit("job", d, &taxonv1.JobInfo{}); return nil })
		if status.Code(err) == codes.Aborted {
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // the collector's turn
		if err := complete(t.Context(), st, d, false, d); err != nil {
			t.Fatalf("after %d jobs: %v", taken, err)
		}
		taken++
		jobs.mu.Lock()
		jobs.jobs = nil
		jobs.mu.Unlock()
	}
	stop()
	rest.Wait()
	t.Logf("%d refused", refused)
}

// A set that the store has lost counts as away: who has it cached goes on, others wait.
func TestLostDataIsAway(t *testing.T) {
	st := memory.New(memory.Options{})
	dir := ingested(t, 10)
	path, err := Upload(t.Context(), st, 1, dir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)}
	cached := &Cache{Dir: t.TempDir(), Bytes: 1 << 30, Store: st}
	fresh := &Cache{Dir: t.TempDir(), Bytes: 1 << 30, Store: nothing{}}
	set, err := cached.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	set.Close()
	cached.Store = nothing{}
	if set, err = cached.Open(t.Context(), d); err != nil {
		t.Fatalf("the cached copy: %v", err)
	}
	set.Close()
	_, err = fresh.Open(t.Context(), d)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, ErrNotThere) || Refused(err) ||
		!strings.Contains(err.Error(), "submit` the same data again") {
		t.Errorf("without a copy: %v", err)
	}
	fresh.Store = st // it was submitted again
	if set, err = fresh.Open(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	set.Close()
}

// What a job says of its data is compared with them before it is planned.
func TestMadeUpDescriptions(t *testing.T) {
	st := keeper{memory.New(memory.Options{})}
	dir := ingested(t, 10)
	path, err := Upload(t.Context(), st, 1, dir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{Data: st, Jobs: &jobList{}, Keep: time.Hour}
	labels := make([]string, 2_000_000)
	for name, d := range map[string]*taxonv1.Data{
		"":                {Instances: 10},
		"labels":          {Labels: labels, LabelInstances: make([]uint32, len(labels))},
		"a long label":    {Labels: []string{strings.Repeat("x", 1<<20)}},
		"label counts":    {LabelInstances: make([]uint32, 1000)},
		"instances":       {Instances: 1 << 31},
		"all instances":   {Instances: 1<<64 - 1},
		"features":        {Features: 1 << 31},
		"nonzeros":        {Nonzeros: 1 << 50},
		"rows":            {Rows: make([]byte, 1<<20)},
		"feature counts":  {FeatureCountsLog: make([]uint32, 1<<20)},
		"of another path": {Path: uploaded + strings.Repeat("0", 64)},
	} {
		d.Fingerprint, d.Path = fingerprint(t, dir), cmp.Or(d.Path, path)
		taken := false
		err := c.Submitting(t.Context(), d, func() error { taken = true; return nil })
		if want := name == ""; taken != want || err != nil == want {
			t.Errorf("%q: taken %t, %v", name, taken, err)
		}
	}
	_ = c.Submitting(t.Context(), &taxonv1.Data{Path: "/data/set", Fingerprint: fingerprint(t, dir)}, func() error {
		t.Error("a job was taken of whose data nothing is in the store")
		return nil
	})
}

// Values of jobs that nobody knows are listed, and dropped only if none of those named is known.
func TestStrays(t *testing.T) {
	st := keeper{memory.New(memory.Options{})}
	jobs := &jobList{}
	jobs.submit("running", nil, &taxonv1.JobInfo{})
	jobs.submit("done", nil, &taxonv1.JobInfo{EndedUnixMs: 1, Exportable: true, Kept: &taxonv1.Kept{Jobs: 3}})
	jobs.submit("gone", nil, &taxonv1.JobInfo{EndedUnixMs: 1, Kept: &taxonv1.Kept{Dropped: true}})
	all := []string{"running", "done", "gone", "unknown", dataPrefix + "1"}
	for _, job := range all {
		if err := st.Put(t.Context(), []store.Value{{Key: store.Key{Job: job, Step: 1, Attempt: 1, Name: "v"},
			Data: make([]byte, 10)}}); err != nil {
			t.Fatal(err)
		}
	}
	c := &Collector{Data: st, Jobs: jobs, Keep: time.Hour}
	left := func() (out []string) {
		_ = st.List(t.Context(), "", func(i store.Info) error { out = append(out, i.Key.Job); return nil })
		return out
	}
	strays := func(drop ...string) (out string, err error) {
		list, err := c.Strays(t.Context(), drop)
		for _, s := range list {
			out += fmt.Sprintf("%s %d %d %t;", s.Job, s.Values, s.Bytes, s.Dropped)
		}
		return out, err
	}
	if got, err := strays(); err != nil || got != "gone 1 10 false;unknown 1 10 false;" {
		t.Errorf("%s, %v", got, err)
	}
	for _, job := range []string{"running", "done", dataPrefix + "1", "nobody", ""} {
		if _, err := strays("unknown", job); status.Code(err) != codes.FailedPrecondition || len(left()) != len(all) {
			t.Errorf("drop of %q: %v, left %v", job, err, left())
		}
	}
	if got, err := strays("unknown"); err != nil || got != "gone 1 10 false;unknown 1 10 true;" || slices.Contains(left(),
		"unknown") || len(left()) != len(all)-1 {
		t.Errorf("%s, %v, left %v", got, err, left())
	}
}
