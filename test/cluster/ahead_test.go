package cluster

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/coordinator/journal"
)

// digesting is a cluster with a job whose weights are complete but cannot be digested until the
// test allows it, because the folder in which weights are sorted is a file. A `submit --wait --out`
// waits for the digest.
type digesting struct {
	*Cluster
	job, out, blocks string
	submit           *exec.Cmd
	stdout, stderr   bytes.Buffer
}

// digest starts such a cluster and waits until the submitter has read all weights.
func digest(t *testing.T, gap string, flags ...string) *digesting {
	t.Helper()
	s := &digesting{Cluster: bench.Up(t, 2, 2), job: "j", out: filepath.Join(t.TempDir(), "model")}
	s.blocks = filepath.Join(s.Dir, "coordinator", "spool")
	if err := os.WriteFile(s.blocks, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"submit", "--wait", "--json", "--id", s.job, "--out", s.out}, bench.Job(gap)...)
	s.submit = exec.Command(bench.Bin, append(args, flags...)...)
	s.submit.Env = append(os.Environ(), s.env)
	s.submit.Stdout, s.submit.Stderr = &s.stdout, &s.stderr
	if err := s.submit.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.submit.Process.Kill() })
	s.until(t, func() bool { // all weights are read before the first is written
		_, err := os.Stat(filepath.Join(s.out+".part", "weights-00000.bin"))
		return err == nil
	})
	st := s.Status(t, s.job)
	for ; st.WaitsFor == "" && st.Phase == "digest"; st = s.Status(t, s.job) {
		time.Sleep(10 * time.Millisecond)
	}
	if st.State != "waiting" || st.Phase != "digest" || !strings.Contains(st.WaitsFor, "digest of its weights") {
		t.Errorf("weights are fetched of a job that is %+v", st)
	}
	if _, err := os.Stat(s.out); err == nil {
		t.Error("the model is there before the digest")
	}
	return s
}

// until waits until a condition holds.
func (s *digesting) until(t *testing.T, there func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !there(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come\n%s", s.Try(t, "logs", s.job).Stdout)
		}
	}
}

// release lets the coordinator digest the weights.
func (s *digesting) release(t *testing.T) {
	t.Helper()
	if err := os.Remove(s.blocks); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end of submit.
func (s *digesting) ended(t *testing.T) Result {
	t.Helper()
	late := time.AfterFunc(deadline, func() { _ = s.submit.Process.Kill() })
	defer late.Stop()
	_ = s.submit.Wait() // the exit status has the result
	return Result{s.submit.ProcessState.ExitCode(), s.stdout.String(), s.stderr.String()}
}

// empty checks that no file is left at the model's place.
func (s *digesting) empty(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Dir(s.out)); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// exported checks that the model of submit equals that of export, byte for byte.
func (s *digesting) exported(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "exported")
	s.Taxon(t, "export", "--job", s.job, "--format", "model", "--out", dir)
	sameFiles(t, s.out, dir, nil)
	if left, err := os.ReadDir(filepath.Dir(s.out)); err != nil || len(left) != 1 {
		t.Errorf("%v is left beside the model, %v", left, err)
	}
}

