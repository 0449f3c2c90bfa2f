package coordinator_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

// simulation drives a Machine with virtual workers and virtual time. Everything random
// comes from one seed, which failures print.
type simulation struct {
	t       *testing.T
	rng     *rand.Rand
	limits  machine.Limits
	machine *machine.Machine
	store   *toyStore
	journal memoryJournal
	now     machine.Tick
	workers []string
	// attempts under way, some of workers that were declared gone
	running  []attempt
	held     []attempt // reports that were sent and may be sent again
	crashes  int
	restarts int
}

type attempt struct {
	worker string
	lease  *taxonv1.Lease
}

const ms = machine.Tick(1e6)

// step gives the machine an event and carries out what the shell would.
func (s *simulation) step(e machine.Event) (grants []*taxonv1.Lease, worker string) {
	grants, worker = s.dispatch(s.machine.Step(s.now, e))
	if s.rng.IntN(200) == 0 {
		_ = s.journal.Compact(func(cut func()) []byte { cut(); return s.machine.Snapshot() })
	}
	return grants, worker
}

func (s *simulation) dispatch(actions []machine.Action) (grants []*taxonv1.Lease, worker string) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Persist:
			data, err := json.Marshal(&a.Record)
			if err != nil {
				s.t.Fatal(err)
			}
			s.journal.Append(data)
		case machine.Grant:
			grants = append(grants, a.Lease)
		case machine.Registered:
			worker = a.Worker
		case machine.CommitStep:
			_ = s.store.Commit(s.t.Context(), a.Job, a.Step, a.Attempts)
		case machine.DropSteps:
			_ = s.store.Drop(s.t.Context(), a.Job, a.Keep, a.Before)
		}
	}
	return grants, worker
}

// restart kills the coordinator and rebuilds it from the journal.
func (s *simulation) restart() {
	s.restarts++
	m := machine.New(s.limits)
	snapshot, records := s.journal.Contents()
	if snapshot != nil {
		if err := m.LoadSnapshot(snapshot); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, data := range records {
		var r machine.Record
		if err := json.Unmarshal(data, &r); err != nil {
			s.t.Fatal(err)
		}
		if err := m.Replay(r); err != nil {
			s.t.Fatalf("replay: %v", err)
		}
	}
	s.machine = m
	s.dispatch(m.Recover(s.now))
}

// turn does one random thing; trouble in [0, 1) says how often it is an unkind one.
func (s *simulation) turn(trouble float64) {
	s.now += machine.Tick(s.rng.IntN(20)) * ms
	if s.rng.Float64() < trouble {
		s.harm()
		return
	}
	switch {
	case len(s.workers) == 0:
		_, w := s.step(machine.Register{Name: "sim", Slots: 1})
		s.workers = append(s.workers, w)
	case len(s.running) > 0 && s.rng.IntN(2) == 0:
		s.finish(s.rng.IntN(len(s.running)))
	case s.rng.IntN(4) == 0:
		s.renewAll()
	case s.rng.IntN(4) == 0:
		s.step(machine.Time{})
	case len(s.running) < 6:
		w := s.workers[s.rng.IntN(len(s.workers))]
		grants, _ := s.step(machine.RequestTask{Worker: w})
		for _, l := range grants {
			s.running = append(s.running, attempt{w, l})
		}
	}
}

func (s *simulation) renewAll() {
	for _, w := range s.workers {
		e := machine.Renew{Worker: w}
		for _, a := range s.running {
			if a.worker == w {
				e.Leases = append(e.Leases, machinetest.LeaseID(a.lease))
			}
		}
		s.step(e)
	}
}

// finish runs an attempt and reports it; attempts whose inputs are gone were fenced off
// long ago, and their reports must be refused too.
func (s *simulation) finish(i int) {
	a := s.running[i]
	s.running = slices.Delete(s.running, i, i+1)
	sums, err := s.store.run(a.lease)
	e := machine.Report{Worker: a.worker, Lease: machinetest.LeaseID(a.lease), CPUSeconds: s.rng.Float64()}
	if err != nil {
		e.Error = err.Error()
	} else {
		e.Sums = sums.GetValues()
	}
	grants, _ := s.step(e)
	for _, l := range grants {
		s.running = append(s.running, attempt{a.worker, l})
	}
	s.held = append(s.held, a)
}

// harm is what may go wrong.
func (s *simulation) harm() {
	switch s.rng.IntN(6) {
	case 0: // a worker joins
		_, w := s.step(machine.Register{Name: "sim", Slots: 2})
		s.workers = append(s.workers, w)
	case 1:
		// a worker is killed: it is not heard of again, but what it wrote stays
		if len(s.workers) > 0 {
			i := s.rng.IntN(len(s.workers))
			dead := s.workers[i]
			s.workers = slices.Delete(s.workers, i, i+1)
			s.running = slices.DeleteFunc(s.running, func(a attempt) bool { return a.worker == dead })
			s.crashes++
		}
	case 2: // nobody is heard for longer than a lease
		s.now += 2 * s.limits.Lease
		s.step(machine.Time{})
		s.workers = nil // their attempts go on and report too late
	case 3: // the coordinator is killed
		s.restart()
	case 4: // a report comes again
		if len(s.held) > 0 {
			a := s.held[s.rng.IntN(len(s.held))]
			s.step(machine.Report{Worker: a.worker, Lease: machinetest.LeaseID(a.lease),
				Sums: machinetest.Figures{Primal: 1e9}.Sums()})
		}
	case 5: // a task errs for a passing reason
		if len(s.running) > 0 {
			i := s.rng.IntN(len(s.running))
			a := s.running[i]
			s.running = slices.Delete(s.running, i, i+1)
			s.step(machine.Report{Worker: a.worker, Lease: machinetest.LeaseID(a.lease), Error: "store is away"})
		}
	}
}

// simulate runs jobs to their end and returns each one's weights and final status.
func simulate(t *testing.T, seed uint64, trouble float64,
	specs ...*taxonv1.JobSpec) (weights [][]uint64, ends []*taxonv1.JobStatus, s *simulation) {
	t.Helper()
	s = &simulation{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), store: newToyStore(), now: 1000 * ms,
		limits: machine.Limits{Lease: 1000 * ms, MaxErrors: 100, MaxLosses: 1000},
	}
	s.machine = machine.New(s.limits)
	for i, spec := range specs {
		s.step(machine.Submit{ID: fmt.Sprintf("j%d", i), Spec: spec})
	}
	for i := range specs {
		id := fmt.Sprintf("j%d", i)
		for turns := 0; ; turns++ {
			st, err := s.machine.Status(id, s.now, 0)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if st.State == taxonv1.JobState_JOB_STATE_DONE {
				w, err := s.store.weights(st)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				weights, ends = append(weights, w), append(ends, st)
				break
			}
			if st.State == taxonv1.JobState_JOB_STATE_FAILED || turns > 200_000 {
				t.Fatalf("seed %d: job %s after %d turns: %v %s", seed, id, turns, st.State, st.Error)
			}
			s.turn(trouble)
		}
	}
	return weights, ends, s
}

