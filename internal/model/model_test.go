package model

import (
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

	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/model/form"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden model")

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	report := writeModel(t, dir, tinyMeta(), tinyWeights(), 0)
	m := openModel(t, dir)
	if !reflect.DeepEqual(m.Meta, tinyMeta()) {
		t.Errorf("meta:\n got %+v\nwant %+v", m.Meta, tinyMeta())
	}
	if !reflect.DeepEqual(m.Trace, tinyTrace()) {
		t.Errorf("trace: %+v", m.Trace)
	}
	want := tinyReport()
	want.Nodes, want.Terminals, want.Features, want.WeightsSHA256 = 6, 4, 3, report.WeightsSHA256
	if !reflect.DeepEqual(m.Manifest.Report, want) || !reflect.DeepEqual(report, want) {
		t.Errorf("report:\n got %+v\nwant %+v", m.Manifest.Report, want)
	}
	for n, v := range denseVectors(tinyMeta(), tinyWeights()) {
		if got := m.Vector(n); !reflect.DeepEqual(got, v) {
			t.Errorf("node %d: %v, want %v", n, got, v)
		}
	}
	if m.LabelsPerInstance() != 1 {
		t.Errorf("labels an instance: %v", m.LabelsPerInstance())
	}
}

func TestTextRoundTrip(t *testing.T) {
	meta := tinyMeta()
	meta.Data.Text = true
	meta.Text = &Text{Vocabulary: []string{"fell", "räder", "日本"}, IDF: []float64{0.1, 1.0 / 3, 7}}
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, tinyWeights(), 0)
	if m := openModel(t, dir); !reflect.DeepEqual(m.Text, meta.Text) {
		t.Errorf("text: %+v", m.Text)
	}
}

// Names may be any text, control characters and quotes too.
func TestNamesRoundTrip(t *testing.T) {
	meta := tinyMeta()
	meta.Labels[0], meta.Labels[1], meta.Tree.Name[4], meta.Structure.Names[4] = "a\tb, c\n", `"a"`, "x\n: #", "y\x00"
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, meta, tinyWeights(), 0)
	if m := openModel(t, dir); !reflect.DeepEqual(m.Labels, meta.Labels) || !reflect.DeepEqual(m.Tree, meta.Tree) || !reflect.DeepEqual(m.Structure, meta.Structure) {
		t.Errorf("labels %q, tree %q, structure %q", m.Labels, m.Tree.Name, m.Structure.Names)
	}
}

// Weights and weights_sha256 must not depend on the cut into shards.
func TestShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	meta, weights := randomModel(rng, shape{nodes: 120, features: 40, overrides: 8, branch: 4, bias: 1})
	want := denseVectors(meta, weights)
	var sums []string
	for _, limit := range []int64{0, 1, 500, 5000} {
		dir := filepath.Join(t.TempDir(), "m")
		r := writeModel(t, dir, meta, weights, limit)
		sums = append(sums, r.WeightsSHA256)
		m := openModel(t, dir)
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
	r := writeModel(t, dir, tinyMeta(), tinyWeights(), 0)
	sum := sha256.Sum256(mustRead(t, filepath.Join(dir, "weights-00000.bin"))[16:])
	if got := hex.EncodeToString(sum[:]); got != r.WeightsSHA256 {
		t.Errorf("weights_sha256 %s, records hash to %s", r.WeightsSHA256, got)
	}
}

// Redundant overrides and signed zeros must not show in the bytes.
func TestCanonical(t *testing.T) {
	negZero := float32(math.Copysign(0, -1))
	plain := tinyWeights()
	noisy := tinyWeights()
	noisy[1] = nodeWeights{[]uint32{0, 1, 3}, []float32{0.25, 1.5, -1}}               // 3 is the parent's
	noisy[2] = nodeWeights{[]uint32{0, 1, 2, 3}, []float32{0.25, 1.5, negZero, -1}}   // all are the parent's
	noisy[3] = nodeWeights{[]uint32{0, 2}, []float32{negZero, 0.1}}                   // -0
	noisy[5] = nodeWeights{[]uint32{0, 1, 2, 3}, []float32{-2, 0, float32(1e-20), 3}} // after a pop of the path
	a := writeModel(t, filepath.Join(t.TempDir(), "a"), tinyMeta(), plain, 0)
	b := writeModel(t, filepath.Join(t.TempDir(), "b"), tinyMeta(), noisy, 0)
	if a.WeightsSHA256 != b.WeightsSHA256 {
		t.Error("redundant overrides change weights_sha256")
	}
}

func TestWriterRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := map[string]func(w *Writer) error{
		"wrong node":     func(w *Writer) error { return w.WriteNode(1, nil, nil) },
		"lengths":        func(w *Writer) error { return w.WriteNode(0, []uint32{1}, nil) },
		"descending":     func(w *Writer) error { return w.WriteNode(0, []uint32{2, 1}, []float32{1, 1}) },
		"repeated":       func(w *Writer) error { return w.WriteNode(0, []uint32{1, 1}, []float32{1, 1}) },
		"column too big": func(w *Writer) error { return w.WriteNode(0, []uint32{4}, []float32{1}) },
		"nan":            func(w *Writer) error { return w.WriteNode(0, []uint32{0}, []float32{nan}) },
		"inf":            func(w *Writer) error { return w.WriteNode(0, []uint32{0}, []float32{inf}) },
		"closed early":   func(w *Writer) error { _, err := w.Close(tinyReport(), nil); return err },
		"nan report": func(w *Writer) error {
			for n, x := range tinyWeights() {
				if err := w.WriteNode(n, x.columns, x.values); err != nil {
					return nil
				}
			}
			r := tinyReport()
			r.Objective = math.NaN()
			_, err := w.Close(r, nil)
			return err
		},
	}
	for name, f := range cases {
		dir := filepath.Join(t.TempDir(), "m")
		w, err := NewWriter(dir, tinyMeta())
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
	cases := map[string]func(m *Meta){
		"no tree":          func(m *Meta) { m.Tree = nil },
		"not preorder":     func(m *Meta) { m.Tree.Parent[5] = 2 },
		"under a closed":   func(m *Meta) { m.Tree.Parent = []int32{-1, 0, 1, 0, 1, 0}; m.Tree.Depth[3] = 1 },
		"wrong depth":      func(m *Meta) { m.Tree.Depth[2] = 1 },
		"self parent":      func(m *Meta) { m.Tree.Parent[1] = 1 },
		"no terminal":      func(m *Meta) { m.Tree.Leaf = make([]bool, 6) },
		"short slice":      func(m *Meta) { m.Tree.Kind = m.Tree.Kind[1:] },
		"label":            func(m *Meta) { m.Tree.Label[2] = 4 },
		"label name":       func(m *Meta) { m.Labels[0] = "" },
		"label counts":     func(m *Meta) { m.LabelCounts = nil },
		"no name":          func(m *Meta) { m.Tree.Name[4] = "" },
		"virtual name":     func(m *Meta) { m.Tree.Name[0] = "root" },
		"virtual terminal": func(m *Meta) { m.Tree.Kind[5] = 2; m.Tree.Name[5] = "" },
		"kind":             func(m *Meta) { m.Tree.Kind[1] = 9 },
		"edge":             func(m *Meta) { m.Structure.Names[4] = "" },
		"cycle":            func(m *Meta) { m.Structure.Children[2] = 3 },
		"bias":             func(m *Meta) { m.Options.Bias = math.NaN() },
		"words missing":    func(m *Meta) { m.Data.Text = true },
		"words few":        func(m *Meta) { m.Data.Text = true; m.Text = &Text{} },
		"table":            func(m *Meta) { m.Data.Table = &table.Schema{Matrix: 99} },
	}
	for name, f := range cases {
		meta := tinyMeta()
		f(&meta)
		dir := filepath.Join(t.TempDir(), "m")
		if _, err := NewWriter(dir, meta); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := os.Stat(dir + ".part"); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}

func TestReplaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, tinyMeta(), tinyWeights(), 40) // several shards
	other := tinyWeights()
	other[0].values[0] = 9
	report := writeModel(t, dir, tinyMeta(), other, 0)
	if m := openModel(t, dir); m.Manifest.Report.WeightsSHA256 != report.WeightsSHA256 {
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
	if _, err := NewWriter(dir, tinyMeta()); !errors.As(err, &input) || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("a folder of the user's would be replaced: %v", err)
	}
	// What a killed writer left is swept away.
	dir = filepath.Join(t.TempDir(), "n")
	os.MkdirAll(dir+".part", 0o777)
	if err := fs.Mark(dir + ".part"); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir+".part", "weights-00007.bin"), []byte("half"), 0o666)
	writeModel(t, dir, tinyMeta(), tinyWeights(), 0)
	if _, err := os.Stat(filepath.Join(dir, "weights-00007.bin")); err == nil {
		t.Error("a killed writer's shard is in the model")
	}
}

