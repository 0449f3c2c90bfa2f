package all

import (
	"math"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestEveryMethodTellsWhatItTakes: who tells a user, refuses a job or sizes a container knows
// of a method what its estimate says. So each says all of it, and more for more data.
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
			for _, st := range []*taxonv1.Structure{spec.Structure, nil} { // some train without one
				for _, spec.Options.Loss = range []string{"hinge", ""} { // some have one loss alone
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
		total := func(e method.Estimate, threads uint32) uint64 {
			return footprint.Alone(e, threads, 1, footprint.Cached).Total
		}
		if a, b, more := total(e, 1), total(e, 2), total(four.Estimate, 1); a >= b || a >= more {
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
	if _, err := registry.Prepare(spec); err != nil {
		t.Error(err)
	}
	spec.Structure = nil
	if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), "‹families=7›") {
		t.Errorf("without a structure: %v", err)
	}
}

// TestTraitsOfMethods: what the trainer asks of a method besides its plan.
func TestTraitsOfMethods(t *testing.T) {
	if all, each := strings.Join(registry.Precise(false), " "), strings.Join(registry.Precise(true),
		" "); all != "hblr-m1 hblr-m2 hblr-m3" || each != "hblr-m2" {
		t.Errorf("precisions are in models of %s, for each feature in those of %s", all, each)
	}
	free := &taxonv1.JobSpec{Options: &taxonv1.Options{}, Structure: &taxonv1.Structure{Graph: true}}
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

// TestEveryMethodSaysWhatItDoesNotTake: of each method and each kind of data and structure that it
// may not take, whether a job is refused, with the method's name in the words; a new method has to
// be entered here.
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
			// a tree, or for flat methods none, and a label each: all take that
			0:       func(*taxonv1.JobSpec) {},
			graphs:  func(s *taxonv1.JobSpec) { s.Structure.Graph = true },
			flat:    func(s *taxonv1.JobSpec) { s.Structure = nil },
			several: func(s *taxonv1.JobSpec) { s.Data.SeveralLabels = 5 },
			none:    func(s *taxonv1.JobSpec) { s.Data.NoLabel = 5 },
		} {
			spec := methodtest.WordNetLike(200, 50)
			spec.Options.Method, spec.Options.Loss = m.Name(), ""
			if o := registry.Find(m.Name(), "loss"); o != nil {
				spec.Options.Loss = o.Default
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
