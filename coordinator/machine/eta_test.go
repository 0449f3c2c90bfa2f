package machine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readTrace reads the certificates of a training that was recorded, and the gap that ended it.
func readTrace(t *testing.T, file string) (points []point, target float64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var p point
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscanf(line, "target %g", &target); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(line, "%g %g %g", &p.sweep, &p.seconds, &p.gap); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		points = append(points, p)
	}
	return points, target
}

// TestETAOfRealTrainings replays trainings that were recorded and compares what is said with what came:
// for most of the time there is an estimate, mostly the truth lies in its range, and the figure that is
// given alone is seldom off by more than a factor of two.
func TestETAOfRealTrainings(t *testing.T) {
	files, err := filepath.Glob("testdata/eta/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d traces: %v", len(files), err)
	}
	var said, in, half, all int
	var errors []float64
	for _, file := range files {
		points, target := readTrace(t, file)
		end := points[len(points)-1].seconds
		for n := 3; n < len(points); n++ {
			truth := end - points[n-1].seconds
			all++
			l := extrapolate(points[:n], target)
			t.Logf("%-24s sweep %3.0f gap %8.2g: %6.2f s to go, said %6.2f to %6.2f, likely %5.2f of it", filepath.Base(file),
				points[n-1].sweep, points[n-1].gap, truth, l.low, l.high, l.likely/truth)
			if l == (left{}) {
				continue
			}
			said++
			if truth >= l.low/1.25 && truth <= 1.25*l.high {
				in++
			}
			off := math.Abs(math.Log2(l.likely / truth))
			errors = append(errors, off)
			if off <= 1 {
				half++
			}
		}
	}
	slices.Sort(errors)
	t.Logf("%d moments, an estimate at %d, in the range (and a quarter) %d, within a factor of two %d, median "+
		"factor %.2f, worst %.2f",
		all, said, in, half, math.Exp2(errors[len(errors)/2]), math.Exp2(errors[len(errors)-1]))
	if said*10 < all*8 || in*10 < said*7 || half*10 < said*8 {
		t.Errorf("of %d moments %d have an estimate, %d of them a range with the truth, %d a factor below two", all, said, in,
			half)
	}
}
