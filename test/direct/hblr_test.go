package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	hblr "taxon/internal/methods/hblr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

func hblrOptions(method string, change func(*taxonv1.Options)) *taxonv1.Options {
	o := methodtest.Options(method, "schedule", "twoblock", "bias", 1, "gap", 1e-2, "max_sweeps", 3000, "prune", "empty")
	o.Set("tolerance", "1e-10")
	if change(o); method == "hblr-m2" {
		o.Set("prior_scale", hblr.ScalePaper) // the only value that it accepts
	}
	return o
}

// edges returns a structure of "parent child" pairs by class number.
func edges(pairs ...int) *taxonomy.Structure {
	s := &taxonomy.Structure{}
	place := map[int]uint32{}
	at := func(class int) uint32 {
		if _, ok := place[class]; !ok {
			place[class] = uint32(len(s.Names))
			s.Names = append(s.Names, fmt.Sprintf("class-%d", class))
		}
		return place[class]
	}
	for k := 0; k < len(pairs); k += 2 {
		s.Parents, s.Children = append(s.Parents, at(pairs[k])), append(s.Children, at(pairs[k+1]))
	}
	return s
}

// awkward lists trees with unusual shapes.
var awkward = []struct {
	name   string
	rows   int
	edges  []int // nil for a flat job
	change func(*taxonv1.Options)
}{
	{"two levels, a leaf spawned at each inner node", 40, []int{0, 1, 0, 2, 1, 3, 1, 4, 2, 5}, nil},
	{"chain of only children", 30, []int{100, 101, 101, 102, 102, 0, 102, 1, 101, 2}, nil},
	{"deep chain", 30, []int{10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 0, 10, 1, 13, 2}, nil},
	{"forest", 40, []int{0, 1, 0, 2, 3, 4}, nil},
	{"labels outside the structure", 40, []int{0, 1, 0, 2}, nil},
	{"flat", 40, nil, nil},
	{"without a bias", 40, []int{0, 1, 0, 2, 1, 3, 1, 4}, func(o *taxonv1.Options) { o.Set("bias", 0) }},
	{"large bias", 40, []int{0, 1, 0, 2, 1, 3, 1, 4}, func(o *taxonv1.Options) { o.Set("bias", 10) }},
	{"by parity", 40, []int{0, 1, 0, 2, 1, 3, 1, 4, 2, 5}, func(o *taxonv1.Options) { o.Set("schedule", "parity") }},
	{"flat by parity", 30, nil, func(o *taxonv1.Options) { o.Set("schedule", "parity") }},
	{"full inverse", 60, []int{0, 1, 0, 2, 1, 3, 1, 4}, func(o *taxonv1.Options) { o.Set("prior_inverse", "full") }},
	{"scaled by the median", 40, []int{0, 1, 0, 2, 1, 3, 1, 4}, func(o *taxonv1.Options) {
		o.Set("prior_scale",
			"median")
	}},
	{"scaled by frequency", 40, []int{0, 1, 0, 2, 1, 3, 1, 4}, func(o *taxonv1.Options) {
		o.Set("prior_scale",
			"df")
	}},
	{"fitted priors", 40, []int{0, 1, 0, 2, 1, 3, 1, 4, 2, 5}, func(o *taxonv1.Options) { o.Set("prior", "blr") }},
	{"fitted priors, full inverse, by parity", 60, []int{0, 1, 0, 2, 1, 3, 1, 4}, func(o *taxonv1.Options) {
		o.Set("prior", "blr")
		o.Set("prior_inverse", "full")
		o.Set("schedule", "parity")
	}},
	{"fitted priors, flat, scaled by frequency", 40, nil, func(o *taxonv1.Options) {
		o.Set("prior", "blr")
		o.Set("prior_scale", "df")
	}},
	{"few documents", 12, []int{0, 1, 0, 2, 1, 3}, nil},
	{"one family", 40, []int{100, 0, 100, 1, 100, 2, 100, 3, 100, 4, 100, 5}, nil},
}

// TestHBLR compares the fixed point with the twin's, which starts elsewhere each time: means,
// variances and precisions to 1e-6. The objective must be that of the means, given the precisions.
func TestHBLR(t *testing.T) {
	for n, c := range awkward {
		for _, m := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
			t.Run(m+" "+c.name, func(t *testing.T) {
				t.Parallel()
				j := jobs.Awkward(uint64(n), c.rows, 6)
				if n%3 == 1 || c.name == "scaled by frequency" {
					for i := range j.Set.Matrix.Rows {
						j.Set.Weight = append(j.Set.Weight, 0.5+float64(i%4))
					}
				}
				if j.Structure = nil; c.edges != nil {
					j.Structure = edges(c.edges...)
				}
				o := hblrOptions(m, func(o *taxonv1.Options) {
					if c.change != nil {
						c.change(o)
					}
				})
				spec := j.Spec(o)
				_, st, nodes := trained(t, j, spec, 2)
				twin := newHBLRTwin(t, j, spec)
				twin.start(uint64(n % 4))
				rounds := twin.solve()
				columns := j.Set.Matrix.Cols
				if methodtest.Number(o, "bias") > 0 {
					columns++
				}
				for k, err := range twin.compare(nodes, columns, 1e-6) {
					if k < 3 {
						t.Error(err)
					}
				}
				if got, want := st.GetCertificate().GetObjective(), twin.objective(); math.Abs(got-want) > 1e-8*want {
					t.Errorf("objective %.12g, the twin's %.12g", got, want)
				}
				var report struct {
					Reached float64 `json:"tolerance_reached"`
				}
				report.Reached = 1
				if err := json.Unmarshal(st.GetReport(), &report); err != nil {
					t.Fatal(err)
				}
				if st.GetStoppedBy() != "stationary" || !(report.Reached <= 1e-10) ||
					st.GetCertificate().GetKind() != "stationarity" {
					t.Errorf("stopped by %s, %s, %v", st.GetStoppedBy(), st.GetReport(), st.GetCertificate())
				}
				t.Logf("%d sweeps, the twin's %d; %s", st.GetSweep(), rounds, st.GetReport())
			})
		}
	}
}

