package modeltest

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"taxon/internal/data/taxonomy"
	"taxon/internal/fs/vfs"
	"taxon/internal/model"
	"taxon/internal/model/shard"
)

// TinyMeta returns a hand-made model of a tree with every kind of node:
//
//	(virtual) -> animal (internal label, spawned leaf), cat, dog ; car
func TinyMeta() model.Meta {
	return model.Meta{
		Options: model.Options{Method: "rr-svm", Loss: "hinge", Bias: 1,
			Own: map[string]json.RawMessage{"C": json.RawMessage("1"), "schedule": json.RawMessage(`"twoblock"`)}},
		Data: model.DataInfo{Fingerprint: "f00d", Instances: 10, Nonzeros: 25, Positives: 10},
		Tree: &taxonomy.Tree{
			Parent: []int32{-1, 0, 1, 1, 1, 0},
			Kind: []taxonomy.Kind{taxonomy.Virtual, taxonomy.Node, taxonomy.Spawned, taxonomy.Node, taxonomy.Node,
				taxonomy.Node},
			Name:  []string{"", "animal", "animal", "cat", "dog", "car"},
			Label: []int32{-1, -1, 0, 1, 2, 3},
			Depth: []int32{0, 1, 2, 2, 2, 1},
			Leaf:  []bool{false, false, true, true, true, true},
		},
		Structure: &taxonomy.Structure{Names: []string{"animal", "cat", "dog", "vehicle", "bike"},
			Parents: []uint32{0, 0, 3}, Children: []uint32{1, 2, 4}},
		Labels:      []string{"animal", "cat", "dog", "car"},
		LabelCounts: []uint32{2, 4, 3, 1},
		Feature:     []uint32{7, 2, 100},
	}
}

// TinyWeights returns the overrides of its nodes.
func TinyWeights() []shard.Record {
	return []shard.Record{
		{Columns: []uint32{0, 3}, Values: []float32{0.5, -1}},
		{Columns: []uint32{0, 1}, Values: []float32{0.25, 1.5}},
		{},
		{Columns: []uint32{0, 2}, Values: []float32{0, 0.1}},
		{Columns: []uint32{3}, Values: []float32{-0.75}},
		{Columns: []uint32{0, 2, 3}, Values: []float32{-2, 1e-20, 3}},
	}
}

// TinyReport returns the report of its training.
func TinyReport() model.Report {
	dual, gap := 1.5, 0.25
	return model.Report{Method: "rr-svm", Instances: 10, Nonzeros: 25,
		Sweeps: 3, Objective: 2, Dual: &dual, Gap: &gap, StoppedBy: "gap", Seconds: 0.5, CPUSeconds: 1}
}

// TinyTrace returns its sweeps.
func TinyTrace() []model.TraceRow {
	p, d, g := 2.0, 1.5, 0.25
	return []model.TraceRow{{Sweep: 1, Phase: "map", Seconds: 0.25}, {Sweep: 2, Phase: "certify", Objective: &p, Dual: &d,
		Gap: &g, Seconds: 0.5}}
}

