package model_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/pruning"
	"taxon/internal/model/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "rewrite the golden model")

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	report := modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 0)
	m := modeltest.Open(t, dir)
	if !reflect.DeepEqual(m.Meta, modeltest.TinyMeta()) {
		t.Errorf("meta:\n got %+v\nwant %+v", m.Meta, modeltest.TinyMeta())
	}
	if !reflect.DeepEqual(m.Trace, modeltest.TinyTrace()) {
		t.Errorf("trace: %+v", m.Trace)
	}
	want := modeltest.TinyReport()
	want.Nodes, want.Terminals, want.Features, want.WeightsSHA256 = 6, 4, 3, report.WeightsSHA256
	if !reflect.DeepEqual(m.Manifest.Report, want) || !reflect.DeepEqual(report, want) {
		t.Errorf("report:\n got %+v\nwant %+v", m.Manifest.Report, want)
	}
	for n, v := range modeltest.Dense(modeltest.TinyMeta(), modeltest.TinyWeights()) {
		if got := m.Vector(n); !reflect.DeepEqual(got, v) {
			t.Errorf("node %d: %v, want %v", n, got, v)
		}
	}
	if m.LabelsPerInstance() != 1 {
		t.Errorf("labels an instance: %v", m.LabelsPerInstance())
	}
}

func TestTextRoundTrip(t *testing.T) {
	meta := modeltest.TinyMeta()
	meta.Data.Text = true
	meta.Text = &model.Text{Vocabulary: []string{"fell", "räder", "日本"}, IDF: []float64{0.1, 1.0 / 3, 7}}
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, modeltest.TinyWeights(), 0)
	if m := modeltest.Open(t, dir); !reflect.DeepEqual(m.Text, meta.Text) {
		t.Errorf("text: %+v", m.Text)
	}
}

// Names may be any text, quotes and control characters but NUL too.
func TestNamesRoundTrip(t *testing.T) {
	meta := modeltest.TinyMeta()
	meta.Labels[0], meta.Labels[1], meta.Tree.Name[4], meta.Structure.Names[4] = "a\tb, c\n", `"a"`, "x\n: #", "y\x01"
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, modeltest.TinyWeights(), 0)
	if m := modeltest.Open(t, dir); !reflect.DeepEqual(m.Labels, meta.Labels) || !reflect.DeepEqual(m.Tree, meta.Tree) ||
		!reflect.DeepEqual(m.Structure, meta.Structure) {
		t.Errorf("labels %q, tree %q, structure %q", m.Labels, m.Tree.Name, m.Structure.Names)
	}
}

