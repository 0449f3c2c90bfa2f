package machine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
)

// trainedState is the state of a small job of a method after some steps.
func trainedState(t *testing.T, name string, steps int) []byte {
	t.Helper()
	m := New(Limits{KeepInputs: true})
	m.Step(0, Submit{ID: "j", Spec: specOf(t, name)})
	m.Step(0, Register{Name: "w", Slots: 1})
	work(m, "j", steps, func(bool) float64 { return 2 })
	j := m.find("j")
	j.State = taxonv1.JobState_JOB_STATE_QUEUED
	state, err := j.encode()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// work reports tasks of a job, with figures of a source.
func work(m *Machine, job string, tasks int, figure func(count bool) float64) {
	for range tasks {
		for _, a := range m.Step(m.now+second, RequestTask{Worker: "w1", Most: 1}) {
			if g, ok := a.(Grant); ok {
				l := g.Lease
				r := Report{Worker: "w1", Lease: &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt,
					Epoch: l.Epoch}}
				r.Sums = make(method.Sums, len(m.find(job).plan.Sums))
				for i := range r.Sums {
					r.Sums[i] = figure(m.find(job).plan.Sums[i].Count)
				}
				m.Step(m.now+second, r)
			}
		}
	}
}

// mutate changes a value somewhere within a document.
func mutate(r *rand.Rand, v any) any {
	numbers := []any{0, 1, 2, 3, 7, 100, -1, 1 << 20, 4294967295, 1e300, -1e300, 0.5}
	switch v := v.(type) {
	case map[string]any:
		keys := sortedKeys(v)
		if len(keys) == 0 {
			return v
		}
		k := keys[r.IntN(len(keys))]
		if r.IntN(12) == 0 {
			delete(v, k)
		} else {
			v[k] = mutate(r, v[k])
		}
		return v
	case []any:
		switch n := len(v); {
		case n == 0 || r.IntN(6) == 0:
			return append(v, numbers[r.IntN(len(numbers))])
		case r.IntN(6) == 0:
			return v[:n-1]
		default:
			k := r.IntN(n)
			v[k] = mutate(r, v[k])
			return v
		}
	case float64:
		return numbers[r.IntN(len(numbers))]
	case bool:
		return !v
	}
	return v
}

func sortedKeys(v map[string]any) (out []string) {
	for k := range v {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestHostileStates: no state that a caller sends to be restored, of any method, ends the
// coordinator, now or when its tasks report.
func TestHostileStates(t *testing.T) {
	seeds := 15
	if testing.Short() {
		seeds = 5
	}
	for _, name := range registry.Names() {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				r := rand.New(rand.NewPCG(uint64(seed), 2))
				state := trainedState(t, name, seed%8*3)
				var doc map[string]any
				if err := json.Unmarshal(state, &doc); err != nil {
					t.Fatal(err)
				}
				for range 1 + r.IntN(3) {
					if r.IntN(4) > 0 {
						doc["Driver"] = mutate(r, doc["Driver"])
					} else {
						mutate(r, doc)
					}
				}
				bad, err := json.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				func() {
					defer func() {
						if p := recover(); p != nil {
							buf := make([]byte, 1500)
							t.Fatalf("seed %d: %v\n%s\n%s", seed, p, bad[:min(len(bad), 100)], buf[:runtime.Stack(buf, false)])
						}
					}()
					m := New(Limits{KeepInputs: true})
					m.Step(0, JoinShard{ID: "a", Addr: "a:1"})
					m.Step(1, Restore{State: bad, Shards: []string{"a"}, Replicas: 1})
					m.Step(2, Register{Name: "w", Slots: 1})
					if m.find("j") != nil {
						work(m, "j", 30, func(bool) float64 { return float64(r.IntN(3)) })
					}
					m.Snapshot()
				}()
			}
		})
	}
}

