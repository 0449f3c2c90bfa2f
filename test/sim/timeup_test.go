package sim

import (
	"strings"
	"testing"
)

// TestTimeUp checks that jobs whose time is up at any moment, with any other faults, end with a
// certificate and weights, and that the journal gives the same machine: tasks that no worker had
// begun at that moment are decided on once. Whether the time was up depends on the faults, so no
// bytes are compared.
func TestTimeUp(t *testing.T) {
	capped, remade := 0, uint32(0)
	from, to := seeds(t, 60)
	run := func(seed uint64) Outcome {
		specs, _ := jobsOf(seed)
		for i, s := range specs {
			s.Options.Set("gap", 1e-9)
			s.Options.Set("max_seconds", 0.05+0.21*float64(seed%29)+float64(i))
		}
		return Run(seed, Options{Faults: Draw(seed), Jobs: specs, Workers: 2 + int(seed%3), Shards: 1 + int(seed/2%3),
			Replicas: 1 + replicas(seed)})
	}
	inParallel(from, to, run, func(seed uint64, out Outcome) bool {
		if len(out.Broken) > 0 {
			t.Errorf("seed %d: %s\nwhat happened last:\n%s", seed, strings.Join(out.Broken, "\n"), strings.Join(out.History,
				"\n"))
			return false
		}
		for i, reason := range out.StoppedBy {
			if reason == "max_time" {
				capped++
			}
			if len(out.Weights[i]) == 0 || !(out.Objectives[i] > 0) {
				t.Errorf("seed %d: job %d stopped by %s with %d weights and objective %g", seed, i, reason, len(out.Weights[i]),
					out.Objectives[i])
			}
		}
		remade += out.Remade
		return true
	})
	if !t.Failed() && to-from >= 60 && (capped < 40 || remade == 0) {
		t.Errorf("%d jobs were out of time, %d values were made again: the test shows nothing", capped, remade)
	}
}