// TestHBLRNarrow checks that, if points are stored as float32, the fixed point is the twin's within
// that precision, by both schedules, and that the weights are the same for any number of threads.
func TestHBLRNarrow(t *testing.T) {
	from := hblr.NarrowFrom
	hblr.NarrowFrom = 0
	defer func() { hblr.NarrowFrom = from }()
	for n, c := range awkward {
		if n%2 != 0 && !allCases() {
			continue
		}
		for _, m := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
			j := jobs.Awkward(uint64(n), c.rows, 6)
			if j.Structure = nil; c.edges != nil {
				j.Structure = edges(c.edges...)
			}
			spec := j.Spec(hblrOptions(m, func(o *taxonv1.Options) {
				o.Set("max_sweeps", 200)
				if c.change != nil {
					c.change(o)
				}
				o.Set("tolerance", "1e-4")
			}))
			prepared, err := registry.Prepare(spec)
			if err != nil {
				t.Fatal(err)
			}
			if plan, err := hblr.Detail(prepared.Plan.Detail); err != nil || !plan.Narrow {
				t.Fatalf("%+v, %v: not narrow", plan, err)
			}
			_, st, nodes := trained(t, j, spec, 2)
			if st.GetStoppedBy() != "stationary" {
				t.Errorf("%s %s: stopped by %s", m, c.name, st.GetStoppedBy())
			}
			twin := newHBLRTwin(t, j, spec)
			twin.start(uint64(n % 4))
			twin.solve()
			columns := j.Set.Matrix.Cols
			if methodtest.Number(spec.Options, "bias") > 0 {
				columns++
			}
			for _, err := range twin.compare(nodes, columns, 3e-4) {
				t.Errorf("%s %s: %s", m, c.name, err)
			}
			if _, _, one := trained(t, j, spec, 1); one.Hash() != nodes.Hash() {
				t.Errorf("%s %s: other weights by one thread", m, c.name)
			}
		}
	}
}

// TestHBLRPieces checks that the weights are the same whether leaves are solved and points moved in
// one step or in several, for any number of threads, and if three programs run the tasks without
// the runtime.
func TestHBLRPieces(t *testing.T) {
	from, tasks := hblr.NarrowFrom, hblr.PieceTasks
	defer func() { hblr.NarrowFrom, hblr.PieceTasks = from, tasks }()
	hblr.NarrowFrom = 0
	for _, m := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
		j := jobs.Small(5, 200, 40)
		spec := j.Spec(hblrOptions(m, func(o *taxonv1.Options) { o.Set("tolerance", "1e-2"); o.Set("max_sweeps", 6) }))
		var whole string
		for _, hblr.PieceTasks = range []uint64{tasks, 1} {
			prepared, err := registry.Prepare(spec)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := hblr.Detail(prepared.Plan.Detail)
			if err != nil || !plan.Narrow || (plan.Pieces > 1) != (hblr.PieceTasks == 1) {
				t.Fatalf("%+v, %v", plan, err)
			}
			r, _, nodes := trained(t, j, spec, 3)
			_, _, again := trained(t, j, spec, 1)
			direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
			if err != nil {
				t.Fatal(err)
			}
			h := nodes.Hash()
			if whole == "" {
				whole = h
			}
			if h != whole || h != again.Hash() || h != direct.Hash() {
				t.Errorf("%s in %d pieces: weights of three threads %s, of one %s, of three programs %s; in one step %s", m,
					plan.Pieces, h, again.Hash(), direct.Hash(), whole)
			}
		}
	}
}

// TestHBLRBytes has several blocks and ranges. It checks that the weights are the same for any
// number of threads, and if three programs run the tasks without the runtime.
func TestHBLRBytes(t *testing.T) {
	for _, schedule := range []string{"twoblock", "parity"} {
		for _, m := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
			t.Run(m+" "+schedule, func(t *testing.T) {
				t.Parallel()
				j := jobs.Small(5, 200, 40)
				spec := j.Spec(hblrOptions(m, func(o *taxonv1.Options) {
					o.Set("schedule", schedule)
					o.Set("tolerance", "1e-2")
					if schedule == "parity" {
						o.Set("prior", "blr")
					}
				}))
				prepared, err := registry.Prepare(spec)
				if err != nil {
					t.Fatal(err)
				}
				if items := prepared.Plan.Items; items[0].Count < 2 || items[1].Count < 2 {
					t.Fatalf("%v: too few of each to show anything", prepared.Plan)
				}
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
				t.Logf("%d sweeps, %v", st.GetSweep(), prepared.Plan)
			})
		}
	}
}
