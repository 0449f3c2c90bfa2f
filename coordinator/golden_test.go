package coordinator

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

var writeGolden = flag.String("golden", "", "write the journal of this program's version under testdata/NAME")

// story is a life of a coordinator that makes a record of every kind: jobs that run, wait,
// failed, were cancelled and are done, workers that vanish, leave and err.
type story struct {
	t       *testing.T
	m       *Machine
	now     Tick
	persist func(Record)
}

func (s *story) do(e Event) (lease *taxonv1.Lease) {
	s.now += 10 * millisecond
	for _, a := range s.m.Step(s.now, e) {
		switch a := a.(type) {
		case Persist:
			s.persist(a.Record)
		case Grant:
			lease = a.Lease
		case Refused:
			s.t.Fatalf("%T: %v", e, a.Err)
		}
	}
	return lease
}

// work does n tasks, or all until nothing waits if n is negative; it returns how many.
func (s *story) work(worker string, n int) int {
	for done := 0; ; done++ {
		if done == n {
			return done
		}
		l := s.do(Ask{Worker: worker})
		if l == nil {
			return done
		}
		eps := 1 / float64(uint64(1)<<min(l.Sweep, 60))
		s.do(Report{Worker: worker, Lease: leaseID(Grant{Lease: l}), CPUSeconds: 0.25,
			Sums: Sums{Primal: 1 + eps, Dual: 1 - eps, Restart: -1, Visits: 3}})
	}
}

// fail ends an attempt badly.
func (s *story) fail(worker, text string, deterministic bool) {
	l := s.do(Ask{Worker: worker})
	s.do(Report{Worker: worker, Lease: leaseID(Grant{Lease: l}), Error: text, Deterministic: deterministic})
}

func goldenSpec(terminals int, schedule string, maxSweeps uint32) *taxonv1.JobSpec {
	spec := wordnetLike(terminals, max(terminals/4, 2))
	spec.Options.Schedule, spec.Options.MaxSweeps = schedule, maxSweeps
	return spec
}

// tell plays the story; half is called in its middle.
func (s *story) tell(half func()) {
	s.do(Submit{ID: "done", Spec: goldenSpec(20, "twoblock", 2)})
	s.do(Register{Name: "host-a", Slots: 2})
	s.do(Register{Name: "host-b", Slots: 1})
	s.work("w1", -1)
	s.do(Submit{ID: "broken", Spec: goldenSpec(6, "parity", 0)})
	s.fail("w2", "a passing error", false)
	s.now += second
	s.fail("w2", "shard is damaged", true)
	s.do(Submit{ID: "cancelled", Spec: goldenSpec(6, "twoblock", 0)})
	s.work("w1", 7)
	s.do(Cancel{Job: "cancelled"})
	s.do(Submit{ID: "runs", Spec: goldenSpec(40, "twoblock", 0)})
	s.work("w1", 9)
	s.do(Ask{Worker: "w2"})
	half()
	s.do(Submit{ID: "runs too", Spec: goldenSpec(18, "jacobi", 0)})
	s.work("w1", 12)
	s.do(Leave{Worker: "w2"})
	s.do(Register{Name: "host-c", Slots: 4})
	s.do(Ask{Worker: "w3"})
	s.now += 11 * second
	s.do(Renew{Worker: "w1"})
	s.do(Time{}) // w3 is silent
	s.work("w1", 3)
	s.do(Ask{Worker: "w1"})
}

// summary says what a machine knows of its jobs.
func summary(m *Machine) string {
	var out strings.Builder
	for _, j := range m.jobs {
		st, err := m.Status(j.ID, m.now, 0)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "%s: %s phase %s sweep %d step %d of %d tasks, done %d running %d waiting %d retried %d lost %d gap %.6g cpu %.2f keeps %v error %q stopped by %q final %d %v\n",
			st.Job, strings.TrimPrefix(st.State.String(), "JOB_STATE_"), st.Phase, st.Sweep, j.StepNo,
			st.Tasks.Done+st.Tasks.Running+st.Tasks.Waiting, st.Tasks.Done, st.Tasks.Running, st.Tasks.Waiting, st.Tasks.Retried,
			st.WorkersLost, st.Certificate.GetGap(), st.CpuSeconds, j.keepSteps(), st.Error, st.StoppedBy, st.FinalStep, st.FinalAttempts)
	}
	fmt.Fprintf(&out, "%d workers, %d leases, last epoch %d\n", len(m.workers), len(m.leases), m.lastEpoch)
	return out.String()
}

// rebuilt is the machine of a journal's bytes.
func rebuilt(data []byte) (*Machine, error) {
	snapshot, records, _, err := readJournal(data)
	if err != nil {
		return nil, err
	}
	m := NewMachine(Limits{})
	if snapshot != nil {
		if err := m.Restore(snapshot); err != nil {
			return nil, err
		}
	}
	for _, data := range records {
		var r Record
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, err
		}
		if err := m.Replay(r); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// TestGoldenJournals reads the journals of every version so far: each gives the machine
// that wrote it, and its running jobs can be worked to their end.
func TestGoldenJournals(t *testing.T) {
	if *writeGolden != "" {
		writeGoldenJournal(t, filepath.Join("testdata", *writeGolden))
	}
	files, err := filepath.Glob("testdata/journal-*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden journals: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(file, ".bin") + ".summary")
		if err != nil {
			t.Fatal(err)
		}
		m, err := rebuilt(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got := summary(m); got != string(want) {
			t.Errorf("%s: rebuilt\n%s\nwas\n%s", file, got, want)
		}
		finishAll(t, file, m)
	}
}

// finishAll recovers a rebuilt machine and works its jobs to their end.
func finishAll(t *testing.T, what string, m *Machine) {
	t.Helper()
	now := m.now + 1000*second
	m.Recover(now)
	s := &story{t: t, m: m, now: now, persist: func(Record) {}}
	s.do(Register{Name: "late", Slots: 1})
	worker := m.workers[len(m.workers)-1].id
	s.now += 20 * second // what the others held is lost
	m.worker(worker).seen = s.now
	s.do(Time{})
	for s.work(worker, -1) > 0 {
		s.now += second
	}
	for _, j := range m.jobs {
		if !j.ended() {
			t.Errorf("%s: job %s is left %v", what, j.ID, j.State)
		}
	}
}

func writeGoldenJournal(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	j, _, _, err := OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, m: NewMachine(Limits{}), now: second}
	s.persist = func(r Record) {
		data, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		j.Append(data)
	}
	s.tell(func() {
		if err := j.Compact(s.m.Snapshot()); err != nil {
			t.Fatal(err)
		}
	})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	for ext, content := range map[string][]byte{".bin": data, ".summary": []byte(summary(s.m))} {
		if err := os.WriteFile(path+ext, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
