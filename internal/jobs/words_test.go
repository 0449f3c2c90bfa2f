package jobs

import (
	"strings"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

// A job that failed names the classes that it failed at.
func TestFailedAt(t *testing.T) {
	f := &taxonv1.FailedTask{Sweep: 3, Step: 7, Task: 2, Attempt: 1, Worker: "w\n", Phase: "map", Nodes: []string{"dog", "cat"}}
	if got := FailedAt(f); !strings.Contains(got, "sweep 3 (map), step 7, task 2") || !strings.HasSuffix(got, "classes dog, cat") || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	f.Nodes, f.Range = nil, 5
	if got := FailedAt(f); !strings.HasSuffix(got, "feature range 5") {
		t.Errorf("%q", got)
	}
}

func TestStatusLineReads(t *testing.T) {
	st := &taxonv1.JobStatus{Job: "j1", EtaSeconds: 37962, Certificate: &taxonv1.Certificate{Gap: 1234}}
	if got := StatusLine(st); !strings.HasSuffix(got, "  gap 1,234  ETA 10 h 32 m") {
		t.Errorf("got %q", got)
	}
	st.EtaSeconds = 241795777815
	if got := StatusLine(st); strings.Contains(got, "ETA") {
		t.Errorf("got %q", got)
	}
}
