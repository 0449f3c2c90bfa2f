package registry

import (
	"math"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestEveryMethodTellsWhatItTakes: who tells a user, refuses a job or sizes a container knows
// of a method what its estimate says. So each says all of it, and more for more data.
func TestEveryMethodTellsWhatItTakes(t *testing.T) {
	for _, m := range All() {
		of := func(times uint64) *Job {
			spec := methodtest.WordNetLike(200, 50)
			spec.Data.Instances, spec.Data.Nonzeros = times*spec.Data.Instances, times*spec.Data.Nonzeros
			for l := range spec.Data.LabelInstances {
				spec.Data.LabelInstances[l] *= uint32(times)
			}
			spec.Options.Method = m.Name()
			var err error
			for _, st := range []*taxonv1.Structure{spec.Structure, nil} { // some train without one
				for _, spec.Options.Loss = range []string{"hinge", ""} { // some have one loss alone
					spec.Structure = st
					var j *Job
					if j, err = Prepare(spec); err == nil {
						return j
					}
				}
			}
			t.Fatal(err)
			return nil
		}
		one, four := of(1), of(4)
		e := one.Estimate
		if e.Data == 0 || e.WorkerShared == 0 || e.WorkerSlot == 0 || e.Coordinator == 0 || e.StoreSweep == 0 || e.StoreJob < e.StoreSweep ||
			e.StoreLocal < e.StoreSweep || e.TrafficSweep < e.StoreSweep || e.SlotHolds == "" || e.Sweeps < 1 {
			t.Errorf("%s: %+v", m.Name(), e)
		}
		if len(e.SecondsSweep) == 0 || len(e.SecondsSweep) > len(one.Plan.Items) {
			t.Fatalf("%s: seconds of %d lists of items, there are %d", m.Name(), len(e.SecondsSweep), len(one.Plan.Items))
		}
		for n, s := range e.SecondsSweep {
			if !(s > 0) || math.IsInf(s, 0) || n == 0 && !(four.Estimate.SecondsSweep[n] > s) {
				t.Errorf("%s, %s: %g s a sweep, %g for four times the data", m.Name(), one.Plan.List(n).Kind, s, four.Estimate.SecondsSweep[n])
			}
		}
		if a, b, more := e.Alone(1, 1).Total, e.Alone(2, 1).Total, four.Estimate.Alone(1, 1).Total; a >= b || a >= more {
			t.Errorf("%s: one thread %d, two %d, four times the data %d", m.Name(), a, b, more)
		}
	}
}

// TestUnlearned: a job whose hierarchy was to be learned and is not there is not trained flat.
func TestUnlearned(t *testing.T) {
	spec := methodtest.WordNetLike(200, 50)
	spec.Options.Method = "rr-svm"
	if err := spec.Options.Set("families", "7"); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(spec); err != nil {
		t.Error(err)
	}
	spec.Structure = nil
	if _, err := Prepare(spec); err == nil || !strings.Contains(err.Error(), "families 7") {
		t.Errorf("without a structure: %v", err)
	}
}

// TestTraitsOfMethods: what the trainer asks of a method besides its plan.
func TestTraitsOfMethods(t *testing.T) {
	for _, name := range append(Names(), "none") {
		separate := name == "bsvm" || name == "blr"
		if Rooted(name) != (strings.HasPrefix(name, "hblr-") || name == "hm3") {
			t.Errorf("%s: rooted %t", name, Rooted(name))
		}
		if Separate(name) != separate || Unstructured(name) != (separate || name == "mlr" || name == "msvm" || name == "flatmult") {
			t.Errorf("%s: separate %t, unstructured %t", name, Separate(name), Unstructured(name))
		}
	}
}
