package jobs

import (
	"maps"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

// TestWords: the words of the command line's documents, which scripts rely on.
func TestWords(t *testing.T) {
	states := map[taxonv1.JobState]string{0: "unknown", 1: "queued", 2: "running", 3: "done", 4: "failed", 5: "cancelled",
		99: "unknown"}
	got := map[taxonv1.JobState]string{}
	for s := range states {
		got[s] = StateName(s)
	}
	if !maps.Equal(got, states) {
		t.Errorf("jobs: %v", got)
	}
	members := map[taxonv1.MemberState]string{0: "unknown", 1: "up", 2: "draining", 3: "lost", 4: "down", 5: "left",
		99: "unknown"}
	have := map[taxonv1.MemberState]string{}
	for s := range members {
		have[s] = MemberState(s)
	}
	if !maps.Equal(have, members) {
		t.Errorf("members: %v", have)
	}
}
