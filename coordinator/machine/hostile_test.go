package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
)

// specOf is a small job of a method, with that method's own defaults.
func specOf(t *testing.T, name string) *taxonv1.JobSpec {
	t.Helper()
	spec := methodtest.WordNetLike(20, 5)
	spec.Options = &taxonv1.Options{Method: name}
	if err := registry.Fill(spec.Options, nil); err != nil {
		t.Fatal(err)
	}
	spec.Options.Set("gap", 0.01)
	spec.Options.Set("c", max(methodtest.Number(spec.Options, "c"), 1))
	spec.Options.Set("bias", 1)
	if methodtest.Number(spec.Options, "max_sweeps") == 0 {
		spec.Options.Set("max_sweeps", 6)
	}
	if registry.Unstructured(name) {
		spec.Structure = nil
	}
	return spec
}

// hostileFigures are what a worker that lies, or whose memory is broken, may report.
var hostileFigures = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, math.MaxFloat64, -math.MaxFloat64,
	1e200, -1e200, 1e155, -1e155,
	math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0, 1, -1, 0.5, 1 << 53, 1e19, -1e19}

// TestHostileReports: whatever a worker reports of one job, of any method, the machine can be
// written, read again and replayed from its journal, and the other job goes on.
func TestHostileReports(t *testing.T) {
	for _, m := range registry.All() {
		t.Run(m.Name(), func(t *testing.T) {
			spec, seeds := specOf(t, m.Name()), 3
			if testing.Short() {
				seeds = 5
			}
			for _, v := range hostileFigures {
				hostile(t, spec, func(count bool) float64 { return v }, v)
				hostile(t, spec, func(count bool) float64 {
					if count {
						return 1
					}
					return v
				}, 0.1)
			}
			for seed := range seeds {
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				few := hostileFigures[3:]
				for range r.IntN(20) { // a lie now and then, among figures that are taken
					few = append(few, 1, 2, 3, 0.5, 100, 1e-3)
				}
				hostile(t, spec, func(count bool) float64 {
					if count {
						return float64(r.IntN(5))
					}
					return few[r.IntN(len(few))]
				}, 0.1)
			}
		})
	}
}

// hostile runs a job whose tasks report figures of a source, beside one that nobody works on.
func hostile(t *testing.T, spec *taxonv1.JobSpec, figure func(count bool) float64, cpu float64) {
	t.Helper()
	limits := Limits{KeepInputs: true, Digests: true, MaxErrors: 2}
	var journal [][]byte
	m, now := New(limits), Tick(0)
	do := func(e Event) (leases []*taxonv1.Lease) {
		now += second
		for _, a := range m.Step(now, e) {
			switch a := a.(type) {
			case Persist:
				data, err := json.Marshal(&a.Record)
				if err != nil {
					t.Fatalf("record %s: %v", a.Record.Kind, err)
				}
				journal = append(journal, data)
			case Grant:
				leases = append(leases, a.Lease)
			}
		}
		return leases
	}
	rebuilt := func() {
		t.Helper()
		again, replayed := New(limits), New(limits)
		if err := again.LoadSnapshot(m.Snapshot()); err != nil {
			t.Fatalf("snapshot: %v", err)
		}
		for _, data := range journal {
			var r Record
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			if err := replayed.Replay(r); err != nil {
				t.Fatalf("replay: %v", err)
			}
		}
		for _, k := range []*Machine{again, replayed} {
			for _, id := range []string{"bad", "good"} {
				if a, b := k.find(id), m.find(id); a.State != b.State || a.Error != b.Error || a.StepNo != b.StepNo {
					t.Fatalf("job %s is %v (%s), was %v (%s)", id, a.State, a.Error, b.State, b.Error)
				}
			}
		}
	}
	do(Submit{ID: "bad", Spec: spec})
	do(Submit{ID: "good", Spec: spec})
	do(Register{Name: "w", Slots: 1})
	resumed := false
	for n := range 300 {
		for _, l := range do(RequestTask{Worker: "w1", Most: 1}) {
			r := Report{Worker: "w1", Lease: &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt,
				Epoch: l.Epoch}}
			if r.Returned = l.Job == "good"; !r.Returned {
				r.Sums = make(method.Sums, len(m.find("bad").plan.Sums))
				for i := range r.Sums {
					r.Sums[i] = figure(m.find("bad").plan.Sums[i].Count)
				}
				r.CPUSeconds, r.Read, r.Written = cpu, 1<<50, 1<<50
			}
			do(r)
		}
		if bad := m.find("bad"); bad.ended() || bad.stage == stageDigest {
			if resumed || bad.State != taxonv1.JobState_JOB_STATE_FAILED {
				break
			}
			rebuilt()
			resumed = true
			do(Resume{Job: "bad"})
		}
		if n%50 == 7 {
			rebuilt()
		}
	}
	rebuilt()
	if good := m.find("good"); !good.running() {
		t.Errorf("the other job is %v: %s", good.State, good.Error)
	}
}

