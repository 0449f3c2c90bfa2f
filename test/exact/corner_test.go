package exact

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestCorner uses separable rows in the features' own scale, not of unit length. All support
// vectors lie at the hinge's corner, where float32's rounding of w costs C each at first order,
// while P decreases with the square of the scale. Half of these trainings once ended above the gap,
// the last one at 0.96.
func TestCorner(t *testing.T) {
	for _, c := range []struct {
		rows, columns int
		scale         float64
		c             string
	}{
		{12, 20, 1, "100"}, {20, 40, 1, "100"}, {30, 60, 1, "100"}, {30, 100, 1, "100"},
		{20, 40, 10, "1"}, {20, 40, 10, "100"}, {20, 40, 100, "1"}, {20, 40, 1000, "100"},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%dx%d scale=%g C=%s seed=%d", c.rows, c.columns, c.scale, c.c, seed), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				write(t, filepath.Join(dir, "d"), separable(c.rows, c.columns, c.scale, seed))
				write(t, filepath.Join(dir, "h"), "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n")
				reachesGap(t, "--data", filepath.Join(dir, "d"), "--hierarchy", filepath.Join(dir, "h"),
					"--out", filepath.Join(dir, "m"), "--C", c.c, "--gap", "1e-5")
			})
		}
	}
}

// separable returns normally distributed rows of six classes, fewer than there are columns.
func separable(rows, columns int, scale float64, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "c%d", i%6)
		for j := range columns {
			fmt.Fprintf(&b, " %d:%.6g", j+1, scale*rng.NormFloat64())
		}
		b.WriteByte('\n')
	}
	return b.String()
}
