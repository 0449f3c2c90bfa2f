package machine

import (
	"encoding/json"
	"slices"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

// batcher is a machine whose journal is kept, and the leases that it gave.
type batcher struct {
	t       *testing.T
	m       *Machine
	now     Tick
	records []Record
}

// do gives an event and returns what was handed out.
func (b *batcher) do(e Event) (leases []*taxonv1.Lease) {
	b.now += millisecond
	for _, a := range b.m.Step(b.now, e) {
		switch a := a.(type) {
		case Persist:
			b.records = append(b.records, a.Record)
		case Grant:
			leases = append(leases, a.Lease)
		case Refused:
			b.t.Fatalf("%T: %v", e, a.Err)
		}
	}
	return leases
}

func (b *batcher) done(l *taxonv1.Lease, cpu float64) Report {
	return Report{Worker: "w1", Lease: machinetest.LeaseID(l), CPUSeconds: cpu, Sums: machinetest.Figures{Primal: 2,
		Dual: 1, Restart: -1}.Sums()}
}

// started is a job of 100 equal blocks, and a worker of one slot that has done the first.
func started(t *testing.T, cpu float64) *batcher {
	b := &batcher{t: t, m: New(Limits{})}
	b.do(Submit{ID: "j", Spec: methodtest.WordNetLike(1600, 100)})
	b.do(Register{Name: "one", Slots: 1})
	first := b.do(RequestTask{Worker: "w1", Most: 8})
	if len(first) != 1 {
		t.Fatalf("%d tasks, before anything is known of how long they take", len(first))
	}
	b.do(b.done(first[0], cpu))
	return b
}

// Batches take batchSeconds, at most what is asked for, and half a slot's share.
func TestBatchSizes(t *testing.T) {
	for _, c := range []struct {
		cpu  float64
		most uint32
		want int
	}{
		{0.024, 8, 4}, {0.024, 3, 3}, {0.024, 1, 1}, {0.024, 0, 1}, {0.2, 8, 1}, {0.002, 64, 49}, {0, 8, 8},
	} {
		b := started(t, c.cpu)
		got := b.do(RequestTask{Worker: "w1", Most: c.most})
		if len(got) < c.want-1 || len(got) > c.want { // first tasks may cost a little more
			t.Errorf("tasks of %v s, at most %d: %d together, want %d", c.cpu, c.most, len(got), c.want)
		}
	}
	b := started(t, 0.001)
	b.do(Register{Name: "many", Slots: 48})
	if got := b.do(RequestTask{Worker: "w1", Most: 64}); len(got) != 2 {
		t.Errorf("%d of 99 tasks go to one of 49 slots", len(got))
	}
}

// A timeline has a span for what was taken together, and forgets what is long over, however many
// tasks a worker has run.
func TestTimelineIsBounded(t *testing.T) {
	b := started(t, 0.001)
	leases := b.do(RequestTask{Worker: "w1", Most: 4})
	all := b.m.Timeline(b.now, 0).Workers[0].Spans
	if len(all) != 2 || all[1].Tasks != 4 || all[1].EndedUnixMs != 0 || all[0].Result != resultDone {
		t.Fatalf("%v", all)
	}
	for range 3 * maxSpans { // given back, taken again
		for _, l := range leases {
			b.do(Report{Worker: "w1", Lease: machinetest.LeaseID(l), Returned: true})
		}
		leases = b.do(RequestTask{Worker: "w1", Most: 1})
	}
	all = b.m.Timeline(b.now, 0).Workers[0].Spans
	if last := all[len(all)-1]; len(all) != maxSpans || last.Result != "" || all[0].Result != "returned" ||
		len(b.m.timeline.live) != 1 {
		t.Errorf("%d spans, %d of them under way, from %v to %v", len(all), len(b.m.timeline.live), all[0], last)
	}
	if some := b.m.Timeline(b.now, 7).Workers[0].Spans; len(some) != 7 ||
		some[6].BegunUnixMs != all[maxSpans-1].BegunUnixMs {
		t.Errorf("the last 7: %v", some)
	}
}

// Towards a step's end batches become smaller, but not less than minSeconds, and not more
// than a slot's share; a step begins with what tasks took the last time.
func TestLastBatches(t *testing.T) {
	for _, c := range []struct {
		waiting, slots int
		seconds        float64
		want           uint32
	}{
		{400, 2, 0.001, 100}, {100, 2, 0.001, 25}, {30, 2, 0.001, 10}, {12, 2, 0.001, 6}, {3, 2, 0.001, 1}, {30, 2, 0.004, 7},
		{8, 2, 0.004, 2}, {30, 2, 0.1, 1}, {64, 64, 0.001, 1}, {30, 2, 0, 7},
	} {
		s := &step{tasks: make([]task, c.waiting), parts: []part{{Tasks: &method.Tasks{}}}, cost: make([]float64, c.waiting)}
		for n := range s.cost {
			s.cost[n] = c.seconds
		}
		if got := s.batch(0, c.slots); got != 1 {
			t.Errorf("%+v: %d before anything is known", c, got)
		}
		s.parts[0].timed = true
		if got := s.batch(0, c.slots); got != c.want {
			t.Errorf("%+v: %d by the last time", c, got)
		}
		s.parts[0].timed = false
		s.finished(0, c.seconds, c.seconds)
		if got := s.batch(0, c.slots); got != c.want {
			t.Errorf("%+v: %d by what has finished", c, got)
		}
	}
}

// A batch takes one slot, and its worker's death loses all of it; what was lost goes alone,
// so that a task that kills its workers is found.
func TestBatchIsLostAndShared(t *testing.T) {
	b := started(t, 0.01)
	held := b.do(RequestTask{Worker: "w1", Most: 4})
	if w := b.m.Workers()[0]; len(held) != 4 || w.Running != 1 || w.TasksDone != 1 {
		t.Fatalf("%d tasks together, worker %v", len(held), w)
	}
	other := methodtest.WordNetLike(1600, 100)
	other.Options.Set("seed", 5)
	b.do(Submit{ID: "k", Spec: other})
	b.do(Register{Name: "two", Slots: 1})
	if l := b.do(RequestTask{Worker: "w2", Most: 4}); len(l) != 1 || l[0].Job != "k" {
		t.Fatalf("the job with no slot gets %v", l)
	}
	if l := b.do(RequestTask{Worker: "w2", Most: 4}); len(l) != 4 || l[0].Job != "j" {
		// a slot each, equal use: the older one
		t.Fatalf("with a slot each: %v", l)
	}
	if w := b.m.Workers()[1]; w.Worker != "w2" || w.Running != 1 {
		t.Errorf("one slot with a batch that it computes and one ahead: %v", w)
	}
	used := b.m.find("j").used
	b.do(Leave{Worker: "w1"})
	if more := b.m.find("j").used - used; more <= 0 || more > (10*millisecond).Seconds() {
		t.Errorf("a batch that was held for some ms counts %v slot-seconds", more)
	}
	var tasks []uint32
	for range held {
		l := b.do(RequestTask{Worker: "w2", Most: 4})
		for len(l) > 0 && l[0].Job != "j" {
			l = b.do(RequestTask{Worker: "w2", Most: 4})
		}
		if len(l) != 1 {
			t.Fatalf("%d tasks go out with one that was lost", len(l)-1)
		}
		tasks = append(tasks, l[0].Task)
	}
	for _, l := range held {
		if !slices.Contains(tasks, l.Task) {
			t.Errorf("task %d is not handed out again", l.Task)
		}
	}
}

// The journal and the snapshot keep what was leased together.
func TestBatchIsJournaled(t *testing.T) {
	b := started(t, 0.01)
	b.do(RequestTask{Worker: "w1", Most: 4})
	replayed := New(Limits{})
	for _, r := range b.records {
		data, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		var again Record
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatal(err)
		}
		if err := replayed.Replay(again); err != nil {
			t.Fatal(err)
		}
	}
	restored := New(Limits{})
	if err := restored.LoadSnapshot(replayed.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if got := restored.find("j").batches; len(got) != 1 || got[2] != 4 {
		t.Errorf("batches %v, want one of four leases from epoch 2", got)
	}
}

// A slot that has work gets more while every slot has two tasks waiting, if they are short.
func TestBatchesAhead(t *testing.T) {
	for _, c := range []struct {
		cpu         float64
		slots, want int
	}{{0.012, 1, 1}, {0.2, 1, 0}, {0.012, 48, 1}, {0.012, 49, 0}} {
		b := started(t, c.cpu)
		if c.slots > 1 {
			b.do(Register{Name: "many", Slots: uint32(c.slots)})
		}
		held := b.do(RequestTask{Worker: "w1"})
		e := b.done(held[0], c.cpu)
		e.Next, e.Ahead = true, true
		if got := b.do(e); len(got) != c.want {
			t.Errorf("tasks of %v s, 98 wait, %d slots more: %d go out ahead, want %d", c.cpu, c.slots, len(got), c.want)
		}
	}
}
