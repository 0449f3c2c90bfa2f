package direct

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// bounded returns the options of a variational job.
func bounded(method, covariance string, change func(*taxonv1.Options)) *taxonv1.Options {
	return hblrOptions(method, func(o *taxonv1.Options) {
		o.Set("inference", "variational")
		o.Set("covariance", covariance)
		if change != nil {
			change(o)
		}
	})
}

// TestHBLRBound compares the variational fixed point with the twin's, which starts elsewhere each
// time: means, variances, precisions to 1e-6. The bound must be complete, and must not decrease in
// any sweep.
func TestHBLRBound(t *testing.T) {
	for n, c := range awkward {
		o := hblrOptions("hblr-m1", func(o *taxonv1.Options) {
			if c.change != nil {
				c.change(o)
			}
		})
		if o.Value("schedule") == "parity" || testing.Short() && n > 2 {
			continue
		}
		for m, method := range variants {
			if m != n%3 && !allCases() { // one of each case, in turns
				continue
			}
			covariance := []string{"diagonal", "full"}[(n+m)%2]
			t.Run(method+" "+covariance+" "+c.name, func(t *testing.T) {
				t.Parallel()
				j := jobs.Awkward(uint64(n), c.rows, 6)
				if j.Structure = nil; c.edges != nil {
					j.Structure = edges(c.edges...)
				}
				spec := j.Spec(bounded(method, covariance, c.change))
				_, st, nodes := trained(t, j, spec, 2)
				twin := newBoundTwin(newHBLRTwin(t, j, spec), covariance == "full", uint64(n+m)%4)
				rounds := twin.solve()
				columns := j.Set.Matrix.Cols
				if methodtest.Number(spec.GetOptions(), "bias") > 0 {
					columns++
				}
				for k, err := range twin.compare(nodes, columns, 1e-6) {
					if k < 3 {
						t.Error(err)
					}
				}
				var report map[string]any
				if err := json.Unmarshal(st.GetReport(), &report); err != nil {
					t.Fatal(err)
				}
				got, want := report["bound"].(float64), twin.bound()
				if math.Abs(got-want) > 1e-8*math.Abs(want) || st.GetCertificate().GetObjective() != -got {
					t.Errorf("bound %.12g, the twin's %.12g; %v", got, want, st.GetCertificate())
				}
				if st.GetStoppedBy() != "stationary" || !(report["tolerance_reached"].(float64) <= 1e-10) ||
					st.GetCertificate().GetKind() != "lower_bound" {
					t.Errorf("stopped by %s, %s, %v", st.GetStoppedBy(), st.GetReport(), st.GetCertificate())
				}
				rising(t, st)
				t.Logf("%d sweeps, the twin's %d; %s", st.GetSweep(), rounds, st.GetReport())
			})
		}
	}
}

// TestBoundTwin checks that no single update of any form lowers the twin's bound, and that the
// bound is stationary at the fixed point under small changes of every variable.
func TestBoundTwin(t *testing.T) {
	for n, c := range awkward[:3] {
		for m, method := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
			for _, full := range []bool{false, true} {
				j := jobs.Awkward(uint64(n), c.rows, 6)
				j.Structure = edges(c.edges...)
				twin := newBoundTwin(newHBLRTwin(t, j, j.Spec(bounded(method, "diagonal", c.change))), full, uint64(n+m)%4)
				twin.round(1)
				last, updates := twin.bound(), 0
				twin.after = func(update string) {
					now := twin.bound()
					if updates++; now < last-1e-12*math.Abs(last) {
						t.Errorf("%s %s, full: %t: by %s the bound falls from %.15g to %.15g", method, c.name, full, update, last, now)
					}
					last = now
				}
				for range 12 {
					twin.round(1)
				}
				if updates < 100 {
					t.Errorf("%d updates were looked at", updates)
				}
			}
		}
	}
}