// Any process may be killed at any instant, any message delayed or doubled: the weights
// and the certificates are those of the undisturbed run (architecture.md 3).
func TestFaultsDoNotShow(t *testing.T) {
	for _, schedule := range schedules {
		t.Run(schedule, func(t *testing.T) {
			want, calm, _ := simulate(t, 0, 0, machinetest.Spec(schedule, 0))
			harmed := 0
			for seed := range uint64(6) {
				got, end, s := simulate(t, seed, 0.1, machinetest.Spec(schedule, 0))
				if !slices.Equal(got[0], want[0]) {
					t.Fatalf("seed %d: other weights", seed)
				}
				if end[0].Certificate.Objective != calm[0].Certificate.Objective || end[0].Sweep != calm[0].Sweep {
					t.Fatalf("seed %d: other certificate", seed)
				}
				harmed += s.crashes + s.restarts
			}
			if harmed == 0 {
				t.Error("the simulation did no harm: it shows nothing")
			}
		})
	}
}

// Several jobs at once do not see each other.
func TestJobsDoNotMix(t *testing.T) {
	var alone [][]uint64
	for _, schedule := range schedules {
		w, _, _ := simulate(t, 0, 0, machinetest.Spec(schedule, 0))
		alone = append(alone, w[0])
	}
	var specs []*taxonv1.JobSpec
	for _, schedule := range schedules {
		specs = append(specs, machinetest.Spec(schedule, 0))
	}
	for seed := range uint64(4) {
		got, _, _ := simulate(t, seed, 0.05, specs...)
		for i := range got {
			if !slices.Equal(got[i], alone[i]) {
				t.Errorf("seed %d: %s: other weights than alone", seed, schedules[i])
			}
		}
	}
}
