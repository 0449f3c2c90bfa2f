package train

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/model"
)

// TestHoldOutWithoutAClass: a hold-out whose rest has no instance of a class, or none without it, leaves
// that class out where the method can't train it. Cut-offs and calibrations are of all classes.
func TestHoldOutWithoutAClass(t *testing.T) {
	o := noisy(t, "r a\nr b\na c0\na c1\na rare\nb c2\nb often\n")
	r := rand.New(rand.NewPCG(1, 2))
	var rows strings.Builder
	for i := range 60 {
		c := r.IntN(3)
		labels := fmt.Sprintf("c%d,c%d,often", c, (c+1)%3)
		if i == 7 {
			labels = "rare"
		}
		fmt.Fprintf(&rows, "%s %d:1 %d:%.3f\n", labels, 1+c, 10+r.IntN(4), r.Float64())
	}
	if err := os.WriteFile(o.Data[0], []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	o.Job = methodtest.Options("hblr-m3", "bias", 1, "prune", "empty")
	o.Cutoff, o.Calibrate = "fit", "temperature"
	for _, prune := range []string{"empty", "none"} {
		o.Job.Set("prune", prune)
		o.Force = true
		if _, err := Run(t.Context(), o, &heard{}); err != nil {
			t.Fatalf("prune %s: %v", prune, err)
		}
		m, err := model.Open(o.Out)
		if err != nil {
			t.Fatal(err)
		}
		if m.Terminals() != 5 || m.Cutoffs == nil || m.Calibration == nil || m.Calibration.HeldOut.Instances != 60 {
			t.Errorf("%d classes, %+v, %+v", m.Terminals(), m.Cutoffs, m.Calibration)
		}
		m.Close()
	}
}
