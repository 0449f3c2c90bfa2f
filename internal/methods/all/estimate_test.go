package all

import (
	"math"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestEveryMethodTellsWhatItTakes checks that each method's estimate is complete and grows with the
// data. It is the only source for what a user is told, for refusing a job, and for the size of a
// container.
func TestEveryMethodTellsWhatItTakes(t *testing.T) {
	for _, m := range registry.All() {
		of := func(times uint64) *registry.Job {
			spec := methodtest.WordNetLike(200, 50)
			spec.Data.Instances, spec.Data.Nonzeros = times*spec.Data.Instances, times*spec.Data.Nonzeros
			for l := range spec.Data.LabelInstances {
				spec.Data.LabelInstances[l] *= uint32(times)
			}
			spec.Options.Method = m.Name()
			var err error
			for _, st := range []*taxonv1.Structure{spec.Structure, nil} { // some methods train without a structure
				for _, loss := range []string{"hinge", ""} { // some methods have a single loss
					spec.Options.Set("loss", loss)
					spec.Structure = st
					var j *registry.Job
					if j, err = registry.Prepare(spec); err == nil {
						return j
					}
				}
			}
			t.Fatal(err)
			return nil
		}
		one, four := of(1), of(4)
		e := one.Estimate
		if e.Data == 0 || e.WorkerShared == 0 || e.WorkerSlot == 0 || e.Coordinator == 0 || e.StoreSweep == 0 ||
			e.StoreJob < e.StoreSweep ||
			e.StoreLocal < e.StoreSweep || e.TrafficSweep < e.StoreSweep || e.SlotHolds == "" || e.Sweeps < 1 {
			t.Errorf("%s: %+v", m.Name(), e)
		}
		if len(e.SecondsSweep) == 0 || len(e.SecondsSweep) > len(one.Plan.Items) {
			t.Fatalf("%s: seconds of %d lists of items, there are %d", m.Name(), len(e.SecondsSweep), len(one.Plan.Items))
		}
		for n, s := range e.SecondsSweep {
			if !(s > 0) || math.IsInf(s, 0) || n == 0 && !(four.Estimate.SecondsSweep[n] > s) {
				t.Errorf("%s, %s: %g s a sweep, %g for four times the data", m.Name(), one.Plan.List(n).Kind, s,
					four.Estimate.SecondsSweep[n])
			}
		}
		if a, b, more := e.Alone(1, 1, method.Roomy).Total, e.Alone(2, 1, method.Roomy).Total, four.Estimate.Alone(1, 1,
			method.Roomy).Total; a >= b || a >= more {
			t.Errorf("%s: one thread %d, two %d, four times the data %d", m.Name(), a, b, more)
		}
	}
}

// TestUnlearned checks that a job whose hierarchy should have been learned is not trained flat if
// the hierarchy is missing.
func TestUnlearned(t *testing.T) {
	spec := methodtest.WordNetLike(200, 50)
	spec.Options.Method = "rr-svm"
	spec.Options.Set("families", 7)
	if _, err := registry.Prepare(spec); err != nil {
		t.Error(err)
	}
	spec.Structure = nil
	if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), "‹families=7›") {
		t.Errorf("without a structure: %v", err)
	}
}

// TestTraitsOfMethods checks the traits that the trainer uses.
func TestTraitsOfMethods(t *testing.T) {
	if all, each := strings.Join(registry.Precise(false), " "), strings.Join(registry.Precise(true),
		" "); all != "hblr-m1 hblr-m2 hblr-m3" || each != "hblr-m2" {
		t.Errorf("precisions are in models of %s, for each feature in those of %s", all, each)
	}
	free := &taxonv1.JobSpec{Options: methodtest.Options("", "anchor", 0),
		Structure: &taxonv1.Structure{Graph: true}}
	for _, name := range registry.Names() {
		free.Options.Method = name
		if family := slices.Contains([]string{"rr-svm", "rr-lr", "bsvm", "blr"},
			name); (registry.NoGap(free) != nil) != family {
			t.Errorf("%s on a graph without an anchor: %v", name, registry.NoGap(free))
		}
	}
	for _, name := range append(registry.Names(), "none") {
		separate := name == "bsvm" || name == "blr"
		if registry.TraitsOf(&taxonv1.Options{Method: name}).Rooted != (strings.HasPrefix(name, "hblr-") || name == "hm3") {
			t.Errorf("%s: is not rooted, or should not be", name)
		}
		if registry.Separate(name) != separate || registry.Unstructured(name) != (separate || name == "mlr" ||
			name == "msvm" || name == "flatmult") {
			t.Errorf("%s: separate %t, unstructured %t", name, registry.Separate(name), registry.Unstructured(name))
		}
	}
}

// TestEveryMethodSaysWhatItDoesNotTake checks, for each method and each kind of data and structure,
// whether a job is refused with a message that names the method. A new method must be added to the
// table.
func TestEveryMethodSaysWhatItDoesNotTake(t *testing.T) {
	const (
		graphs = 1 << iota
		flat
		several
		none
	)
	takes := map[string]int{
		"rr-svm": graphs | flat | several | none, "rr-lr": graphs | flat | several | none,
		"bsvm": graphs | flat | several | none, "blr": graphs | flat | several | none,
		"td": flat | several | none, "h-svm": flat | several | none, "h-rls": flat | several | none,
		"hm3":     flat | several | none,
		"hblr-m1": flat | several | none, "hblr-m2": flat | several | none, "hblr-m3": flat | several | none,
		"mlr": flat, "msvm": flat, "flatmult": flat, "rr-mlr": 0, "rr-msvm": 0, "hiermult": 0, "hsvm": 0, "transfer": 0,
		"ot": 0, "corrmnl": 0,
	}
	for _, m := range registry.All() {
		kinds, known := takes[m.Name()]
		if !known {
			t.Errorf("%s is not in the table", m.Name())
		}
		for bit, change := range map[int]func(*taxonv1.JobSpec){
			// a tree (none for flat methods) and one label per instance: all methods accept that
			0:       func(*taxonv1.JobSpec) {},
			graphs:  func(s *taxonv1.JobSpec) { s.Structure.Graph = true },
			flat:    func(s *taxonv1.JobSpec) { s.Structure = nil },
			several: func(s *taxonv1.JobSpec) { s.Data.SeveralLabels = 5 },
			none:    func(s *taxonv1.JobSpec) { s.Data.NoLabel = 5 },
		} {
			spec := methodtest.WordNetLike(200, 50)
			spec.Options.Method = m.Name()
			spec.Options.Set("loss", "")
			if o := registry.Find(m.Name(), "loss"); o != nil {
				spec.Options.Set("loss", o.Default)
			}
			if registry.Unstructured(m.Name()) && bit != graphs {
				spec.Structure = nil
			}
			change(spec)
			_, err := registry.Prepare(spec)
			if want := kinds&bit == bit; (err == nil) != want || err != nil && (!strings.Contains(err.Error(), m.Name()) ||
				len(err.Error()) < 40) {
				t.Errorf("%s, %v: taken is to be %v; %v", m.Name(), map[int]string{0: "a tree", graphs: "graph",
					flat: "no structure", several: "several labels", none: "no label"}[bit], want, err)
			}
		}
	}
}
