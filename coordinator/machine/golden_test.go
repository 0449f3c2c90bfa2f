package machine

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/coordinator/journal"
	"taxon/coordinator/method/methodtest"
	"taxon/internal/fs/vfs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

var writeGolden = flag.String("golden", "", "write a journal of this program under testdata/NAME")

// goldenLimits are those of the machines that wrote the journals.
var goldenLimits = Limits{KeepInputs: true}

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
		l := s.do(RequestTask{Worker: worker})
		if l == nil {
			return done
		}
		eps := 1 / float64(uint64(1)<<min(l.Sweep, 60))
		s.do(Report{Worker: worker, Lease: machinetest.LeaseID(l), CPUSeconds: 0.25,
			Sums: machinetest.Figures{Primal: 1 + eps, Dual: 1 - eps, Restart: -1, Visits: 3}.Sums()})
	}
}

// fail ends an attempt badly.
func (s *story) fail(worker, text string, deterministic bool) {
	l := s.do(RequestTask{Worker: worker})
	s.do(Report{Worker: worker, Lease: machinetest.LeaseID(l), Error: text, Deterministic: deterministic})
}

func goldenSpec(terminals int, schedule string, maxSweeps uint32) *taxonv1.JobSpec {
	spec := methodtest.WordNetLike(terminals, max(terminals/4, 2))
	spec.Options.Set("schedule", schedule)
	spec.Options.Set("max_sweeps", maxSweeps)
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
	s.do(RequestTask{Worker: "w2"})
	half()
	s.do(Submit{ID: "runs too", Spec: goldenSpec(18, "jacobi", 0)})
	s.work("w1", 12)
	s.do(Leave{Worker: "w2"})
	s.do(Register{Name: "host-c", Slots: 4})
	s.do(RequestTask{Worker: "w3"})
	s.now += 11 * second
	s.do(Renew{Worker: "w1"})
	s.do(Time{}) // w3 is silent
	s.work("w1", 3)
	s.do(RequestTask{Worker: "w1"})
}

// resumeClock plays the rest: shards, drains, lost values, rollbacks, jobs resumed and
// discarded.
func (s *story) resumeClock() {
	s.do(JoinShard{ID: "shard-1", Addr: "host-s:7000"})
	s.do(JoinShard{ID: "shard-2", Addr: "host-s:7001"})
	s.do(LeaveShard{ID: "shard-2"})
	s.do(JoinShard{ID: "shard-2", Addr: "host-t:7001"})
	s.do(Submit{ID: "kept", Name: "on shards", Spec: goldenSpec(10, "twoblock", 0), Replicas: 2})
	s.do(Register{Name: "host-d", Slots: 2, Memory: 1 << 40})
	s.do(Register{Name: "host-e", Slots: 1})
	s.do(Drain{Worker: "host-e"})
	s.do(Cancel{Job: "runs"})
	s.do(Cancel{Job: "runs too"})
	s.do(Resume{Job: "cancelled"})
	s.do(Cancel{Job: "broken", Discard: true})
	for s.m.find("kept").Committed < 2 {
		s.work("w4", 1)
	}
	s.lose("w4", "kept", 0)
	for s.m.find("kept").Recomputed == 0 {
		s.work("w4", 1)
	}
	s.lose("w4", "kept", 9)
	s.do(Loaded{Job: "kept"})
	for s.m.find("kept").step.done == 0 {
		s.work("w4", 1)
	}
	s.lose("w4", "cancelled", 0)
	for s.m.find("cancelled").recomputes[0].Epoch == 0 {
		s.do(RequestTask{Worker: "w4"}) // until it is being made again
	}
	s.do(LeaveShard{ID: "shard-1"})
	s.do(ForgetShard{ID: "shard-1", Force: true})
}

// lose reports that a value is missing which a task of the job reads: of the last step of
// the internals, by the given attempt beyond the one that counts.
func (s *story) lose(worker, job string, beyond uint32) {
	for {
		l := s.do(RequestTask{Worker: worker})
		e := Report{Worker: worker, Lease: machinetest.LeaseID(l)}
		if l.Job == job {
			p := s.m.find(job).Values["x"][0][0]
			p.Attempt += beyond
			e.Error, e.Lost = "the store has lost it", []taxonv1.Place{p}
			s.do(e)
			return
		}
		e.Returned = true
		s.do(e)
	}
}