// Weights and weights_sha256 must not depend on the cut into shards.
func TestShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	meta, weights := modeltest.Random(rng, modeltest.Shape{Nodes: 120, Features: 40, Overrides: 8, Branch: 4, Bias: 1})
	want := modeltest.Dense(meta, weights)
	var sums []string
	for _, limit := range []int64{0, 1, 500, 5000} {
		dir := filepath.Join(t.TempDir(), "m")
		r := modeltest.Write(t, dir, meta, weights, limit)
		sums = append(sums, r.WeightsSHA256)
		m := modeltest.Open(t, dir)
		shards := 0
		for _, f := range m.Manifest.Files {
			if f.Nodes > 0 {
				shards++
			}
		}
		if limit == 1 && shards != 120 || limit == 0 && shards != 1 || limit == 500 && shards < 3 {
			t.Errorf("limit %d: %d shards", limit, shards)
		}
		err := m.WalkVectors(0, 120, func(n int, v []float32) error {
			if !reflect.DeepEqual(v, want[n]) {
				t.Errorf("limit %d: node %d differs", limit, n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if limit == 500 {
			first := rng.IntN(120)
			m.WalkVectors(first, first+1, func(n int, v []float32) error {
				if !reflect.DeepEqual(v, want[n]) || !reflect.DeepEqual(m.Vector(n), want[n]) {
					t.Errorf("walk from %d differs", n)
				}
				return nil
			})
		}
	}
	for _, s := range sums {
		if s != sums[0] {
			t.Fatalf("weights_sha256 depends on the shards: %v", sums)
		}
	}
}

// FORMAT.md's definition of weights_sha256, taken over a file's bytes.
func TestWeightsSHA256(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	r := modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 0)
	sum := sha256.Sum256(modeltest.MustRead(t, filepath.Join(dir, "weights-00000.bin"))[16:])
	if got := hex.EncodeToString(sum[:]); got != r.WeightsSHA256 {
		t.Errorf("weights_sha256 %s, records hash to %s", r.WeightsSHA256, got)
	}
}

// Redundant overrides and signed zeros must not show in the bytes.
func TestCanonical(t *testing.T) {
	negZero := float32(math.Copysign(0, -1))
	plain := modeltest.TinyWeights()
	noisy := modeltest.TinyWeights()
	// 3 is the parent's
	noisy[1] = shard.Record{Columns: []uint32{0, 1, 3}, Values: []float32{0.25, 1.5, -1}}
	// all are the parent's
	noisy[2] = shard.Record{Columns: []uint32{0, 1, 2, 3}, Values: []float32{0.25, 1.5, negZero, -1}}
	noisy[3] = shard.Record{Columns: []uint32{0, 2}, Values: []float32{negZero, 0.1}} // -0
	// after a pop of the path
	noisy[5] = shard.Record{Columns: []uint32{0, 1, 2, 3}, Values: []float32{-2, 0, float32(1e-20), 3}}
	a := modeltest.Write(t, filepath.Join(t.TempDir(), "a"), modeltest.TinyMeta(), plain, 0)
	b := modeltest.Write(t, filepath.Join(t.TempDir(), "b"), modeltest.TinyMeta(), noisy, 0)
	if a.WeightsSHA256 != b.WeightsSHA256 {
		t.Error("redundant overrides change weights_sha256")
	}
}

func TestWriterRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := map[string]func(w *model.Writer) error{
		"wrong node":     func(w *model.Writer) error { return w.WriteNode(1, nil, nil) },
		"lengths":        func(w *model.Writer) error { return w.WriteNode(0, []uint32{1}, nil) },
		"descending":     func(w *model.Writer) error { return w.WriteNode(0, []uint32{2, 1}, []float32{1, 1}) },
		"repeated":       func(w *model.Writer) error { return w.WriteNode(0, []uint32{1, 1}, []float32{1, 1}) },
		"column too big": func(w *model.Writer) error { return w.WriteNode(0, []uint32{4}, []float32{1}) },
		"nan":            func(w *model.Writer) error { return w.WriteNode(0, []uint32{0}, []float32{nan}) },
		"inf":            func(w *model.Writer) error { return w.WriteNode(0, []uint32{0}, []float32{inf}) },
		"closed early":   func(w *model.Writer) error { _, err := w.Close(modeltest.TinyReport(), nil); return err },
		"nan report": func(w *model.Writer) error {
			for n, x := range modeltest.TinyWeights() {
				if err := w.WriteNode(n, x.Columns, x.Values); err != nil {
					return nil
				}
			}
			r := modeltest.TinyReport()
			r.Objective = math.NaN()
			_, err := w.Close(r, nil)
			return err
		},
	}
	for name, f := range cases {
		dir := filepath.Join(t.TempDir(), "m")
		w, err := model.NewWriter(dir, modeltest.TinyMeta())
		if err != nil {
			t.Fatal(err)
		}
		if f(w) == nil {
			t.Errorf("%s: no error", name)
		}
		w.Abort()
		for _, p := range []string{dir, dir + ".part"} {
			if _, err := os.Stat(p); err == nil {
				t.Errorf("%s: %s left behind", name, filepath.Base(p))
			}
		}
	}
}

func TestMetaRefused(t *testing.T) {
	cases := map[string]func(m *model.Meta){
		"no tree":          func(m *model.Meta) { m.Tree = nil },
		"not preorder":     func(m *model.Meta) { m.Tree.Parent[5] = 2 },
		"under a closed":   func(m *model.Meta) { m.Tree.Parent = []int32{-1, 0, 1, 0, 1, 0}; m.Tree.Depth[3] = 1 },
		"wrong depth":      func(m *model.Meta) { m.Tree.Depth[2] = 1 },
		"self parent":      func(m *model.Meta) { m.Tree.Parent[1] = 1 },
		"no terminal":      func(m *model.Meta) { m.Tree.Leaf = make([]bool, 6) },
		"short slice":      func(m *model.Meta) { m.Tree.Kind = m.Tree.Kind[1:] },
		"label":            func(m *model.Meta) { m.Tree.Label[2] = 4 },
		"label name":       func(m *model.Meta) { m.Labels[0] = "" },
		"label counts":     func(m *model.Meta) { m.LabelCounts = nil },
		"no name":          func(m *model.Meta) { m.Tree.Name[4] = "" },
		"virtual name":     func(m *model.Meta) { m.Tree.Name[0] = "root" },
		"virtual terminal": func(m *model.Meta) { m.Tree.Kind[5] = 2; m.Tree.Name[5] = "" },
		"kind":             func(m *model.Meta) { m.Tree.Kind[1] = 9 },
		"edge":             func(m *model.Meta) { m.Structure.Names[4] = "" },
		"cycle":            func(m *model.Meta) { m.Structure.Children[2] = 3 },
		"bias":             func(m *model.Meta) { m.Options.Bias = math.NaN() },
		"words missing":    func(m *model.Meta) { m.Data.Text = true },
		"words few":        func(m *model.Meta) { m.Data.Text = true; m.Text = &model.Text{} },
		"table":            func(m *model.Meta) { m.Data.Table = &table.Schema{Matrix: 99} },
	}
	for name, f := range cases {
		meta := modeltest.TinyMeta()
		f(&meta)
		dir := filepath.Join(t.TempDir(), "m")
		if _, err := model.NewWriter(dir, meta); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(dir + ".part"); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}

func TestReplaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 40) // several shards
	other := modeltest.TinyWeights()
	other[0].Values[0] = 9
	report := modeltest.Write(t, dir, modeltest.TinyMeta(), other, 0)
	if m := modeltest.Open(t, dir); m.Manifest.Report.WeightsSHA256 != report.WeightsSHA256 {
		t.Error("the older model is still there")
	}
	entries, _ := os.ReadDir(filepath.Dir(dir))
	if len(entries) != 1 {
		t.Errorf("left beside the model: %v", entries)
	}
	if _, err := os.Stat(filepath.Join(dir, "weights-00001.bin")); err == nil {
		t.Error("a shard of the older model is mixed in")
	}
	// A folder with anything else in it is not touched.
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	var input *fs.InputError
	if _, err := model.NewWriter(dir, modeltest.TinyMeta()); !errors.As(err, &input) || !strings.Contains(err.Error(),
		"thesis.tex") {
		t.Errorf("a folder of the user's would be replaced: %v", err)
	}
	// What a killed writer left is swept away.
	dir = filepath.Join(t.TempDir(), "n")
	os.MkdirAll(dir+".part", 0o777)
	if err := fs.Mark(dir + ".part"); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir+".part", "weights-00007.bin"), []byte("half"), 0o666)
	modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 0)
	if _, err := os.Stat(filepath.Join(dir, "weights-00007.bin")); err == nil {
		t.Error("a killed writer's shard is in the model")
	}
}

