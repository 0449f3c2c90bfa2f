package machine

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"taxon/coordinator/method/methodtest"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"

	"google.golang.org/protobuf/proto"
)

// TestAhead: what a lookahead says of the REDUCE steps is what is handed out then, whatever the
// MAP tasks report and however often they are tried.
func TestAhead(t *testing.T) {
	for _, schedule := range []string{"twoblock", "parity", "jacobi"} {
		spec := aheadSpec(schedule)
		m := New(Limits{})
		r := rand.New(rand.NewPCG(3, 4))
		now := Tick(0)
		m.Step(now, Register{Name: "w", Slots: 1000})
		if out := m.Step(now, Submit{ID: "j", Spec: spec}); len(out) == 0 {
			t.Fatal("not submitted")
		}
		var expected []*taxonv1.Lease
		checked := 0
		for steps := 0; steps < 4000; steps++ {
			now += second / 10
			var lease *taxonv1.Lease
			for _, a := range m.Step(now, RequestTask{Worker: "w1"}) {
				if g, ok := a.(Grant); ok {
					lease = g.Lease
				}
			}
			if lease == nil {
				m.Step(now+second, Time{})
				if m.find("j").ended() {
					break
				}
				continue
			}
			if lease.Items == rr.Ranges && len(expected) > 0 && lease.GetStep() == expected[0].GetStep() {
				want := expected[lease.GetTask()]
				got := proto.Clone(lease).(*taxonv1.Lease)
				got.Epoch = 0
				if got.GetAttempt() == 1 && !proto.Equal(got, want) {
					t.Fatalf("%s: expected %v, is %v", schedule, want, got)
				}
				checked++
			}
			a, err := m.Lookahead("j")
			if err != nil {
				t.Fatal(err)
			}
			if a.Step == lease.GetStep() && lease.Items == rr.Blocks {
				expected = a.Next
			}
			report := Report{Worker: "w1", Lease: &taxonv1.LeaseId{Job: "j", Step: lease.Step, Task: lease.Task,
				Attempt: lease.Attempt, Epoch: lease.Epoch}}
			if r.IntN(5) == 0 {
				report.Error = "this time not"
			} else {
				report.Sums = machinetest.Figures{Primal: 1 + r.Float64(), Dual: r.Float64(), Restart: r.Float64() - 0.5}.Sums()
			}
			m.Step(now, report)
		}
		if schedule == "twoblock" && checked < 10 {
			t.Errorf("%d leases were looked at ahead", checked)
		}
	}
	if _, err := New(Limits{}).Lookahead("nobody"); err == nil {
		t.Error("a job that is not there has a step")
	}
}

// aheadSpec is a job of several blocks, ranges and sweeps.
func aheadSpec(schedule string) *taxonv1.JobSpec {
	d := &taxonv1.Data{Instances: 1000, Features: 50_000, Nonzeros: 5e6, FeatureCountsLog: []uint32{2e6, 4e6, 5e6}}
	s := &taxonv1.Structure{Names: []string{"root"}}
	for n := range uint32(200) {
		name := "n" + strconv.Itoa(int(n))
		s.Names, s.Parents, s.Children = append(s.Names, name), append(s.Parents, n/10), append(s.Children, n+1)
		d.Labels, d.LabelInstances = append(d.Labels, name), append(d.LabelInstances, 5)
	}
	return &taxonv1.JobSpec{Data: d, Structure: s, Options: methodtest.Options("rr-svm", "loss", "hinge", "c", 1,
		"gap", 1e-6, "bias", 1, "schedule", schedule, "prune", "empty", "max_sweeps", 6)}
}
