package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/export"
	"taxon/internal/model/pruning"
	"taxon/internal/model/scoring"
)

// python returns the interpreter with the libraries: TAXON_FORMATS_PYTHON, else the environment
// that make test-formats builds. Without it tests are skipped, or fail if they were requested.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("TAXON_FORMATS_PYTHON")
	if name == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("no folder for the environment: %v", err)
		}
		name = filepath.Join(cache, "taxon", "formats", "bin", "python")
	}
	if _, err := os.Stat(name); err != nil {
		if os.Getenv("TAXON_TEST_FORMATS") != "" {
			t.Fatalf("no Python environment: %v", err)
		}
		t.Skip("no Python environment with the readers: make test-formats builds it")
	}
	return name
}

// problem is a model to export and rows to predict.
type problem struct {
	meta   model.Meta
	random *rand.Rand
	nodes  int
	dense  float64 // share of the columns that a node overrides
}

// grow generates the tree: under a virtual root, every third node has children, and one of them is
// its spawned leaf.
func (p *problem) grow(label func(i int) string) {
	t := &taxonomy.Tree{Parent: []int32{-1}, Kind: []taxonomy.Kind{taxonomy.Virtual}, Name: []string{""},
		Label: []int32{-1}, Depth: []int32{0}, Leaf: []bool{false}}
	add := func(parent int32, kind taxonomy.Kind, name string, leaf bool) {
		id := int32(-1)
		if leaf {
			id = int32(len(p.meta.Labels))
			p.meta.Labels, p.meta.LabelCounts = append(p.meta.Labels, name), append(p.meta.LabelCounts, 1)
		}
		t.Parent, t.Kind, t.Name, t.Label = append(t.Parent, parent), append(t.Kind, kind), append(t.Name, name),
			append(t.Label, id)
		t.Depth, t.Leaf = append(t.Depth, t.Depth[parent]+1), append(t.Leaf, leaf)
	}
	for i := 0; t.Len() < p.nodes; i++ {
		if i%3 < 2 {
			add(0, taxonomy.Node, label(t.Len()), true)
			continue
		}
		inner := int32(t.Len())
		name := label(t.Len())
		add(0, taxonomy.Node, name, false)
		add(inner, taxonomy.Spawned, name, true)
		add(inner, taxonomy.Node, label(t.Len()), true)
	}
	p.meta.Tree = t
}

// write creates the model.
func (p *problem) write(t *testing.T) *model.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	w, err := model.NewWriter(dir, p.meta)
	if err != nil {
		t.Fatal(err)
	}
	width := len(p.meta.Feature)
	if p.meta.Options.Bias > 0 {
		width++
	}
	for n := range p.meta.Tree.Len() {
		var columns []uint32
		var values []float32
		for c := range width {
			if p.random.Float64() < p.dense || c == len(p.meta.Feature) {
				columns, values = append(columns, uint32(c)), append(values, float32(p.random.NormFloat64()))
			}
		}
		if err := w.WriteNode(n, columns, values); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(model.Report{Method: "rr-svm", StoppedBy: "gap"}, nil); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// rows writes instances and the labels that m predicts for them.
func (p *problem) rows(t *testing.T, m *model.Model, dir string, n int) {
	t.Helper()
	var batch scoring.Batch
	var data, labels bytes.Buffer
	column := map[uint32]uint32{}
	width := uint32(0)
	for c, f := range p.meta.Feature {
		column[f] = uint32(c)
		width = max(width, f)
	}
	for range n {
		var columns []uint32
		var values []float32
		data.WriteString("0")
		for f := uint32(1); f <= width; f++ {
			if p.random.Float64() < 0.7 {
				continue
			}
			v := float32(p.random.NormFloat64())
			fmt.Fprintf(&data, " %d:%s", f, strconv.FormatFloat(float64(v), 'g', -1, 64))
			if c, ok := column[f]; ok {
				columns, values = append(columns, c), append(values, v)
			}
		}
		data.WriteString("\n")
		batch.Add(columns, values)
	}
	pred, err := scoring.New(m, scoring.Options{Top: 1})
	if err != nil {
		t.Fatal(err)
	}
	var r scoring.Result
	if err := pred.NewScorer().Predict(&batch, &r); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		fmt.Fprintln(&labels, m.Tree.Name[r.Best(i)[0].Node])
	}
	put(t, dir, "test.svm", data.Bytes())
	put(t, dir, "expected.txt", labels.Bytes())
}