// Every single damaged byte and every truncation of every file is refused, by name.
func TestCorruptFiles(t *testing.T) {
	src := filepath.Join(t.TempDir(), "m")
	meta := tinyMeta()
	meta.Data.Text = true
	meta.Text = &Text{Vocabulary: []string{"a", "b", "c"}, IDF: []float64{1, 2, 3}}
	writeModel(t, src, meta, tinyWeights(), 60)
	refuseDamage(t, src, 8)
	refuseDamage(t, pruned(t, openModel(t, src), PruneOptions{Threshold: 0.1}, 1).Dir, 7)
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
		good := mustRead(t, name)
		refuse := func(what string, bad []byte) {
			if err := os.WriteFile(name, bad, 0o666); err != nil {
				t.Fatal(err)
			}
			m, err := Open(src)
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
		if _, err := Open(src); err == nil || !strings.Contains(err.Error(), "manifest") {
			t.Errorf("%s missing: %v", e.Name(), err)
		}
		os.WriteFile(name, good, 0o666)
	}
	openModel(t, src)
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
		_, err := Open(path)
		var input *fs.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
		if IsModel(path) {
			t.Errorf("%s: a model?", filepath.Base(path))
		}
	}
	m := tinyModel(t)
	if !IsModel(m.Dir) {
		t.Error("a model is not recognised")
	}
}

// The bytes on disk are fixed: a change needs a new version.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "golden")
	if *rewrite {
		os.RemoveAll(golden)
		writeModel(t, golden, tinyMeta(), tinyWeights(), 80)
	}
	dir := filepath.Join(t.TempDir(), "m")
	writeModel(t, dir, tinyMeta(), tinyWeights(), 80)
	sameFiles(t, golden, dir)
	openModel(t, golden)

	packed := filepath.Join("testdata", "pruned")
	o := PruneOptions{Threshold: 0.2, Values: Halves}
	if *rewrite {
		os.RemoveAll(packed)
		if _, err := openModel(t, golden).WritePruned(t.Context(), packed, o, 1); err != nil {
			t.Fatal(err)
		}
	}
	sameFiles(t, packed, pruned(t, openModel(t, golden), o, 2).Dir)
	openModel(t, packed)

	meta := tinyMeta() // of another form
	meta.Form = form.Form{Weights: form.Whole, Predictor: form.Descent, Link: form.Softmax}
	formed, dir := filepath.Join("testdata", "form"), filepath.Join(t.TempDir(), "m")
	if *rewrite {
		os.RemoveAll(formed)
		writeModel(t, formed, meta, tinyWeights(), 80)
	}
	writeModel(t, dir, meta, tinyWeights(), 80)
	sameFiles(t, formed, dir)
	if m := openModel(t, formed); m.Form != meta.Form || m.Manifest.Version != FormVersion {
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
		if a, b := mustRead(t, filepath.Join(golden, e.Name())), mustRead(t, filepath.Join(dir, e.Name())); string(a) != string(b) {
			t.Errorf("%s differs from the golden file", e.Name())
		}
	}
}
