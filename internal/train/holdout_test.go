package train

import "testing"

// TestHoldOutCaps: what a hold-out costs, as a share of the training, by the sweeps that
// each makes and the rows it makes them over.
func TestHoldOutCaps(t *testing.T) {
	for trained := range 200 {
		for _, flat := range []bool{true, false} {
			sweeps, rows := caps(flat, trained)
			if rows <= 0 || rows > restShare || sweeps < 1 || sweeps > max(trained, 1) {
				t.Fatalf("flat %v, %d sweeps: %d sweeps over %v of the rows", flat, trained, sweeps, rows)
			}
			internals := 0.4 // of a sweep's cost, see holdOut
			if flat {
				internals = 0
			}
			share := float64(sweeps) / float64(max(trained, 1)) * (internals + (1-internals)*rows)
			if flat && share > 0.11 || !flat && trained >= 8 && share > 0.17 {
				t.Errorf("flat %v, %d sweeps: %d sweeps over %.2f of the rows are %.2f of the training", flat, trained, sweeps, rows, share)
			}
		}
	}
}
