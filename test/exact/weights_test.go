package exact

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestInstanceWeights uses weights over six orders of magnitude and rows of weight 0, with labels
// and features that no other row has. It checks all losses, on trees, on graphs and flat, to a gap
// of 1e-6.
func TestInstanceWeights(t *testing.T) {
	for k, kind := range []kind{kinds[0], kinds[3], kinds[8], kinds[12], graphKinds[6], graphKinds[9]} {
		for s := range 3 {
			t.Run(fmt.Sprint(kind.name, s), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(uint64(k), 41))
				p := setting{[]float64{0.01, 0.3, 1}[(k+s)%3], float64(k % 2), s == 1}.apply(kind.make(r))
				p.Logistic = s == 2
				p.Positive = []float64{0, -1, 3}[(k+s)%3]
				for range p.Rows {
					p.Weights = append(p.Weights, math.Pow(10, 6*r.Float64()-3))
				}
				ghosts := draw(r, len(p.Rows)/2, 9, p.Rows[0].Labels...)
				for i, g := range ghosts {
					g.Labels = append(g.Labels, fmt.Sprint("ghost", i%2))
					g.Index, g.Value = append(g.Index, 1000+i), append(g.Value, 1)
					p.Ghosts = append(p.Ghosts, g)
				}
				check(t, p, "--gap", "1e-6")
			})
		}
	}
}

// TestWeightsAreCopies checks that, by every method, weight 2 trains the same as the row twice, and
// weight 0 the same as its absence, to the byte, and that weights of 1 train the same as no
// weights.
func TestWeightsAreCopies(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 43))
	rows := draw(r, 40, 8, "a1", "a2", "b1", "b2")
	rows[5].Labels, rows[6].Labels = []string{"gone"}, []string{"gone"}
	var weights []float64
	var copies, zeros, ones Problem
	for i, row := range rows {
		w := float64(r.IntN(4))
		if row.Labels[0] == "gone" {
			w = 0
		}
		weights = append(weights, w)
		for range int(w) {
			copies.Rows = append(copies.Rows, row)
		}
		if w > 0 {
			ones.Rows = append(ones.Rows, row)
		}
		zeros.Weights = append(zeros.Weights, math.Min(w, 1))
		zeros.Rows = append(zeros.Rows, rows[i])
	}
	dir := t.TempDir()
	weighed, absent := &Problem{Rows: rows, Weights: weights}, &Problem{Rows: ones.Rows}
	for name, text := range map[string]string{
		"all": weighed.Data(), "weights": weighed.InstanceWeights(), "zeros": zeros.InstanceWeights(),
		"copies": copies.Data(), "absent": absent.Data(),
		"ones": strings.Repeat("1\n", len(absent.Rows)), "tree": "r a\nr b\na a1\na a2\nb b1\nb b2\nb gone\n",
		"graph": "a1 a2\na2 h\nh b1\nb1 b2\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	for _, method := range []string{
		"rr-svm --hierarchy tree", "rr-svm --hierarchy tree --loss squared-hinge --positive-weight balanced",
		"rr-lr --hierarchy tree",
		"rr-svm --graph graph --positive-weight balanced", "rr-svm --graph graph --loss squared-hinge", "rr-lr --graph graph",
		"rr-svm --hierarchy tree --x schedule=jacobi",
		"bsvm", "bsvm --loss squared-hinge", "blr --positive-weight balanced", "td --hierarchy tree " +
			"--positive-weight balanced", "td --hierarchy tree --loss squared-hinge", "mlr",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			of := func(out, data, weights string) *exported { return exportOf(t, dir, method, out, data, weights) }
			want, got := of("copies", "copies", ""), of("weighed", "all", "weights")
			if gap := got.Objective/want.Objective - 1; math.Abs(gap) > 2*tightest {
				t.Errorf("objective %v, of copies %v", got.Objective, want.Objective)
			}
			if d := got.from(want); d > 5e-3 {
				t.Errorf("a weight is %g from that of copies", d)
			}
			absent := of("absent", "absent", "")
			if of("zeros", "all", "zeros").WeightsSHA256 != absent.WeightsSHA256 ||
				of("ones", "absent", "ones").WeightsSHA256 != absent.WeightsSHA256 {
				t.Error("rows of weight 0, or weights of 1, do not train the same bytes as none")
			}
			if d := want.from(absent); d < 5e-2 {
				t.Errorf("copies move no weight by more than %g: the test sees too little", d)
			}
		})
	}
}

// tightest is the gap of trainings that are compared with each other.
const tightest = 1e-6

// exported holds a model's exported weights by name and column.
type exported struct {
	report
	w map[string]float64
}

// exportOf trains on files of dir, given a line of method and flags, and parses the output of
// export.
func exportOf(t *testing.T, dir, line, out, data, weights string) *exported {
	args := []string{"train", "--quiet", "--json", "--threads", "1", "--data", data, "--out", filepath.Join(t.TempDir(),
		out), "--gap", format(tightest), "--method"}
	args = append(args, strings.Fields(line)...)
	if weights != "" {
		args = append(args, "--instance-weights", weights)
	}
	for i, a := range args {
		switch a {
		case "--data", "--hierarchy", "--graph", "--instance-weights":
			args[i+1] = filepath.Join(dir, args[i+1])
		}
	}
	stdout, err := runTaxon(args...)
	if err != nil {
		t.Fatal(err)
	}
	m := &exported{w: map[string]float64{}}
	if err := json.Unmarshal(stdout, &m.report); err != nil {
		t.Fatal(err)
	}
	text, err := exportText(args[8])
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		for _, f := range fields[2:] {
			column, value, _ := strings.Cut(f, ":")
			if m.w[fields[1]+" "+column], err = strconv.ParseFloat(value, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

// from returns the largest difference between a weight and the other model's.
func (m *exported) from(other *exported) (d float64) {
	for k, v := range m.w {
		d = math.Max(d, math.Abs(v-other.w[k]))
	}
	for k, v := range other.w {
		d = math.Max(d, math.Abs(v-m.w[k]))
	}
	return d
}