// Every single damaged byte and every truncation of every file is refused, by name.
func TestCorruptFiles(t *testing.T) {
	src := filepath.Join(t.TempDir(), "m")
	meta := modeltest.TinyMeta()
	meta.Data.Text = true
	meta.Text = &model.Text{Vocabulary: []string{"a", "b", "c"}, IDF: []float64{1, 2, 3}}
	modeltest.Write(t, src, meta, modeltest.TinyWeights(), 60)
	refuseDamage(t, src, 8)
	refuseDamage(t, pruned(t, modeltest.Open(t, src), pruning.Options{Threshold: 0.1}, 1).Dir, 7)
}

func refuseDamage(t *testing.T, src string, files int) {
	t.Helper()
	entries, err := os.ReadDir(src)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < files {
		t.Fatalf("%d files", len(entries))
	}
	for _, e := range entries {
		name := filepath.Join(src, e.Name())
		good := modeltest.MustRead(t, name)
		refuse := func(what string, bad []byte) {
			if err := os.WriteFile(name, bad, 0o666); err != nil {
				t.Fatal(err)
			}
			m, err := model.Open(src)
			var input *fs.InputError
			if err == nil {
				m.Close()
				t.Errorf("%s, %s: opened", e.Name(), what)
			} else if !errors.As(err, &input) || filepath.Base(input.Path) != e.Name() || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %s: error %q does not name the file in one line", e.Name(), what, err)
			}
		}
		for i := 0; i < len(good); i += 1 + len(good)/40 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << (i % 8)
			refuse(fmt.Sprintf("bit flipped at %d", i), bad)
		}
		for _, n := range []int{0, 1, len(good) / 2, len(good) - 1} {
			refuse(fmt.Sprintf("cut to %d", n), good[:n])
		}
		refuse("a byte added", append(append([]byte(nil), good...), '\n'))
		os.Remove(name)
		if _, err := model.Open(src); err == nil || !strings.Contains(err.Error(), "manifest") {
			t.Errorf("%s missing: %v", e.Name(), err)
		}
		os.WriteFile(name, good, 0o666)
	}
	modeltest.Open(t, src)
}

func TestOpenNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	os.WriteFile(file, []byte("x"), 0o666)
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such model",
		file:                       "is a file",
		dir:                        "not a model",
	} {
		_, err := model.Open(path)
		var input *fs.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
		if model.IsModel(path) {
			t.Errorf("%s: a model?", filepath.Base(path))
		}
	}
	m := modeltest.Tiny(t)
	if !model.IsModel(m.Dir) {
		t.Error("a model is not recognised")
	}
}

// The bytes on disk are fixed: a change needs a new version.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "golden")
	if *rewrite {
		os.RemoveAll(golden)
		modeltest.Write(t, golden, modeltest.TinyMeta(), modeltest.TinyWeights(), 80)
	}
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, modeltest.TinyMeta(), modeltest.TinyWeights(), 80)
	sameFiles(t, golden, dir)
	modeltest.Open(t, golden)

	packed := filepath.Join("testdata", "pruned")
	o := pruning.Options{Threshold: 0.2, Values: shard.Halves}
	if *rewrite {
		os.RemoveAll(packed)
		if _, err := pruning.Write(t.Context(), modeltest.Open(t, golden), packed, o, 1); err != nil {
			t.Fatal(err)
		}
	}
	sameFiles(t, packed, pruned(t, modeltest.Open(t, golden), o, 2).Dir)
	modeltest.Open(t, packed)

	meta := modeltest.TinyMeta() // of another form
	meta.Form = form.Form{Weights: form.Whole, Predictor: form.Descent, Link: form.Softmax}
	formed, dir := filepath.Join("testdata", "form"), filepath.Join(t.TempDir(), "m")
	if *rewrite {
		os.RemoveAll(formed)
		modeltest.Write(t, formed, meta, modeltest.TinyWeights(), 80)
	}
	modeltest.Write(t, dir, meta, modeltest.TinyWeights(), 80)
	sameFiles(t, formed, dir)
	if m := modeltest.Open(t, formed); m.Form != meta.Form || m.Manifest.Version != model.FormVersion {
		t.Errorf("read back as version %d, %+v", m.Manifest.Version, m.Form)
	}
}

func sameFiles(t *testing.T, golden, dir string) {
	t.Helper()
	want, err := os.ReadDir(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadDir(dir)
	if len(want) == 0 || len(want) != len(got) {
		t.Fatalf("%d files, golden has %d", len(got), len(want))
	}
	for _, e := range want {
		if a, b := modeltest.MustRead(t, filepath.Join(golden, e.Name())),
			modeltest.MustRead(t, filepath.Join(dir, e.Name())); string(a) != string(b) {
			t.Errorf("%s differs from the golden file", e.Name())
		}
	}
}

func pruned(t testing.TB, m *model.Model, o pruning.Options, threads int) *model.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pruned")
	if _, err := pruning.Write(context.Background(), m, dir, o, threads); err != nil {
		t.Fatal(err)
	}
	return modeltest.Open(t, dir)
}