// summary says what a machine knows of its jobs.
func summary(m *Machine) string {
	var out strings.Builder
	for _, j := range m.jobs {
		st, err := m.Status(j.ID, m.now, 0)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "%s: %s phase %s sweep %d step %d of %d tasks, done %d running %d waiting %d retried %d lost %d "+
			"gap %.6g cpu %.2f keeps %v error %q stopped by %q final %d %v\n",
			st.Job, strings.TrimPrefix(st.State.String(), "JOB_STATE_"), st.Phase, st.Sweep, j.StepNo,
			st.Tasks.Done+st.Tasks.Running+st.Tasks.Waiting, st.Tasks.Done, st.Tasks.Running, st.Tasks.Waiting, st.Tasks.Retried,
			st.WorkersLost, st.Certificate.GetGap(), st.CpuSeconds, j.keepSteps(), st.Error, st.StoppedBy, st.FinalStep,
			st.FinalAttempts)
	}
	for _, j := range m.jobs {
		if j.Name != "" || len(j.Shards) > 0 || j.Dropped || j.stage == stageRollBack || j.Rollbacks+j.Recomputed > 0 ||
			len(j.recomputes) > 0 {
			fmt.Fprintf(&out, "%s: name %q on %v x %d dropped %v rolling %v rollbacks %d remade %d being made again %v\n",
				j.ID, j.Name, j.Shards, j.Replicas, j.Dropped, j.stage == stageRollBack, j.Rollbacks, j.Recomputed, j.recomputes)
		}
	}
	for _, s := range m.shards {
		fmt.Fprintf(&out, "shard %s at %s\n", s.id, s.addr)
	}
	for _, j := range m.jobs {
		if j.Discarded {
			fmt.Fprintf(&out, "%s: discarded by a user\n", j.ID)
		}
	}
	for _, w := range m.workers {
		if w.draining || w.memory > 0 {
			fmt.Fprintf(&out, "worker %s %s draining %v memory %d\n", w.id, w.name, w.draining, w.memory)
		}
	}
	fmt.Fprintf(&out, "%d workers, %d leases, last epoch %d\n", len(m.workers), len(m.leases), m.lastEpoch)
	return out.String()
}

// rebuilt is the machine of a journal's bytes.
func rebuilt(data []byte, limits Limits) (*Machine, error) {
	snapshot, records, _, err := journal.Decode(data)
	if err != nil {
		return nil, err
	}
	m := New(limits)
	if snapshot != nil {
		if err := m.LoadSnapshot(snapshot); err != nil {
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

// TestGoldenJournals reads the golden journals: each gives the machine that wrote it, and its
// running jobs can be worked to their end.
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
		m, err := rebuilt(data, goldenLimits)
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
	m.worker(worker).contact.at = s.now
	for _, shard := range m.shards { // jobs wait for those that are away
		s.do(JoinShard{ID: shard.id, Addr: shard.addr})
	}
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
	j, _, _, err := journal.Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, m: New(goldenLimits), now: second}
	s.persist = func(r Record) {
		data, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		j.Append(data)
	}
	s.tell(func() {
		if err := j.Compact(func(cut func()) []byte { cut(); return s.m.Snapshot() }); err != nil {
			t.Fatal(err)
		}
	})
	s.resumeClock()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	for ext, content := range map[string][]byte{".bin": data, ".summary": []byte(summary(s.m))} {
		if err := os.WriteFile(path+ext, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Each prefix of a journal, to the byte, gives the machine of the records that are whole
// in it; with any bit flipped it is refused.
func TestJournalOfAMachineCutOrFlipped(t *testing.T) {
	var file []byte
	var after []string // what the machine knew, by records
	s := &story{t: t, m: New(goldenLimits), now: second}
	file = journal.Encode(nil)
	var ends []int
	s.persist = func(r Record) {
		data, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		file = journal.Append(file, data)
		ends = append(ends, len(file))
		m, err := rebuilt(file, goldenLimits)
		if err != nil {
			t.Fatal(err)
		}
		after = append(after, summary(m))
	}
	s.do(Submit{ID: "j", Spec: goldenSpec(3, "twoblock", 1)})
	s.do(Register{Name: "host", Slots: 1})
	s.work("w1", 2)
	s.fail("w1", "a passing error", false)
	if got := summary(s.m); got != after[len(after)-1] {
		t.Fatalf("replayed\n%s\nwas\n%s", after[len(after)-1], got)
	}
	for cut := range len(file) + 1 {
		m, err := rebuilt(file[:cut], goldenLimits)
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", cut, err)
		}
		whole := 0
		for whole < len(ends) && ends[whole] <= cut {
			whole++
		}
		want := "0 workers, 0 leases, last epoch 0\n"
		if whole > 0 {
			want = after[whole-1]
		}
		if got := summary(m); got != want {
			t.Fatalf("cut to %d bytes:\n%s\nwant\n%s", cut, got, want)
		}
	}
	for bit := range 8 * len(file) {
		flipped := append([]byte(nil), file...)
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, _, _, err := journal.Decode(flipped); !errors.Is(err, journal.ErrDamaged) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
	}
}
