package exact

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNoCircles solves tiny problems on long chains, found by random search, on which support-aware
// steps and partial working sets once cycled for ever. Every seed must reach the gap, and all of
// them the same optimum.
func TestNoCircles(t *testing.T) {
	for _, c := range []struct{ name, c, gap string }{
		{"circles", "10", "1e-2"}, {"circles", "10", "1e-5"}, {"brush", "1", "1e-2"},
		{"chain", "100", "1e-5"}, {"chain", "1000", "1e-5"},
	} {
		for _, seed := range []string{"0", "2", "3", "6", "9"} {
			t.Run(c.name+" C="+c.c+" gap="+c.gap+" seed="+seed, func(t *testing.T) {
				t.Parallel()
				reachesGap(t, "--data", filepath.Join("testdata", c.name+".svm"), "--hierarchy", filepath.Join("testdata", c.name+
					".txt"),
					"--out", filepath.Join(t.TempDir(), "m"), "--C", c.c, "--gap", c.gap, "--seed", seed)
			})
		}
	}
}

// TestOwnWords has 240 classes below the root, each with three instances of words that only two
// other classes share. So nearly all rows have the margin of a class's bias, and react together
// when the internals move. Steps by the support's curvature once cycled there, at a gap of 0.3.
func TestOwnWords(t *testing.T) {
	for _, loss := range []string{"hinge", "squared-hinge"} {
		t.Run(loss, func(t *testing.T) {
			t.Parallel()
			reachesGap(t, "--data", "testdata/own.svm", "--hierarchy", "testdata/own.txt", "--loss", loss,
				"--out", filepath.Join(t.TempDir(), "m"), "--gap", "1e-2", "--max-sweeps", "24")
		})
	}
}

// reachesGap trains with the options, and fails unless the training ends because it has reached the
// gap.
func reachesGap(t *testing.T, options ...string) {
	t.Helper()
	out, err := exec.Command(taxon, append([]string{"train", "--max-time", "60", "--json", "--quiet"},
		options...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if r.StoppedBy != "gap" {
		t.Errorf("stopped by %s at gap %.3g after %d sweeps", r.StoppedBy, r.Gap, r.Sweeps)
	}
}
