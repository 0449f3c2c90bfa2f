package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongRows uses dense rows of squared length 300 in overlapping classes, most of them rare, at
// C up to 1000. The loss's curvature is in the hundred thousands there: duals computed from nearly
// optimal weights can be wrong by orders of magnitude, and a joint training that used them
// diverged.
func TestLongRows(t *testing.T) {
	for _, c := range []struct {
		method, loss string
		rows         int // rows for the squared hinge: enough for Newton's method
	}{
		{"rr-svm", "squared-hinge", 1100}, {"rr-svm", "squared-hinge", 300}, {"rr-svm", "hinge", 100},
		{"rr-lr", "logistic", 300},
		{"bsvm", "squared-hinge", 1100}, {"bsvm", "squared-hinge", 300}, {"bsvm", "hinge", 100}, {"blr", "logistic", 300},
	} {
		for _, structure := range []string{"hierarchy", "graph"} {
			if structure == "graph" && !strings.HasPrefix(c.method, "rr-") {
				continue
			}
			for _, cost := range []string{"1", "30", "1000"} {
				t.Run(fmt.Sprintf("%s %s %d rows %s C=%s", c.method, c.loss, c.rows, structure, cost), func(t *testing.T) {
					t.Parallel()
					dir := t.TempDir()
					rows, tree, graph := longRows(c.rows)
					write(t, filepath.Join(dir, "d"), rows)
					write(t, filepath.Join(dir, "hierarchy"), tree)
					write(t, filepath.Join(dir, "graph"), graph)
					options := []string{"--data", filepath.Join(dir, "d"), "--out", filepath.Join(dir, "m"), "--method", c.method,
						"--loss", c.loss, "--C", cost}
					if strings.HasPrefix(c.method, "rr-") {
						options = append(options, "--"+structure, filepath.Join(dir, structure))
					}
					reachesGap(t, options...)
				})
			}
		}
	}
}

// longRows generates rows of 40 values around the means of 30 classes, with a tree and a ring of
// the classes.
func longRows(n int) (rows, tree, graph string) {
	const columns, classes = 40, 30
	rng := rand.New(rand.NewPCG(7, 11))
	var mean [classes][columns]float64
	for c := range mean {
		for j := range columns {
			mean[c][j] = rng.NormFloat64()
		}
	}
	var data, parents, links strings.Builder
	for range n {
		c, square := int(classes*math.Pow(rng.Float64(), 6)), 0.0
		var x [columns]float64
		for j := range x {
			x[j] = mean[c][j]/2 + rng.NormFloat64() + 1.5
			square += x[j] * x[j]
		}
		fmt.Fprintf(&data, "c%d", c)
		for j := range x {
			fmt.Fprintf(&data, " %d:%.5g", j+1, x[j]*math.Sqrt(300/square))
		}
		data.WriteByte('\n')
	}
	for c := range classes {
		if c%4 == 0 {
			fmt.Fprintf(&parents, "root f%d\n", c/4)
		}
		fmt.Fprintf(&parents, "f%d c%d\n", c/4, c)
		fmt.Fprintf(&links, "c%d c%d\n", c, (c+1)%classes)
	}
	return data.String(), parents.String(), links.String()
}
