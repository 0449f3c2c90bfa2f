package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taxon/internal/app/estimate"
	"taxon/internal/data/dataset"
	"taxon/internal/data/generate"
	"taxon/internal/fs"
	"taxon/internal/model/modeltest"
	"taxon/internal/ui/progress"
)

const rows = "a,b 1:1 70000:2\n\na 3:0.5\n 3:1\nb,c,d 1:1\n"

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lookAt(t *testing.T, o Options) *Info {
	t.Helper()
	o.Method = "rr-svm"
	i, err := Look(t.Context(), o, progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// A file, the set that ingest makes of it, and its rows on standard input count the same.
func TestLookCounts(t *testing.T) {
	path := write(t, rows)
	set := filepath.Join(t.TempDir(), "set")
	if _, err := dataset.Ingest(t.Context(), dataset.Options{Paths: []string{path}, Out: set}); err != nil {
		t.Fatal(err)
	}
	file := lookAt(t, Options{Path: path, Plan: &Plan{Cluster: estimate.Cluster{Workers: 2, Slots: 1, Stores: 1}}})
	d := file.Data
	if file.Kind != "data" || file.Bytes != int64(len(rows)) || d.Instances != 4 || *d.Features != 3 || *d.Nonzeros != 5 ||
		d.Labels != 4 || d.LabelEntries != 6 ||
		d.LabelsPerInstance != 1.5 || d.MaxLabels != 3 || file.Plan == nil || file.Memory == nil || len(file.Notes) != 2 {
		t.Errorf("file: %+v %+v", file, d)
	}
	if want := (&Tree{Nodes: 4, Terminals: 4}); !reflect.DeepEqual(file.Tree, want) {
		t.Errorf("tree %+v, want %+v", file.Tree, want)
	}
	stream := lookAt(t, Options{Path: fs.Stdin, Files: fs.Local{In: strings.NewReader(rows)}})
	ingested := lookAt(t, Options{Path: set})
	if ingested.Kind != "dataset" || ingested.Fingerprint == "" || ingested.Plan != nil {
		t.Errorf("data set: %+v", ingested)
	}
	for _, other := range []*Info{stream, ingested} {
		got := *other.Data
		got.Fingerprint = ""
		if !reflect.DeepEqual(&got, d) || !reflect.DeepEqual(other.Tree, file.Tree) || other.Seconds != file.Seconds {
			t.Errorf("%s: %+v, of the file %+v", other.Kind, got, d)
		}
	}
}

func TestLookModel(t *testing.T) {
	i := lookAt(t, Options{Path: modeltest.Animals(t, 10)})
	if want := (&Tree{Nodes: 6, Terminals: 4, Internals: 2, Spawned: 1, Virtual: true, Depth: 2}); i.Kind != "model" ||
		!reflect.DeepEqual(i.Tree, want) {
		t.Errorf("%s, tree %+v, want %+v", i.Kind, i.Tree, want)
	}
	if i.Instances != 10 || *i.Features != 3 || i.Labels != 4 || i.Structure == nil || i.Bytes == 0 ||
		i.Options.Loss != "hinge" {
		t.Errorf("%+v", i)
	}
}

func TestLookStructure(t *testing.T) {
	graph := write(t, "# classes\nall a\nall b\nb c\na c\nall d\n")
	if i := lookAt(t, Options{Path: graph}); i.Kind != "structure" || i.Structure == nil || i.Data != nil {
		t.Errorf("%+v", i)
	}
	i := lookAt(t, Options{Path: write(t, rows), Hierarchy: graph})
	if i.Structure == nil || i.Tree.Internals != 2 || len(i.Notes) == 0 || !strings.Contains(i.Notes[len(i.Notes)-1],
		"several parents") {
		t.Errorf("%+v, tree %+v", i, i.Tree)
	}
}

func TestLookText(t *testing.T) {
	i := lookAt(t, Options{Path: write(t, "a\tone two\nb\ttwo\n"), Text: true})
	if i.Form != "text" || i.Features != nil || i.Memory != nil || !strings.Contains(strings.Join(i.Notes, "\n"),
		"vocabulary") {
		t.Errorf("%+v %+v", i, i.Data)
	}
}

func TestLookErrors(t *testing.T) {
	for name, o := range map[string]Options{
		"nothing there": {Path: filepath.Join(t.TempDir(), "none")},
		"a bad row":     {Path: write(t, "a 1:1 0:x\n")},
		"a ring":        {Path: write(t, rows), Hierarchy: write(t, "a b\nb a\n")},
	} {
		o.Method = "rr-svm"
		if _, err := Look(t.Context(), o, progress.Discard{}); !fs.IsInput(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Look(ctx, Options{Path: write(t, rows), Method: "rr-svm"}, progress.Discard{}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

func TestLooksLikeStructure(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "a b": true, "# c\n\na b # c\n": true, "a 1:2\n": false, "a b\na b c\n": false, "a x:2\n": true,
		"1 2\n": true, "1:2 3:4": false,
		strings.Repeat("a b\n", sniffBytes/4-1) + "a b ": true, // the last line is cut off
	} {
		if got := looksLikeStructure([]byte(text)); got != want {
			t.Errorf("%.20q: %v", text, got)
		}
	}
}

// A training on a file is estimated as the one on its data set, which train reports by: the
// features' frequencies count.
func TestEstimateOfFileAndSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range 300 {
		fmt.Fprintf(&b, "c%d", rng.IntN(30))
		for i, f := 0, 1+rng.IntN(3); i < 10; i, f = i+1, f+1+rng.IntN(5*f) {
			fmt.Fprintf(&b, " %d:1", f)
		}
		b.WriteString("\n")
	}
	path, set, tree := write(t, b.String()), filepath.Join(t.TempDir(), "set"), ""
	for c := range 30 {
		tree += fmt.Sprintf("p%d c%d\n", c/5, c)
	}
	tree = write(t, tree)
	if _, err := dataset.Ingest(t.Context(), dataset.Options{Paths: []string{path}, Out: set}); err != nil {
		t.Fatal(err)
	}
	file, ingested := lookAt(t, Options{Path: path, Hierarchy: tree, Threads: 1}),
		lookAt(t, Options{Path: set, Hierarchy: tree, Threads: 1})
	if file.Tree.Internals == 0 || !reflect.DeepEqual(file.Memory, ingested.Memory) || file.Seconds != ingested.Seconds {
		t.Errorf("file: %+v, %g s; data set: %+v, %g s", file.Memory, file.Seconds, ingested.Memory, ingested.Seconds)
	}
}

func TestFeatureRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var c featureRows
	rows := map[uint32]uint32{}
	for range 10_000 {
		i := rng.Uint32N(1000) << rng.UintN(22)
		c.add(i)
		rows[i]++
	}
	want := slices.Sorted(maps.Values(rows))
	slices.Reverse(want)
	if c.count != int64(len(rows)) || !slices.Equal(c.ranked(), want) {
		t.Errorf("%d features, want %d; rows %v, want %v", c.count, len(rows), c.ranked(), want)
	}
}

func TestDescribeSizes(t *testing.T) {
	if describeSizes[int](nil) != nil {
		t.Error("sizes of no class")
	}
	s := describeSizes([]int{101, 5, 6, 1, 0})
	bins := ""
	for _, b := range s.Bins {
		bins += fmt.Sprint(b.From, " ", b.To == nil, " ", b.Classes, "; ")
	}
	want := "0 false 1; 1 false 1; 2 false 1; 6 false 1; 101 true 1; "
	if s.Min != 0 || s.Median != 5 || s.Max != 101 || s.Mean != 22.6 ||
		bins != want {
		t.Errorf("%+v, bins %s", s, bins)
	}
}

func TestShape(t *testing.T) {
	s, err := generate.Like(generate.Names()[0], 0.01)
	if err != nil {
		t.Fatal(err)
	}
	i, err := Shape(s, Options{Method: "rr-svm", Plan: &Plan{estimate.Cluster{Workers: 2, Slots: 1, Stores: 1},
		[]int{1, 2}}})
	if err != nil || i.Kind != "shape" || i.Instances != int64(s.Instances) || i.Labels != int64(s.Classes) ||
		i.Plan == nil {
		t.Errorf("%+v %v", i, err)
	}
	if _, err := Shape(s, Options{Method: "none"}); err == nil {
		t.Error("an unknown method has a plan")
	}
}
