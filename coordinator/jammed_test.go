package coordinator_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"

	"google.golang.org/grpc"
)

// jammedJournal makes nothing durable while its gate is locked, as one on a file system of
// other hosts may for a while.
type jammedJournal struct {
	memoryJournal
	gate sync.RWMutex
}

func (j *jammedJournal) Sync(n uint64) error {
	j.gate.RLock()
	defer j.gate.RUnlock()
	return j.memoryJournal.Sync(n)
}

// Whatever the journal does, who calls is heard, and who does not is missed. Who waits for
// an answer that the journal holds up is not taken for silent.
func TestJammedJournal(t *testing.T) {
	t.Parallel()
	j := &jammedJournal{}
	c := newCluster(t, coordinator.Config{Store: newToyStore(), Journal: j, Limits: machine.Limits{Lease: 1000 * ms}})
	workers := func() map[string]*taxonv1.WorkerInfo {
		r, err := c.jobs.Workers(t.Context(), &taxonv1.WorkersRequest{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]*taxonv1.WorkerInfo{}
		for _, w := range r.Workers {
			out[w.Name] = w
		}
		return out
	}
	state := func(name string) taxonv1.MemberState { return workers()[name].GetState() }
	const up, lost = taxonv1.MemberState_MEMBER_STATE_UP, taxonv1.MemberState_MEMBER_STATE_LOST
	register := func(name string) string {
		r, err := c.tasks.Register(t.Context(), &taxonv1.RegisterRequest{Name: name, Slots: 1})
		if err != nil {
			t.Error(err)
		}
		return r.GetWorker()
	}
	renew := func(worker string) {
		if _, err := c.tasks.Renew(t.Context(), &taxonv1.RenewRequest{Worker: worker}); err != nil {
			t.Errorf("renew of %s: %v", worker, err)
		}
	}
	lively, silent := register("lively"), register("silent")
	c.submit("j", machinetest.Spec("twoblock", 0))

	ctx, end := context.WithCancel(t.Context())
	var rest sync.WaitGroup
	defer rest.Wait()
	defer end()
	rest.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			renew(lively)
		}
	})
	j.gate.Lock()
	answered := make(chan string, 2)
	go func() { answered <- register("new") }()
	go func() {
		r, err := c.tasks.Lease(t.Context(), &taxonv1.LeaseRequest{Worker: lively})
		if err != nil || r.GetLease() == nil {
			t.Errorf("lease: %v, %v", r, err)
		}
		answered <- ""
	}()
	eventually(t, "a worker registers and a task is handed out", func() bool {
		renew(silent) // it falls silent after them
		return state("new") == up && workers()["lively"].Running == 1
	})
	eventually(t, "the silent worker is missed", func() bool { return state("silent") == lost })
	if w := workers(); w["new"].State != up || w["lively"].State != up || w["lively"].Running != 1 || len(answered) > 0 {
		t.Errorf("while the journal is stuck, %d calls are answered, and there are %v", len(answered), w)
	}
	j.gate.Unlock()
	for range 2 {
		<-answered
	}
	eventually(t, "the worker that got its id and does nothing is missed", func() bool { return state("new") == lost })
	eventually(t, "the lease that nobody renews is lost", func() bool { return workers()["lively"].Running == 0 })
	if state("lively") != up {
		t.Error("the worker that renews was lost")
	}
	st, err := c.jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: "j"})
	if err != nil || st.WorkersLost != 2 {
		t.Errorf("%d workers lost (%v), want the silent one and the new one", st.GetWorkersLost(), err)
	}
}

// services catches what a server registers, so that it is called as gRPC would.
type services map[string]any

func (s services) RegisterService(d *grpc.ServiceDesc, impl any) { s[d.ServiceName] = impl }

// Nobody hears an answer that comes too late: what it would have told is taken back.
func TestAnswersThatComeTooLate(t *testing.T) {
	t.Parallel()
	store := newToyStore()
	c := newCluster(t, coordinator.Config{Store: store, Journal: &memoryJournal{}})
	caught := services{}
	c.server.Register(caught)
	tasks := caught["taxon.v1.Tasks"].(taxonv1.TasksServer)
	r, err := tasks.Register(t.Context(), &taxonv1.RegisterRequest{Name: "toy", Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.submit("j", machinetest.Spec("twoblock", 0))
	first, err := tasks.Lease(t.Context(), &taxonv1.LeaseRequest{Worker: r.Worker})
	if err != nil {
		t.Fatal(err)
	}
	l := first.Lease
	sums, err := store.run(l)
	if err != nil {
		t.Fatal(err)
	}
	late, end := context.WithCancel(t.Context())
	end()
	report := &taxonv1.ReportRequest{Worker: r.Worker, Next: true, Sums: sums,
		Lease: &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Epoch: l.Epoch}}
	if a, err := tasks.Report(late, report); err != nil || !a.Accepted || a.Lease == nil {
		t.Fatalf("report: %v, %v", a, err)
	}
	if _, err := tasks.Register(late, &taxonv1.RegisterRequest{Name: "impatient", Slots: 1}); err != nil {
		t.Fatal(err)
	}
	list, err := c.jobs.Workers(t.Context(), &taxonv1.WorkersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range list.Workers {
		if w.Running > 0 || w.Name == "impatient" && w.State != taxonv1.MemberState_MEMBER_STATE_LEFT {
			t.Errorf("%v", w)
		}
	}
}
