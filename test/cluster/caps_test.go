package cluster

import (
	"strings"
	"syscall"
	"testing"
)

// TestResumeWithOtherCaps checks that a job ended by a cap continues from where it was with a
// higher cap, even if its coordinator was killed in the meantime. With a cap that would end it as
// well, it stays finished.
func TestResumeWithOtherCaps(t *testing.T) {
	t.Parallel()
	c := bench.Up(t, 2, 2)
	job := c.Submit(t, "1e-2", "--max-sweeps", "5")
	first := c.Await(t, job, nil)
	if first.State != "done" || first.Sweep != 5 || first.Gap == nil || *first.Gap <= 1e-2 {
		t.Fatalf("capped: %+v", first)
	}
	for _, flags := range [][]string{nil, {"--max-sweeps", "4"}, {"--max-time", "1e6"}} {
		if r := c.Try(t, append([]string{"resume", job}, flags...)...); r.Code != 2 || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("resume %v: status %d, %s", flags, r.Code, r.Stderr)
		}
	}
	c.Taxon(t, "resume", job, "--max-sweeps", "0")
	c.Process(t, "coordinator").Signal(syscall.SIGKILL)
	last := c.Await(t, job, nil)
	if last.State != "done" || last.Sweep <= 5 || last.Gap == nil || *last.Gap > 1e-2 ||
		last.Report.SHA == first.Report.SHA {
		t.Errorf("gone on: %+v", last)
	}
	if n := strings.Count(c.Taxon(t, "logs", job).Stdout, " committed"); n != int(last.Sweep) {
		t.Errorf("%d sweeps were committed, the job has %d", n, last.Sweep)
	}
}
