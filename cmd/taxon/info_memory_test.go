package main

import (
	"strings"
	"testing"

	"taxon/internal/generate"
	"taxon/internal/jobspec"
	"taxon/internal/planinfo"
)

// TestEstimateMemory: trainings of LWIKI-like data, 42 nonzeros and 3.2 labels an instance,
// were measured to hold so much at most, with one thread; the estimate is not below that,
// and not above 1.6 times it.
func TestEstimateMemory(t *testing.T) {
	for scale, peak := range map[float64]int64{0.001: 190e6, 0.003: 733e6, 0.01: 2441e6} {
		s, err := generate.Like("lwiki", scale)
		if err != nil {
			t.Fatal(err)
		}
		spec := planinfo.Spec(s, 0)
		tree, _, err := jobspec.Tree(spec)
		if err != nil {
			t.Fatal(err)
		}
		features, nonzeros := int64(s.Features), int64(spec.Data.Nonzeros)
		d := &dataInfo{Instances: int64(s.Instances), Features: &features, Nonzeros: &nonzeros}
		var sizes []int64
		for _, n := range spec.Data.LabelInstances {
			sizes = append(sizes, int64(n))
			d.LabelEntries += int64(n)
		}
		m := estimateMemory(d, tree, sizes, 1)
		if m.Total < peak || m.Total > peak*8/5 {
			t.Errorf("scale %g: %d bytes are estimated, %d were taken", scale, m.Total, peak)
		}
		if m.Total != m.Data+m.State+m.Scratch+m.Process {
			t.Errorf("%+v does not add up", m)
		}
		if two := estimateMemory(d, tree, sizes, 2); two.Scratch != 2*m.Scratch || two.Total <= m.Total {
			t.Errorf("two threads: %+v, one: %+v", two, m)
		}
	}
}

// TestTrainRefusesBelowTheProgram: the program alone takes more than a few MiB, however
// little the data.
func TestTrainRefusesBelowTheProgram(t *testing.T) {
	code, _, stderr := runWith(t, "a 1:1\nb 2:1\n", "train", "--data", "-", "--memory", "30MiB", "--threads", "1", "--out", t.TempDir()+"/m")
	if code == 0 || !strings.Contains(stderr, "--memory is 30MiB") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