// sameFiles compares two models after plain has removed the differences that are allowed.
func sameFiles(t *testing.T, got, want string, plain func(t *testing.T, name string, data []byte) []byte) {
	t.Helper()
	a, err := os.ReadDir(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadDir(want)
	if err != nil || len(a) != len(b) || len(a) < 6 {
		t.Fatalf("%v where %v belong, %v", a, b, err)
	}
	read := func(dir, name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if plain != nil {
			data = plain(t, name, data)
		}
		return data
	}
	for _, e := range b {
		if x, y := read(got, e.Name()), read(want, e.Name()); !bytes.Equal(x, y) {
			t.Errorf("%s:\n%.600s\nis not\n%.600s", e.Name(), x, y)
		}
	}
}

// timeless removes the parts of a model's files that differ between any two trainings.
func timeless(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	switch name {
	case "trace.jsonl":
		var out []byte
		for line := range bytes.Lines(data) {
			out = append(out, stripped(t, line)...)
		}
		return out
	case "manifest.json":
		return stripped(t, data)
	}
	return data
}

// stripped returns a JSON document without times, and without the checksums of files that contain
// them.
func stripped(t *testing.T, data []byte) []byte {
	t.Helper()
	var doc any
	Decode(t, string(data), &doc)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, key := range []string{"seconds", "cpu_seconds", "peak_rss_bytes", "checksum"} {
				delete(v, key)
			}
			if v["name"] == "trace.jsonl" {
				delete(v, "sha256")
				delete(v, "bytes")
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc)
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// TestModelBesideDigest checks that the model that submit gathers while the weights are digested
// equals that of train, even if the coordinator is killed in the meantime.
func TestModelBesideDigest(t *testing.T) {
	t.Parallel()
	const gap = "1e-2"
	trained := filepath.Join(t.TempDir(), "trained")
	bench.Must(t, "", append([]string{"train", "--out", trained}, bench.Job(gap)...)...)
	for _, killed := range []bool{false, true} {
		s := digest(t, gap)
		if killed {
			before := s.Process(t, "coordinator")
			before.Signal(syscall.SIGKILL)
			s.until(t, func() bool { return s.Process(t, "coordinator").Restarts > before.Restarts })
			if st := s.Status(t, s.job); st.State != "running" && st.State != "waiting" || st.Phase != "digest" {
				t.Errorf("another life's job is %+v", st)
			}
		}
		s.release(t)
		if r := s.ended(t); r.Code != 0 {
			t.Fatalf("killed %v: %+v", killed, r)
		}
		sameFiles(t, s.out, trained, timeless)
		s.exported(t)
	}
}

// TestInterruptedBesideDigest checks that an interrupted submit leaves no files, and that the job
// continues.
func TestInterruptedBesideDigest(t *testing.T) {
	t.Parallel()
	s := digest(t, "1e-1")
	if err := s.submit.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := s.ended(t); r.Code != 130 || !strings.Contains(r.Stderr, "job j goes on") {
		t.Errorf("interrupted: %+v", r)
	}
	s.empty(t)
	s.release(t)
	if st := s.Await(t, s.job, nil); st.State != "done" {
		t.Errorf("the job is %+v", st)
	}
}

// TestAwayBesideDigest checks that a submit that gives up waiting for an unreachable coordinator
// says that the job continues, and that it does.
func TestAwayBesideDigest(t *testing.T) {
	t.Parallel()
	s := digest(t, "1e-1", "--patience", "1s")
	s.Down(t)
	if r := s.ended(t); r.Code != 1 || !strings.Contains(r.Stderr, "does not answer") || !strings.Contains(r.Stderr,
		"job j goes on with the coordinator") {
		t.Errorf("away: %+v", r)
	}
	s.empty(t)
	s.release(t)
	s.Must(t, "", "cluster", "up", "--dir", s.Dir)
	s.env = "TAXON_COORDINATOR=" + s.State(t).Coordinator
	if st := s.Await(t, s.job, nil); st.State != "done" {
		t.Errorf("the job is %+v", st)
	}
}

// TestLostBesideDigest checks that weights that are lost before they are digested do not become a
// model, although submit has them.
func TestLostBesideDigest(t *testing.T) {
	t.Parallel()
	s := digest(t, "1e-1")
	for _, id := range []string{"store-0", "store-1"} {
		p := s.Process(t, id)
		p.Signal(syscall.SIGSTOP)
		if err := os.RemoveAll(filepath.Join(s.Dir, id, "values")); err != nil {
			t.Fatal(err)
		}
		p.Signal(syscall.SIGKILL)
	}
	s.release(t)
	if r := s.ended(t); r.Code != 1 || !strings.Contains(r.Stderr, "its weights are lost") {
		t.Errorf("lost: %+v", r)
	}
	s.empty(t)
}

// TestResumedBesideDigest checks that submit returns the last weights of a job that was finished,
// resumed and finished again before submit noticed.
func TestResumedBesideDigest(t *testing.T) {
	t.Parallel()
	s := digest(t, "1e-3", "--max-sweeps", "5")
	if err := s.submit.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.release(t)
	first := s.Await(t, s.job, nil)
	s.Taxon(t, "resume", s.job, "--max-sweeps", "0")
	last := s.Await(t, s.job, nil)
	if first.State != "done" || last.State != "done" || first.Report.SHA == last.Report.SHA {
		t.Fatalf("resumed: %+v, before %+v", last, first)
	}
	if err := s.submit.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if r := s.ended(t); r.Code != 0 {
		t.Fatalf("submit: %+v", r)
	}
	s.exported(t)
}

// TestOtherDigestBesideDigest checks that a digest that does not match the received weights is an
// error, and that no model is written.
func TestOtherDigestBesideDigest(t *testing.T) {
	t.Parallel()
	s := digest(t, "1e-1")
	if err := s.submit.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.release(t)
	sum := s.Await(t, s.job, nil).Report.SHA
	before := s.Process(t, "coordinator")
	before.Signal(syscall.SIGSTOP) // otherwise it would be restarted too early
	s.inJournal(t, sum[:12], "0123456789ab")
	before.Signal(syscall.SIGKILL)
	s.until(t, func() bool { return s.Process(t, "coordinator").Restarts > before.Restarts })
	if err := s.submit.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if r := s.ended(t); r.Code != 1 || !strings.Contains(r.Stderr, "have digest "+sum[:12]) || !strings.Contains(r.Stderr,
		"says 0123456789ab") {
		t.Errorf("another digest: %+v", r)
	}
	s.empty(t)
}

// inJournal replaces a text in the records of the coordinator's journal.
func (s *digesting) inJournal(t *testing.T, old, text string) {
	t.Helper()
	path := filepath.Join(s.Dir, "coordinator", "journal")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, records, _, err := journal.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	out, found := journal.Encode(snapshot), false
	for _, r := range records {
		found = found || bytes.Contains(r, []byte(old))
		out = journal.Append(out, bytes.ReplaceAll(r, []byte(old), []byte(text)))
	}
	if !found {
		t.Fatalf("no record says %s", old)
	}
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
}
