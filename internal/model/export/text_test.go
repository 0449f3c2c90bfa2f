package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/modeltest"
)

func exportText(t testing.TB, m *model.Model, threshold float64, threads int) string {
	t.Helper()
	e, err := NewTextExporter(m, threshold)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := e.WriteRange(context.Background(), &b, 0, m.Tree.Len(), threads); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func writeTextParts(ctx context.Context, e *TextExporter, dir string) error {
	return WriteParts(ctx, dir, ".txt", Parts(e.m), 2, func(ctx context.Context, w io.Writer, first, last int) error {
		return e.WriteRange(ctx, w, first, last, 1)
	}, nil)
}

func TestExportText(t *testing.T) {
	m := modeltest.Tiny(t)
	for threshold, want := range map[float64]string{
		0: "virtual - 7:0.5 bias:-1\n" +
			"node animal 2:1.5 7:0.25 bias:-1\n" +
			"spawned animal 2:1.5 7:0.25 bias:-1\n" +
			"node cat 2:1.5 100:0.1 bias:-1\n" +
			"node dog 2:1.5 7:0.25 bias:-0.75\n" +
			"node car 7:-2 100:1e-20 bias:3\n",
		0.25: "virtual - 7:0.5 bias:-1\n" +
			"node animal 2:1.5 7:0.25 bias:-1\n" +
			"spawned animal 2:1.5 7:0.25 bias:-1\n" +
			"node cat 2:1.5 bias:-1\n" +
			"node dog 2:1.5 7:0.25 bias:-0.75\n" +
			"node car 7:-2 bias:3\n",
	} {
		if got := exportText(t, m, threshold, 2); got != want {
			t.Errorf("threshold %v:\n%s\nwant\n%s", threshold, got, want)
		}
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := NewTextExporter(m, bad); err == nil {
			t.Errorf("threshold %v accepted", bad)
		}
	}
}

// Every exported number reads back to the same float32, whatever the threads.
func TestExportReadsBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	meta, weights := modeltest.Random(rng, modeltest.Shape{Nodes: 150, Features: 20, Overrides: 6, Branch: 4, Bias: 1})
	for n := range weights {
		for i := range weights[n].Values {
			if v := math.Float32frombits(rng.Uint32()); v-v == 0 {
				weights[n].Values[i] = v
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, weights, 600)
	m := modeltest.Open(t, dir)
	text := exportText(t, m, 0, 1)
	if exportText(t, m, 0, 3) != text {
		t.Error("the text depends on the threads")
	}
	want := modeltest.Dense(meta, weights)
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		got := make([]float32, m.Columns())
		for _, f := range strings.Fields(line)[2:] {
			key, val, _ := strings.Cut(f, ":")
			v, err := strconv.ParseFloat(val, 32)
			if err != nil {
				t.Fatal(err)
			}
			c := uint32(len(meta.Feature))
			if key != "bias" {
				index, err := strconv.Atoi(key)
				if err != nil {
					t.Fatal(err)
				}
				c = uint32(slices.Index(meta.Feature, uint32(index)))
			}
			got[c] = float32(v)
		}
		for c := range got {
			if got[c] != want[n][c] {
				t.Fatalf("node %d, column %d: %v, want %v", n, c, got[c], want[n][c])
			}
		}
	}
	checkParts(t, m, text)
}

func checkParts(t *testing.T, m *model.Model, text string) {
	t.Helper()
	e, err := NewTextExporter(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "parts")
	if err := writeTextParts(context.Background(), e, dir); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	var all []byte
	for i := range len(entries) - 1 {
		all = append(all, modeltest.MustRead(t, filepath.Join(dir, fmt.Sprintf("part-%05d.txt", i)))...)
	}
	if len(entries) < 3 || len(modeltest.MustRead(t, filepath.Join(dir, "_SUCCESS"))) != 0 || string(all) != text {
		t.Errorf("%d files; the parts do not add up to the one file", len(entries))
	}
	if err := writeTextParts(context.Background(), e, dir); !fs.IsInput(err) {
		t.Errorf("parts into a full folder: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir = filepath.Join(t.TempDir(), "parts")
	if err := writeTextParts(ctx, e, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a cancelled export left its folder")
	}
}

func TestExportWriteError(t *testing.T) {
	e, err := NewTextExporter(modeltest.Tiny(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.WriteRange(context.Background(), fullDisk{}, 0, e.m.Tree.Len(), 2); err == nil ||
		!strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v", err)
	}
}

// TestExportEdges: of a model by descent a line is an edge.
func TestExportEdges(t *testing.T) {
	meta := modeltest.TinyMeta()
	meta.Form = form.Form{Weights: form.Whole, Predictor: form.Descent}
	dir := filepath.Join(t.TempDir(), "m")
	modeltest.Write(t, dir, meta, modeltest.TinyWeights(), 0)
	e, err := NewTextExporter(modeltest.Open(t, dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := e.WriteRange(context.Background(), &b, 0, e.m.Tree.Len(), 2); err != nil {
		t.Fatal(err)
	}
	want := "edge -,animal 2:1.5 7:0.25\nedge animal,animal\nedge animal,cat 100:0.1\nedge animal,dog bias:-0.75\nedge " +
		"-,car 7:-2 100:1e-20 bias:3\n"
	if b.String() != want {
		t.Errorf("%q\nwant\n%q", b.String(), want)
	}
}