func put(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// exportAll writes every format and the other inputs of read.py.
func exportAll(t *testing.T, m *model.Model, dir string, threshold float64) {
	t.Helper()
	s, err := export.NewSource(m, threshold)
	if err != nil {
		t.Fatal(err)
	}
	text, err := export.NewTextExporter(m, threshold)
	if err != nil {
		t.Fatal(err)
	}
	ctx, nodes := t.Context(), m.Tree.Len()
	for name, write := range map[string]func(io.Writer) error{
		"weights.npz":         func(w io.Writer) error { return s.NPZ(ctx, w, 0, nodes, 2) },
		"weights.safetensors": func(w io.Writer) error { return s.Safetensors(ctx, w, 0, nodes, 2) },
		"weights.parquet":     func(w io.Writer) error { return s.Parquet(ctx, w, 0, nodes, 2) },
		"weights.model":       func(w io.Writer) error { return s.Liblinear(ctx, w, 2) },
		"weights.txt":         func(w io.Writer) error { return text.WriteRange(ctx, w, 0, m.Tree.Len(), 2) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		put(t, dir, name, b.Bytes())
	}
	put(t, dir, "labels.txt", s.Labels(0, nodes))
	if words := s.Features()["features.txt"]; words != nil {
		put(t, dir, "features.txt", words)
	}
	features := uint32(0)
	for _, f := range m.Feature {
		features = max(features, f)
	}
	liblinear, err := exec.LookPath("liblinear-predict")
	if err != nil {
		liblinear = ""
	}
	meta, err := json.Marshal(map[string]any{"bias": m.Options.Bias, "features": features, "zero_based": false,
		"liblinear": liblinear})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "meta.json", meta)
}

// TestReadersAgree checks that each library opens its format, and that those that predict give
// taxon's labels.
func TestReadersAgree(t *testing.T) {
	interpreter := python(t)
	name := func(i int) string { return "c" + strconv.Itoa(i) + "é" }
	scattered := []uint32{7, 2, 30, 5, 1, 12, 19, 20}
	for _, c := range []struct {
		name     string
		options  model.Options
		features []uint32
		nodes    int
		label    func(int) string
		text     bool

		// threshold is that of the export. The model itself is pruned by it first, so that labels
		// agree.
		threshold float64
	}{
		{"names and bias", model.Options{Method: "rr-svm", Loss: "hinge", Bias: 0.5}, scattered, 40, name, false, 0},
		{"numbers, no bias", model.Options{Method: "bsvm", Loss: "squared-hinge"}, scattered, 40,
			func(i int) string { return strconv.Itoa(100 - 3*i) }, false, 0},
		{"two classes", model.Options{Method: "bsvm", Loss: "hinge", Bias: 1}, scattered, 3, name, false, 0},
		{"text", model.Options{Method: "rr-svm", Loss: "hinge", Bias: 1}, []uint32{3, 1, 2, 4}, 30, name, true, 0},
		{"pruned", model.Options{Method: "rr-svm", Loss: "hinge", Bias: 1}, scattered, 300, name, false, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &problem{random: rand.New(rand.NewPCG(4, 2)), nodes: c.nodes, dense: 0.4,
				meta: model.Meta{Options: c.options, Data: model.DataInfo{Instances: 1, Positives: 1, Text: c.text},
					Feature: c.features}}
			if c.text {
				p.meta.Text = &model.Text{Vocabulary: []string{"räder", "fell", "日本", "bias"}, IDF: []float64{1, 1, 1, 1}}
			}
			p.grow(c.label)
			m := p.write(t)
			if c.threshold > 0 {
				m = prune(t, m, c.threshold)
			}
			dir := t.TempDir()
			exportAll(t, m, dir, 0)
			p.rows(t, m, dir, 200)
			out, err := exec.CommandContext(t.Context(), interpreter, "read.py", dir).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), "\n"); n != 4 {
				t.Errorf("%d checks, want 4:\n%s", n, out)
			}
			t.Logf("%s", out)
		})
	}
}

// TestRecipe runs the lines of docs/formats.md, on data with names for labels and a feature that
// the model does not know.
func TestRecipe(t *testing.T) {
	interpreter := python(t)
	document, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(document), "```python\n")
	recipe, _, ok := strings.Cut(recipe, "```")
	if !ok {
		t.Fatal("docs/formats.md has no recipe in Python")
	}
	p := &problem{random: rand.New(rand.NewPCG(4, 2)), nodes: 40, dense: 0.4,
		meta: model.Meta{Options: model.Options{Method: "rr-svm", Loss: "hinge", Bias: 1},
			Data: model.DataInfo{Instances: 1, Positives: 1}, Feature: []uint32{7, 2, 30, 5, 1}}}
	p.grow(func(i int) string { return "c" + strconv.Itoa(i) + "é" })
	m := p.write(t)
	dir := t.TempDir()
	exportAll(t, m, dir, 0)
	p.rows(t, m, dir, 200)
	expected, err := os.ReadFile(filepath.Join(dir, "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "test.svm"))
	if err != nil {
		t.Fatal(err)
	}
	var named bytes.Buffer
	truth := strings.Fields(string(expected))
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		fmt.Fprintf(&named, "%s,other%s 31:1\n", truth[i], strings.TrimPrefix(line, "0"))
	}
	put(t, dir, "test.svm", named.Bytes())
	run := exec.CommandContext(t.Context(), interpreter, "-c", recipe)
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil || string(out) != string(expected) {
		t.Errorf("%v\n%s\nwant\n%s", err, out, expected)
	}
}

func prune(t *testing.T, m *model.Model, threshold float64) *model.Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pruned")
	if _, err := pruning.Write(t.Context(), m, dir, pruning.Options{Threshold: threshold}, 2); err != nil {
		t.Fatal(err)
	}
	small, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { small.Close() })
	return small
}
