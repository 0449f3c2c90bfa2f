package machine

import (
	"encoding/json"
	"taxon/coordinator/method/methodtest"
	rr "taxon/internal/methods/rr/plan"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"

	"pgregory.net/rapid"
)

// BenchmarkStep measures what the machine itself costs per task, journal records
// included, on a job of 1,125 blocks and 16 ranges or so (wordnet: 18,000 terminals).
func BenchmarkStep(b *testing.B) {
	spec := methodtest.WordNetLike(18_000, 8_000)
	spec.Options.Set("gap", 1e-300)
	p, err := prepare(spec)
	if err != nil {
		b.Fatal(err)
	}
	m := New(Limits{})
	m.Step(0, Submit{ID: "j", Spec: spec, prepared: p})
	workers := []string{}
	for range 8 {
		for _, a := range m.Step(0, Register{Slots: 2}) {
			if r, ok := a.(Registered); ok {
				workers = append(workers, r.Worker)
			}
		}
	}
	b.Log(p.plan)
	bytes, n := 0, 0
	for b.Loop() {
		w := workers[n%len(workers)]
		n++
		var lease Grant
		for _, a := range m.Step(0, RequestTask{Worker: w}) {
			switch a := a.(type) {
			case Persist:
				data, _ := json.Marshal(&a.Record)
				bytes += len(data)
			case Grant:
				lease = a
			}
		}
		// The figures move, or the job would end for having come to rest.
		e := Report{Worker: w, Lease: machinetest.LeaseID(lease.Lease), CPUSeconds: 0.1,
			Sums: machinetest.Figures{Primal: 2 + float64(n%7)/1000, Dual: 1, Restart: -1}.Sums()}
		for _, a := range m.Step(0, e) {
			if a, ok := a.(Persist); ok {
				data, _ := json.Marshal(&a.Record)
				bytes += len(data)
			}
		}
	}
	b.ReportMetric(float64(bytes)/float64(n), "journal-B/op")
}

// A snapshot restores to a machine that makes the same snapshot.
func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(Limits{Checkpoints: true})
		spec := methodtest.WordNetLike(60, 20)
		spec.Options.Set("schedule", rapid.SampledFrom([]string{rr.ScheduleTwoblock, rr.ScheduleParity}).Draw(t, "schedule"))
		m.Step(0, Submit{ID: "j", Spec: spec})
		m.Step(0, Register{Slots: 1})
		for n := range rapid.IntRange(0, 60).Draw(t, "tasks") {
			for _, a := range m.Step(Tick(n), RequestTask{Worker: "w1"}) {
				if g, ok := a.(Grant); ok && rapid.IntRange(0, 4).Draw(t, "report") > 0 {
					m.Step(Tick(n), Report{Worker: "w1", Lease: machinetest.LeaseID(g.Lease), Returned: rapid.IntRange(0, 3).Draw(t,
						"returned") == 0,
						CPUSeconds: 0.1, Sums: machinetest.Figures{Primal: rapid.Float64Range(1, 2).Draw(t, "P"), Dual: 0.5}.Sums()})
				}
			}
		}
		if rapid.Bool().Draw(t, "cancel") {
			m.Step(100, Cancel{Job: "j"})
		}
		first := m.Snapshot()
		again := New(Limits{})
		if err := again.LoadSnapshot(first); err != nil {
			t.Fatal(err)
		}
		if second := again.Snapshot(); string(second) != string(first) {
			t.Fatalf("snapshots differ:\n%s\n%s", first, second)
		}
	})
}

// FuzzLoadSnapshot: no snapshot makes Restore panic.
func FuzzLoadSnapshot(f *testing.F) {
	m := New(Limits{})
	m.Step(0, Submit{ID: "j", Spec: methodtest.WordNetLike(6, 3)})
	m.Step(0, Register{Slots: 1})
	m.Step(0, RequestTask{Worker: "w1"})
	f.Add(m.Snapshot())
	f.Add([]byte(`{"Version":1}`))
	m = New(Limits{KeepInputs: true}) // one that makes a value again
	m.Step(0, Submit{ID: "j", Spec: methodtest.WordNetLike(6, 3)})
	m.Step(0, Register{Slots: 1})
	for n := Tick(0); len(m.find("j").recomputes) == 0 || m.find("j").recomputes[0].Epoch == 0; n++ {
		for _, a := range m.Step(n*second/10, RequestTask{Worker: "w1"}) {
			if g, ok := a.(Grant); ok && len(m.find("j").recomputes) == 0 {
				e := Report{Worker: "w1", Lease: machinetest.LeaseID(g.Lease), Sums: machinetest.Figures{Primal: 2, Dual: 1}.Sums()}
				if g.Lease.Sweep == 2 {
					e.Error, e.Lost = "lost", []taxonv1.Place{m.find("j").Values["x"][0][0]}
				}
				m.Step(n*second/10, e)
			}
		}
	}
	f.Add(m.Snapshot())
	f.Fuzz(func(t *testing.T, data []byte) {
		m := New(Limits{})
		if m.LoadSnapshot(data) == nil {
			m.Recover(1)
			m.Step(2, Time{})
			m.Snapshot()
		}
	})
}
