package model

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"taxon/internal/data/taxonomy"
)

// tinyMeta is a hand-made model of a tree with every kind of node:
//
//	(virtual) -> animal (internal label, spawned leaf), cat, dog ; car
func tinyMeta() Meta {
	return Meta{
		Options: Options{Method: "rr-svm", Loss: "hinge", Bias: 1, Own: map[string]json.RawMessage{"C": json.RawMessage("1"), "schedule": json.RawMessage(`"twoblock"`)}},
		Data:    DataInfo{Fingerprint: "f00d", Instances: 10, Nonzeros: 25, Positives: 10},
		Tree: &taxonomy.Tree{
			Parent: []int32{-1, 0, 1, 1, 1, 0},
			Kind:   []taxonomy.Kind{taxonomy.Virtual, taxonomy.Node, taxonomy.Spawned, taxonomy.Node, taxonomy.Node, taxonomy.Node},
			Name:   []string{"", "animal", "animal", "cat", "dog", "car"},
			Label:  []int32{-1, -1, 0, 1, 2, 3},
			Depth:  []int32{0, 1, 2, 2, 2, 1},
			Leaf:   []bool{false, false, true, true, true, true},
		},
		Structure: &taxonomy.Structure{Names: []string{"animal", "cat", "dog", "vehicle", "bike"},
			Parents: []uint32{0, 0, 3}, Children: []uint32{1, 2, 4}},
		Labels:      []string{"animal", "cat", "dog", "car"},
		LabelCounts: []uint32{2, 4, 3, 1},
		Feature:     []uint32{7, 2, 100},
	}
}

type nodeWeights struct {
	columns []uint32
	values  []float32
}

func tinyWeights() []nodeWeights {
	return []nodeWeights{
		{[]uint32{0, 3}, []float32{0.5, -1}},
		{[]uint32{0, 1}, []float32{0.25, 1.5}},
		{nil, nil},
		{[]uint32{0, 2}, []float32{0, 0.1}},
		{[]uint32{3}, []float32{-0.75}},
		{[]uint32{0, 2, 3}, []float32{-2, 1e-20, 3}},
	}
}

func tinyReport() Report {
	dual, gap := 1.5, 0.25
	return Report{Method: "rr-svm", Instances: 10, Nonzeros: 25,
		Sweeps: 3, Objective: 2, Dual: &dual, Gap: &gap, StoppedBy: "gap", Seconds: 0.5, CPUSeconds: 1}
}

func tinyTrace() []TraceRow {
	p, d, g := 2.0, 1.5, 0.25
	return []TraceRow{{Sweep: 1, Phase: "map", Seconds: 0.25}, {Sweep: 2, Phase: "certify", Objective: &p, Dual: &d, Gap: &g, Seconds: 0.5}}
}

// writeModel writes a model and fails the test if that fails.
func writeModel(t testing.TB, dir string, meta Meta, weights []nodeWeights, limit int64) Report {
	t.Helper()
	w, err := NewWriter(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	if limit > 0 {
		w.limit = limit
	}
	for n, x := range weights {
		if err := w.WriteNode(n, x.columns, x.values); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.Close(tinyReport(), tinyTrace())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openModel(t testing.TB, dir string) *Model {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func tinyModel(t testing.TB) *Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, tinyMeta(), tinyWeights(), 0)
	return openModel(t, dir)
}

// shape of a random model.
type shape struct {
	nodes, features, overrides int
	branch                     int // children are put under one of the last branch nodes of the path
	bias                       float64
}

// randomModel makes a random forest with random overrides.
func randomModel(rng *rand.Rand, s shape) (Meta, []nodeWeights) {
	t := &taxonomy.Tree{}
	var path []int32
	for n := range s.nodes {
		p := int32(-1)
		if len(path) > 0 && rng.IntN(20) > 0 {
			path = path[:max(1, len(path)-rng.IntN(min(s.branch, len(path))+1))]
			p = path[len(path)-1]
		} else {
			path = path[:0]
		}
		t.Parent = append(t.Parent, p)
		t.Kind = append(t.Kind, taxonomy.Node)
		t.Name = append(t.Name, "c"+string(rune('a'+n%26))+itoa(n))
		t.Label = append(t.Label, int32(n))
		t.Depth = append(t.Depth, int32(len(path)))
		t.Leaf = append(t.Leaf, true)
		if p >= 0 {
			t.Leaf[p] = false
		}
		path = append(path, int32(n))
	}
	m := Meta{Options: Options{Method: "rr-svm", Bias: s.bias}, Tree: t, Labels: t.Name, LabelCounts: make([]uint32, s.nodes),
		Data: DataInfo{Instances: 1, Positives: 1}}
	for c := range s.features {
		m.Feature = append(m.Feature, uint32(s.features-c)*3)
	}
	weights := make([]nodeWeights, s.nodes)
	for n := range weights {
		for c := range m.columns() {
			// Frequent (low) columns are overridden more often.
			if rng.Float64()*float64(m.columns())*(0.2+2*float64(c)/float64(m.columns())) < float64(s.overrides) {
				v := float32(rng.NormFloat64() * 0.3)
				if rng.IntN(10) == 0 {
					v = 0
				}
				weights[n].columns = append(weights[n].columns, uint32(c))
				weights[n].values = append(weights[n].values, v)
			}
		}
	}
	return m, weights
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// denseVectors applies overrides the dumb way.
func denseVectors(m Meta, weights []nodeWeights) [][]float32 {
	out := make([][]float32, len(weights))
	for n, x := range weights {
		out[n] = make([]float32, m.columns())
		if p := m.Tree.Parent[n]; p >= 0 {
			copy(out[n], out[p])
		}
		for i, c := range x.columns {
			out[n][c] = x.values[i]
		}
	}
	return out
}

func mustRead(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