// TestRestoreTakesNoMoreThanItsPlan: a few bytes that stand for 4 billion places are refused before
// anything is allocated for them.
func TestRestoreTakesNoMoreThanItsPlan(t *testing.T) {
	m := New(Limits{KeepInputs: true})
	m.Step(0, Submit{ID: "j", Spec: methodtest.WordNetLike(20, 5)})
	m.Step(0, Register{Name: "w", Slots: 1})
	for n := 0; len(m.find("j").Past) == 0 && n < 100; n++ {
		work(m, "j", 1, func(bool) float64 { return 2 })
	}
	state, err := m.find("j").encode()
	if err != nil {
		t.Fatal(err)
	}
	const many = `[[[4294967295,4294967295],[1,1],[0,0],[1,1]]`
	huge := many
	for range 20 {
		huge += "," + many[1:]
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(state, &doc); err != nil {
		t.Fatal(err)
	}
	bounded := func(what string, taken bool, text []byte) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := Restore{State: text}.Prepare()
		_, other := ReadState(text)
		runtime.ReadMemStats(&after)
		if (err == nil) != taken {
			t.Errorf("%s: taken is to be %t: %v", what, taken, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: %d bytes were allocated (%v, %v)", what, grown, err, other)
		}
	}
	good := doc["Values"]
	doc["Values"] = json.RawMessage(`{"x":` + huge + `]}`)
	bad, _ := json.Marshal(doc)
	bounded("values of too many versions", false, bad)
	for family := range m.find("j").Values {
		var values map[string][]placeRuns
		if err := json.Unmarshal(good, &values); err != nil {
			t.Fatal(err)
		}
		for k := range values[family] {
			values[family][k] = placeRuns{{1 << 24, 1 << 24}, {1, 1}, {0, 0}, {1, 1}}
		}
		doc["Values"], _ = json.Marshal(values)
		bad, _ = json.Marshal(doc)
		bounded("values of "+family, false, bad)
	}
	bounded("values given twice, the last ones as they should be", true, []byte(fmt.Sprintf(`{"Values":{"x":%s]},%s`, huge,
		state[1:])))
	doc["Values"] = good
	doc["Past"] = json.RawMessage(`[{"Number":1,"From":{"x":` + huge + `]}}]`)
	bad, _ = json.Marshal(doc)
	bounded("a past step", false, bad)
}

// TestHostileSpecifications checks that planning a specification with made-up counts, by any method, takes
// little more memory than the specification itself, if the cluster's guard admits it.
func TestHostileSpecifications(t *testing.T) {
	for _, name := range registry.Names() {
		t.Run(name, func(t *testing.T) {
			for what, harm := range map[string]func(*taxonv1.JobSpec){
				"counts": func(s *taxonv1.JobSpec) {
					s.Data.Instances, s.Data.Features, s.Data.Nonzeros = 1<<32-1, 1<<31-1, 1<<63
				},
				"many features":     func(s *taxonv1.JobSpec) { s.Data.Features = 1<<31 - 1 },
				"many instances":    func(s *taxonv1.JobSpec) { s.Data.Instances = 1<<32 - 1 },
				"label counts":      func(s *taxonv1.JobSpec) { s.Data.LabelInstances[0] = 1<<32 - 1 },
				"fewer counts":      func(s *taxonv1.JobSpec) { s.Data.LabelInstances = s.Data.LabelInstances[1:] },
				"no feature counts": func(s *taxonv1.JobSpec) { s.Data.FeatureCountsLog = nil },
				"falling counts":    func(s *taxonv1.JobSpec) { s.Data.FeatureCountsLog = []uint32{1 << 31, 5, 1<<32 - 1, 0} },
				"wild edges": func(s *taxonv1.JobSpec) {
					s.Structure = &taxonv1.Structure{Names: []string{"a"}, Parents: []uint32{1<<32 - 1}, Children: []uint32{7}}
				},
				"half edges": func(s *taxonv1.JobSpec) {
					s.Structure = &taxonv1.Structure{Names: []string{"a", "b"}, Parents: []uint32{0}}
				},
				"no data":    func(s *taxonv1.JobSpec) { s.Data = nil },
				"no options": func(s *taxonv1.JobSpec) { s.Options = nil },
				"options": func(s *taxonv1.JobSpec) {
					s.Options.Set("max_sweeps", 1<<32-1)
					s.Options.Set("inner_epochs", 1<<32-1)
					s.Options.Set("eval_every", 1<<32-1)
					s.Options.Set("checkpoint_sweeps", 1<<32-1)
				},
			} {
				spec := specOf(t, name)
				harm(spec)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				m := New(Limits{})
				m.Step(0, Submit{ID: "j", Spec: spec})
				if m.find("j") != nil {
					m.Step(0, Register{Name: "w", Slots: 1})
					work(m, "j", 3, func(bool) float64 { return 1 })
				}
				runtime.ReadMemStats(&after)
				if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
					t.Errorf("%s: %d MiB were allocated, taken %t", what, took>>20, m.find("j") != nil)
				}
			}
		})
	}
}