// TestBoundIsStationary computes finite differences of the twin's bound at its fixed point, which
// is the job's (TestHBLRBound), by means, variances and precisions of all nodes.
func TestBoundIsStationary(t *testing.T) {
	for n, method := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
		c := awkward[0]
		j := jobs.Awkward(uint64(n), c.rows, 6)
		j.Structure = edges(c.edges...)
		twin := newBoundTwin(newHBLRTwin(t, j, j.Spec(bounded(method, "diagonal", nil))), false, 1)
		twin.solve()
		at := twin.bound()
		check := func(what string, node int, x *float64, set func()) {
			from, h := *x, 1e-4*math.Max(math.Abs(*x), 0.1)
			var value [2]float64
			for k, step := range []float64{h, -h} {
				*x = from + step
				set()
				value[k] = twin.bound()
			}
			*x = from
			set()
			if slope := (value[0] - value[1]) / (2 * h); math.Abs(slope) > 1e-5*math.Abs(at) ||
				math.Max(value[0], value[1]) > at+1e-12*math.Abs(at) {
				t.Errorf("%s: %s of node %d: slope %g; %.15g at the fixed point, %v beside it", method, what, node, slope, at,
					value)
			}
		}
		for node, leaf := range twin.tree.Leaf {
			for i := range twin.column {
				check("mean", node, &twin.mu[node][i], func() {})
				check("variance", node, &twin.psi[node][i], func() {
					if leaf {
						twin.cov[node][i][i] = twin.psi[node][i]
					}
				})
				if owners := slices.Contains(twin.tree.Parent, int32(node)); method == "hblr-m2" && owners {
					check("precision", node, &twin.alpha[node][i], func() {})
				}
			}
		}
	}
}

// rising reports sweeps of a variational job in which the bound decreases.
func rising(t *testing.T, st *taxonv1.JobStatus) {
	t.Helper()
	last := math.Inf(1)
	for _, s := range st.GetTrace() {
		now := s.GetCertificate().GetObjective()
		if now > last+1e-12*math.Abs(last) {
			t.Errorf("sweep %d: the bound falls from %.15g to %.15g", s.GetSweep(), -last, -now)
		}
		last = min(last, now)
	}
}

// TestHBLRBoundBytes checks that the weights of variational jobs are the same for any number of
// threads, and if three programs run the tasks without the runtime. Some of these jobs drop points
// at which the bound would have decreased.
func TestHBLRBoundBytes(t *testing.T) {
	for _, c := range []struct {
		method, covariance  string
		seed, rows, classes int
		back                bool
	}{
		{"hblr-m1", "diagonal", 0, 40, 16, true},
		{"hblr-m2", "diagonal", 1, 24, 16, true},
		{"hblr-m3", "diagonal", 5, 60, 40, false},
		{"hblr-m2", "full", 3, 30, 4, false},
	} {
		t.Run(c.method+" "+c.covariance, func(t *testing.T) {
			t.Parallel()
			j := jobs.Small(uint64(c.seed), c.rows, c.classes)
			spec := j.Spec(bounded(c.method, c.covariance, func(o *taxonv1.Options) { o.Set("tolerance", "0.001") }))
			r, st, nodes := trained(t, j, spec, 3)
			_, _, again := trained(t, j, spec, 1)
			direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() || st.GetStoppedBy() != "stationary" {
				t.Errorf("weights of three threads %s, of one %s, of three programs %s; stopped by %s", h, again.Hash(),
					direct.Hash(), st.GetStoppedBy())
			}
			rising(t, st)
			back := 0
			for _, tasks := range r.Steps() {
				if strings.Contains(string(tasks[0].Lease.GetParams()), "Back") {
					back++
				}
			}
			if c.back && back == 0 {
				t.Error("no point was thrown away: the job shows nothing of it")
			}
			t.Logf("%d sweeps, %d points thrown away", st.GetSweep(), back)
		})
	}
}

// TestHBLRBoundRefuses checks that requests that variational inference does not support give one
// clear line.
func TestHBLRBoundRefuses(t *testing.T) {
	for _, c := range []struct {
		want     string
		features uint64
		change   func(*taxonv1.Options)
	}{
		{"give ‹covariance=diagonal›", 30_000, func(o *taxonv1.Options) { o.Set("covariance", "") }},
		{"schedule parity goes with inference map", 0, func(o *taxonv1.Options) { o.Set("schedule", "parity") }},
		{"must be one of full, diagonal", 0, func(o *taxonv1.Options) { o.Set("covariance", "sparse") }},
		{"must be one of map, variational", 0, func(o *taxonv1.Options) { o.Set("inference", "sampled") }},
	} {
		j := jobs.Small(5, 60, 20)
		spec := j.Spec(bounded("hblr-m3", "diagonal", c.change))
		if c.features > 0 {
			spec.Data.Features = c.features
		}
		if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, c.want)
		}
	}
}
