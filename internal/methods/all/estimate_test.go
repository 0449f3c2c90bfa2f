package all

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"taxon/coordinator/footprint"
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
			spec := methodtest.Of(m)
			spec.Data.Instances, spec.Data.Nonzeros = times*spec.Data.Instances, times*spec.Data.Nonzeros
			for l := range spec.Data.LabelInstances {
				spec.Data.LabelInstances[l] *= uint32(times)
			}
			j, err := registry.Prepare(spec)
			if err != nil {
				t.Fatal(err)
			}
			return j
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

// TestRefusals: a method takes a job of its own kind, and where it refuses another, the words say which
// method it is and why. What each takes stands in docs/methods.md, which test/lists_test.go holds to it.
func TestRefusals(t *testing.T) {
	for _, m := range registry.All() {
		if _, err := registry.Prepare(methodtest.Of(m)); err != nil {
			t.Errorf("%s: %v", m.Name(), err)
		}
		for _, k := range methodtest.Kinds {
			spec := methodtest.Of(m)
			k.Change(spec)
			if _, err := registry.Prepare(spec); err != nil && (!strings.Contains(err.Error(), m.Name()) ||
				len(err.Error()) < 40) {
				t.Errorf("%s, %s: %v", m.Name(), k.Name, err)
			}
		}
	}
}

// TestTraits: each trait that callers ask for by name is that of some methods and not of others, and
// none of a method that there is not. docs/methods.md and testdata/traits.txt say of which.
func TestTraits(t *testing.T) {
	var got strings.Builder
	free := &taxonv1.JobSpec{Options: methodtest.Options("", "anchor", 0), Structure: &taxonv1.Structure{Graph: true}}
	for _, name := range append(registry.Names(), "none") {
		free.Options.Method = name
		tr := registry.TraitsOf(&taxonv1.Options{Method: name})
		fmt.Fprintf(&got, "%s: unstructured %t, rooted %t, separate %t, populated %t, searched %t, "+
			"gapless on a graph %t, %+v\n", name, registry.Unstructured(name), tr.Rooted, registry.Separate(name),
			registry.Populated(name), tr.Searched, registry.NoGap(free) != nil, tr.Form)
	}
	fmt.Fprintf(&got, "with precisions %v, for each feature %v\n", registry.Precise(false), registry.Precise(true))
	want, err := os.ReadFile("testdata/traits.txt")
	if got.String() == string(want) {
		return
	}
	if !*rewrite {
		t.Fatalf("testdata/traits.txt (%v) does not say what methods declare: go test ./internal/methods/all -rewrite", err)
	}
	if err := os.WriteFile("testdata/traits.txt", []byte(got.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
