package engine

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/memory"
	"taxon/test/jobs"
	"taxon/worker"
)

// measuring is an executor that notes, behind each task, what the store holds and the
// process's live heap.
type measuring struct {
	worker.Executor
	mu         sync.Mutex
	store      *memory.Store
	most, live uint64
}

func (m *measuring) Run(ctx context.Context, r *taxonv1.JobResult,
	l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	sums, stats, err := m.Executor.Run(ctx, r, l)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.store != nil {
		m.most = max(m.most, m.store.Bytes())
		m.live = max(m.live, liveHeap())
	}
	return sums, stats, err
}

func liveHeap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestSmoothMemory: the plan of a job with logistic loss, whose vectors are dense, bounds
// what the store and the process hold, and not by far.
func TestSmoothMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds")
	}
	for name, change := range map[string]func(*jobs.Job){
		"tree": func(*jobs.Job) {},
		"flat": func(j *jobs.Job) { j.Structure = nil },
	} {
		t.Run(name, func(t *testing.T) {
			j := jobs.Small(7, 1500, 600)
			change(j)
			o := jobs.Defaults()
			o.Method = "rr-lr"
			o.Set("loss", "logistic")
			o.Set("max_sweeps", 6)
			o.Set("gap", 1e-9)
			spec := j.Spec(o)
			prepared, err := registry.Prepare(spec)
			if err != nil {
				t.Fatal(err)
			}
			e := prepared.Estimate
			before := liveHeap()
			var m measuring
			en := start(t, j, Config{Slots: 1, Shards: 1, Wrap: func(x worker.Executor) worker.Executor {
				m.Executor = x
				return &m
			}})
			m.mu.Lock()
			m.store = en.shards[0].(*memory.Store)
			m.mu.Unlock()
			submit(t, en, spec)
			if st := follow(t, en, "j", nil); st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
				t.Fatalf("the job ended %v: %s", st.GetState(), st.GetError())
			}
			if m.most > e.StoreLocal || m.most < e.StoreLocal*2/5 {
				// a flat training may end in its first sweep, which has no values before it
				t.Errorf("the store held %d bytes, planned were %d", m.most, e.StoreLocal)
			}
			if live, planned := m.live-min(before, m.live), footprint.Tasks(e, 1)+e.StoreLocal+e.Coordinator; live > planned ||
				live < planned/3 {
				t.Errorf("%d bytes were live, planned were %d", live, planned)
			}
			t.Logf("store %.1f of %.1f MB, live %.1f of %.1f MB", float64(m.most)/1e6, float64(e.StoreLocal)/1e6,
				float64(m.live-before)/1e6, float64(footprint.Tasks(e, 1)+e.StoreLocal+e.Coordinator)/1e6)
		})
	}
}
