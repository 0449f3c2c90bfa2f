// Package machinetest is a toy training for tests of the state machine and of its server: a job,
// and the figures that its tasks report.
package machinetest

import (
	"fmt"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
)

// Figures holds a task's figures by name.
type Figures struct{ Primal, Dual, Restart, Visits float64 }

// Sums returns the figures as a task of recursive regularisation reports them.
func (f Figures) Sums() method.Sums {
	out := make(method.Sums, rr.SumVisits+1)
	out[rr.SumPrimal], out[rr.SumDual], out[rr.SumRestart], out[rr.SumVisits] = f.Primal, f.Dual, f.Restart, f.Visits
	return out
}

// LeaseID returns the id of a lease.
func LeaseID(l *taxonv1.Lease) *taxonv1.LeaseId {
	return &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Epoch: l.Epoch}
}

// Params decodes the parameters of a lease, which are of one kind or the other.
func Params(l *taxonv1.Lease) (m rr.Map, r rr.Reduce) {
	var err error
	switch l.Op {
	case rr.OpMap, rr.OpEmitMap:
		err = method.Decode(l.Params, &m)
	default:
		err = method.Decode(l.Params, &r)
	}
	if err != nil {
		panic(err)
	}
	return m, r
}

// Sums returns the figures of a training whose gap halves with every sweep: P = n (1 + 2^-sweep)
// over n tasks with a full pass, D = n (1 - 2^-sweep). Every fifth sweep requests a restart.
func Sums(l *taxonv1.Lease) method.Sums {
	var f Figures
	m, r := Params(l)
	if m.Price || r.Certify {
		eps := 1 / float64(uint64(1)<<min(l.Sweep, 60))
		f.Primal, f.Dual = 1+eps, 1-eps
	}
	if l.Op == rr.OpReduce || l.Op == rr.OpEmitReduce {
		f.Restart = -1
		if l.Sweep%5 == 0 {
			f.Restart = 1
		}
	}
	return f.Sums()
}

// Spec returns a job on a tree of three levels: 4 groups of 11 terminals, and 3 terminals outside
// the groups.
func Spec(schedule string, maxSweeps uint32) *taxonv1.JobSpec {
	st := &taxonv1.Structure{Names: []string{"root"}}
	d := &taxonv1.Data{Instances: 500, Features: 30000, Nonzeros: 600_000}
	add := func(parent uint32, name string, label bool) uint32 {
		n := uint32(len(st.Names))
		st.Names = append(st.Names, name)
		st.Parents, st.Children = append(st.Parents, parent), append(st.Children, n)
		if label {
			d.Labels = append(d.Labels, name)
			d.LabelInstances = append(d.LabelInstances, 10+n)
		}
		return n
	}
	for g := range 4 {
		group := add(0, fmt.Sprintf("g%d", g), false)
		for c := range 11 {
			add(group, fmt.Sprintf("g%dc%d", g, c), true)
		}
	}
	for c := range 3 {
		add(0, fmt.Sprintf("c%d", c), true)
	}
	spec := &taxonv1.JobSpec{
		Options: methodtest.Options("rr-svm", "loss", "hinge", "schedule", schedule, "c", 1, "bias", 1, "gap", 1e-3,
			"max_sweeps", maxSweeps, "seed", 7),
		Data: d,
	}
	if schedule != "flat" {
		spec.Structure = st
	} else {
		spec.Options.Set("schedule", "twoblock")
	}
	return spec
}