// TestOrdinaryReports: no ordinary figures are taken for hostile ones.
func TestOrdinaryReports(t *testing.T) {
	for _, name := range registry.Names() {
		m := New(Limits{KeepInputs: true})
		spec := specOf(t, name)
		spec.Options.Set("max_sweeps", 2)
		m.Step(0, Submit{ID: "j", Spec: spec})
		m.Step(0, Register{Name: "w", Slots: 1})
		work(m, "j", 500, func(bool) float64 { return 1 })
		if j := m.find("j"); j.State != taxonv1.JobState_JOB_STATE_DONE {
			t.Errorf("%s: %v in step %d: %s", name, j.State, j.StepNo, j.Error)
		}
	}
}

// alone is a machine with two running jobs, each with a granted task, and the journal that led there.
func alone(t *testing.T) (m *Machine, journal []Record) {
	t.Helper()
	m = New(Limits{})
	for n, e := range []Event{Submit{ID: "bad", Owner: "ada", Spec: methodtest.WordNetLike(20, 5)},
		Submit{ID: "good", Spec: methodtest.WordNetLike(20, 5)},
		Register{Name: "w", Slots: 2}, RequestTask{Worker: "w1"}, RequestTask{Worker: "w1"}} {
		for _, a := range m.Step(Tick(n+1)*second, e) {
			if p, ok := a.(Persist); ok {
				journal = append(journal, p.Record)
			}
		}
	}
	if len(m.leases) != 2 {
		t.Fatalf("%d leases", len(m.leases))
	}
	return m, journal
}

// stands checks that the job "bad" has failed, for a reason, and that "good" runs with its lease.
func stands(t *testing.T, m *Machine, reason string) {
	t.Helper()
	bad, good := m.find("bad"), m.find("good")
	if bad == nil || bad.State != taxonv1.JobState_JOB_STATE_FAILED || !strings.Contains(bad.Error, reason) ||
		bad.Owner != "ada" {
		t.Errorf("the bad job: %+v", bad)
	}
	if good == nil || !good.running() || len(m.leases) != 1 || m.leases[2].job != good {
		t.Errorf("the good job: %+v, leases %v", good, m.leases)
	}
}

