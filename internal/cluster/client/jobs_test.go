package client

import (
	"strings"
	"testing"

	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// A job whose weights are being digested is shown as running, and has weights to lose.
func TestHasWeights(t *testing.T) {
	kept := &taxonv1.Kept{UntilUnixMs: 1, Jobs: 1}
	for _, c := range []struct {
		st   *taxonv1.JobStatus
		want bool
	}{
		{&taxonv1.JobStatus{State: taxonv1.JobState_JOB_STATE_DONE, Kept: kept, FinalStep: 3}, true},
		{&taxonv1.JobStatus{State: taxonv1.JobState_JOB_STATE_RUNNING, Phase: machine.PhaseDigest, FinalStep: 3}, true},
		{&taxonv1.JobStatus{State: taxonv1.JobState_JOB_STATE_RUNNING}, false},
		{&taxonv1.JobStatus{State: taxonv1.JobState_JOB_STATE_CANCELLED, Kept: kept}, false},
		{&taxonv1.JobStatus{State: taxonv1.JobState_JOB_STATE_DONE, Kept: &taxonv1.Kept{Dropped: true}, FinalStep: 3}, false},
	} {
		if got := hasWeights(c.st); got != c.want {
			t.Errorf("%v: %v", c.st, got)
		}
	}
}

// line keeps what a progress line was told last.
type line struct{ extra []string }

func (l *line) Set(_ int64, extra ...string) { l.extra = extra }
func (*line) Total(int64)                    {}
func (*line) Resume(int64)                   {}
func (*line) Done()                          {}

func TestProgressReads(t *testing.T) {
	var l line
	showProgress(&l, &taxonv1.JobStatus{Job: "j1", EtaSeconds: 37962, EtaLowSeconds: 30000, EtaHighSeconds: 41000,
		Certificate: &taxonv1.Certificate{Gap: 1234}})
	if got := strings.Join(l.extra, "|"); !strings.Contains(got, "gap 1,234 of ") || !strings.HasSuffix(got,
		"ETA 8 to 12 h") {
		t.Errorf("%q", got)
	}
}