// Write writes a model and returns its report. Weight shards hold at most shardBytes bytes. Zero
// means NewWriter's default.
func Write(t testing.TB, dir string, meta model.Meta, weights []shard.Record, shardBytes int64) model.Report {
	t.Helper()
	w, err := model.NewWriter(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	if shardBytes > 0 {
		w.ShardBytes = shardBytes
	}
	for n, x := range weights {
		if err := w.WriteNode(n, x.Columns, x.Values); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.Close(TinyReport(), TinyTrace())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Open opens a model and closes it at the end of the test.
func Open(t testing.TB, dir string) *model.Model {
	t.Helper()
	m, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Tiny writes and opens the hand-made model.
func Tiny(t testing.TB) *model.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "m")
	Write(t, dir, TinyMeta(), TinyWeights(), 0)
	return Open(t, dir)
}

// Shape describes a random model.
type Shape struct {
	Nodes, Features, Overrides int
	// Branch is the number of nodes at the end of the path among which the parent of the next node
	// is chosen.
	Branch int
	Bias   float64
}

// Random makes a random forest with random overrides.
func Random(rng *rand.Rand, s Shape) (model.Meta, []shard.Record) {
	t := &taxonomy.Tree{}
	var path []int32
	for n := range s.Nodes {
		p := int32(-1)
		if len(path) > 0 && rng.IntN(20) > 0 {
			path = path[:max(1, len(path)-rng.IntN(min(s.Branch, len(path))+1))]
			p = path[len(path)-1]
		} else {
			path = path[:0]
		}
		t.Parent = append(t.Parent, p)
		t.Kind = append(t.Kind, taxonomy.Node)
		t.Name = append(t.Name, "c"+string(rune('a'+n%26))+strconv.Itoa(n))
		t.Label = append(t.Label, int32(n))
		t.Depth = append(t.Depth, int32(len(path)))
		t.Leaf = append(t.Leaf, true)
		if p >= 0 {
			t.Leaf[p] = false
		}
		path = append(path, int32(n))
	}
	m := model.Meta{Options: model.Options{Method: "rr-svm", Bias: s.Bias}, Tree: t, Labels: t.Name,
		LabelCounts: make([]uint32, s.Nodes),
		Data:        model.DataInfo{Instances: 1, Positives: 1}}
	for c := range s.Features {
		m.Feature = append(m.Feature, uint32(s.Features-c)*3)
	}
	weights := make([]shard.Record, s.Nodes)
	for n := range weights {
		for c := range Width(m) {
			// Frequent (low) columns are overridden more often.
			if rng.Float64()*float64(Width(m))*(0.2+2*float64(c)/float64(Width(m))) < float64(s.Overrides) {
				v := float32(rng.NormFloat64() * 0.3)
				if rng.IntN(10) == 0 {
					v = 0
				}
				weights[n].Columns = append(weights[n].Columns, uint32(c))
				weights[n].Values = append(weights[n].Values, v)
			}
		}
	}
	return m, weights
}

// Dense applies overrides in the most direct way.
func Dense(m model.Meta, weights []shard.Record) [][]float32 {
	out := make([][]float32, len(weights))
	for n, x := range weights {
		out[n] = make([]float32, Width(m))
		if p := m.Tree.Parent[n]; p >= 0 {
			copy(out[n], out[p])
		}
		for i, c := range x.Columns {
			out[n][c] = x.Values[i]
		}
	}
	return out
}

// Whole returns the records as whole vectors, computed in the most direct way.
func Whole(m model.Meta, weights []shard.Record) [][]float32 {
	out := make([][]float32, len(weights))
	for n, x := range weights {
		out[n] = make([]float32, Width(m))
		for i, c := range x.Columns {
			out[n][c] = x.Values[i]
		}
	}
	return out
}

// Width returns the length of a weight vector.
func Width(m model.Meta) int {
	if m.Options.Bias > 0 {
		return len(m.Feature) + 1
	}
	return len(m.Feature)
}

// MustRead reads a file.
func MustRead(t testing.TB, name string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Row is an instance in a model's columns.
type Row = shard.Record

// Rows makes random instances.
func Rows(rng *rand.Rand, n, features int, density float64) []Row {
	rows := make([]Row, n)
	for i := range rows {
		for c := range features {
			if rng.Float64() < density {
				rows[i].Columns = append(rows[i].Columns, uint32(c))
				rows[i].Values = append(rows[i].Values, float32(rng.NormFloat64()))
			}
		}
	}
	return rows
}

// Wordnet returns a model with the dimensions of wordnet-freq: 28,780 features, 1,768 internal
// nodes, 3,383 terminals. Overrides are on frequent features, as those of real classes are.
func Wordnet(rng *rand.Rand) (model.Meta, []shard.Record) {
	meta, _ := Random(rng, Shape{Nodes: 5151, Features: 28780, Branch: 2, Bias: 1})
	weights := make([]shard.Record, 5151)
	z := rand.NewZipf(rng, 1.2, 40, 28779)
	for n := range weights {
		seen := map[uint32]bool{28780: true}
		for range 3500 {
			seen[uint32(z.Uint64())] = true
		}
		for c := range seen {
			weights[n].Columns = append(weights[n].Columns, c)
		}
		slices.Sort(weights[n].Columns)
		for range weights[n].Columns {
			weights[n].Values = append(weights[n].Values, float32(rng.NormFloat64()))
		}
	}
	return meta, weights
}

// ZipfRows returns instances of words whose frequencies decrease as those of real ones do.
func ZipfRows(rng *rand.Rand, n, features, words int) []Row {
	z := rand.NewZipf(rng, 1.2, 40, uint64(features-1))
	rows := make([]Row, n)
	for i := range rows {
		seen := map[uint32]bool{}
		for range words {
			seen[uint32(z.Uint64())] = true
		}
		for c := range seen {
			rows[i].Columns = append(rows[i].Columns, c)
		}
		slices.Sort(rows[i].Columns)
		for range rows[i].Columns {
			rows[i].Values = append(rows[i].Values, rng.Float32())
		}
	}
	return rows
}