// TestUnwritableJob: a job that can't be serialised fails alone, in memory as in the snapshot.
func TestUnwritableJob(t *testing.T) {
	m, _ := alone(t)
	m.find("bad").CPUSeconds = math.Inf(1)
	again := New(Limits{})
	if err := again.LoadSnapshot(m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	stands(t, m, "it can't be saved")
	stands(t, again, "it can't be saved")
	again.Recover(10 * second)
	stands(t, again, "it can't be saved")
}

// TestForeignJob: a job in the snapshot that this version can't continue fails alone. Nothing of it
// is lost until somebody discards it: its values stay, and its state is written again as it was.
func TestForeignJob(t *testing.T) {
	m, _ := alone(t)
	var s machineSnapshot
	if err := json.Unmarshal(m.Snapshot(), &s); err != nil {
		t.Fatal(err)
	}
	s.Jobs[0].Job = []byte(strings.Replace(string(s.Jobs[0].Job), `"Version":2`, `"Version":99`, 1))
	data, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	again := New(Limits{})
	if err := again.LoadSnapshot(data); err != nil {
		t.Fatal(err)
	}
	for _, a := range again.Recover(10 * second) {
		if d, ok := a.(DropSteps); ok && d.Job == "bad" {
			t.Error("its values are dropped")
		}
	}
	stands(t, again, "this version of taxon can't continue it")
	if st, err := again.Status("bad", 11*second, 0); err != nil || st.GetResumable() || st.GetKept().GetDropped() {
		t.Errorf("%v, %v", st, err)
	}
	for _, e := range []Event{Resume{Job: "bad"}, Cancel{Job: "bad"}, Time{}} {
		again.Step(12*second, e)
	}
	if _, _, err := again.State("bad"); err == nil {
		t.Error("a state that can't be read was given out")
	}
	var kept machineSnapshot
	if err := json.Unmarshal(again.Snapshot(), &kept); err != nil || string(kept.Jobs[0].Job) != string(s.Jobs[0].Job) {
		t.Errorf("%v: not kept as it was: %.100s", err, kept.Jobs[0].Job)
	}
	dropped := false
	for _, a := range again.Step(13*second, Cancel{Job: "bad", Discard: true}) {
		_, drop := a.(DropSteps)
		dropped = dropped || drop
	}
	third := New(Limits{})
	if err := third.LoadSnapshot(again.Snapshot()); err != nil || !dropped || !third.find("bad").Discarded {
		t.Errorf("after a discard: %v, dropped %t, %+v", err, dropped, third.find("bad"))
	}
}

// TestReplayOfAForeignRecord: a record that does not fit its job fails that job alone, also where
// others of the job follow, and no fencing epoch is used again.
func TestReplayOfAForeignRecord(t *testing.T) {
	_, journal := alone(t)
	submitted := slices.IndexFunc(journal, func(r Record) bool { return r.Kind == recordSubmit })
	granted := slices.IndexFunc(journal, func(r Record) bool { return r.Kind == recordGrant })
	for name, harm := range map[string]func(){
		"a specification": func() { journal[submitted].Payload, journal[submitted].prepared = []byte{255}, nil },
		"a grant":         func() { journal[granted].Task = 1 << 20 },
		"a result": func() {
			journal = append(journal, Record{Kind: recordDone, Job: "bad", Epoch: 77,
				At: 6 * second})
		},
	} {
		_, journal = alone(t)
		harm()
		m := New(Limits{})
		for _, r := range journal {
			if err := m.Replay(r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		m.Recover(20 * second)
		stands(t, m, "")
		if m.lastEpoch < 2 {
			t.Errorf("%s: epoch %d", name, m.lastEpoch)
		}
		if again := New(Limits{}); again.LoadSnapshot(m.Snapshot()) != nil {
			t.Errorf("%s: no snapshot afterwards", name)
		}
	}
	m, _ := alone(t)
	if err := m.Replay(Record{Kind: "invented", Job: "bad"}); err == nil || m.find("bad").broken != nil {
		t.Error("a record of a kind that this version does not know was passed over")
	}
}

// TestHostileCriteria: no criteria make a record that can't be written.
func TestHostileCriteria(t *testing.T) {
	for _, v := range hostileFigures {
		m, _ := alone(t)
		m.Step(10*second, Cancel{Job: "bad"})
		for _, a := range m.Step(11*second, Resume{Job: "bad", Criteria: StopCriteria{Gap: &v, MaxSeconds: &v}}) {
			if p, ok := a.(Persist); ok {
				if _, err := json.Marshal(&p.Record); err != nil {
					t.Errorf("%g: %v", v, err)
				}
			}
		}
		if again := New(Limits{}); again.LoadSnapshot(m.Snapshot()) != nil || again.find("bad").State == 0 {
			t.Errorf("%g: no snapshot", v)
		}
	}
}

// TestRefusedRecord: what can't be applied is not journaled.
func TestRefusedRecord(t *testing.T) {
	m, _ := alone(t)
	m.out = nil
	before := m.records
	m.decide(Record{Kind: recordEvaluated, Job: "bad"})
	if len(m.out) != 1 || m.records != before {
		t.Errorf("%d actions, %d records more", len(m.out), m.records-before)
	}
	if _, refused := m.out[0].(Refused); !refused {
		t.Errorf("%T", m.out[0])
	}
}

// TestSpecifications: an owner's submissions can't fill memory and journal. Others still submit,
// and discarding helps.
func TestSpecifications(t *testing.T) {
	m := New(Limits{KeepJobs: 1000, MaxSpecBytes: 8 << 20})
	spec := methodtest.WordNetLike(20, 5)
	for n := range 25 {
		spec.Structure.Names = append(spec.Structure.Names, strings.Repeat("x", 10<<10)+string(rune('a'+n)))
	}
	refused := func(id, owner string) (err error) {
		for _, a := range m.Step(m.now+1, Submit{ID: id, Owner: owner, Spec: spec}) {
			if r, ok := a.(Refused); ok {
				err = r.Err
			}
		}
		return err
	}
	taken := 0
	for ; taken < 100 && refused(string(rune('a'+taken)), "eve") == nil; taken++ {
	}
	if taken < 5 || taken > 10 {
		t.Fatalf("%d jobs of 256 KiB were taken, of 2 MiB for each owner", taken)
	}
	if err := refused("z", "eve"); !errors.Is(err, ErrTooManyJobs) || !strings.Contains(err.Error(), "discard") {
		t.Error(err)
	}
	if err := refused("y", "ada"); err != nil {
		t.Errorf("another owner: %v", err)
	}
	for n := 0; n < 60; n++ {
		if err := refused(fmt.Sprintf("more-%d", n), fmt.Sprint("owner-", n)); err != nil {
			if n < 10 || !errors.Is(err, ErrTooManyJobs) {
				t.Errorf("owner %d: %v", n, err)
			}
			break
		} else if n == 59 {
			t.Error("there is no end to it")
		}
	}
	m.Step(m.now+1, Cancel{Job: "a", Discard: true})
	if err := refused("z", "eve"); err != nil {
		t.Errorf("after a discard: %v", err)
	}
}
