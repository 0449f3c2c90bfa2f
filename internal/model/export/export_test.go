package export

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"go.uber.org/goleak"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/ui/progress"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// animals: features 7, 2 and 4 of the input; column 3 is the bias.
//
//	virtual -> animal -> (spawned leaf of animal), cat ; car
func animals(t *testing.T, words []string) *model.Model {
	t.Helper()
	meta := model.Meta{
		Options: model.Options{Method: "rr-svm", Loss: "hinge", Bias: 1},
		Data:    model.DataInfo{Fingerprint: "f00d", Instances: 10, Positives: 10, Text: words != nil},
		Tree: &taxonomy.Tree{
			Parent: []int32{-1, 0, 1, 1, 0},
			Kind:   []taxonomy.Kind{taxonomy.Virtual, taxonomy.Node, taxonomy.Spawned, taxonomy.Node, taxonomy.Node},
			Name:   []string{"", "animal", "animal", "cat", "car"},
			Label:  []int32{-1, -1, 0, 1, 2},
			Depth:  []int32{0, 1, 2, 2, 1},
			Leaf:   []bool{false, false, true, true, true},
		},
		Labels: []string{"animal", "cat", "car"}, LabelCounts: []uint32{2, 4, 1}, Feature: []uint32{7, 2, 4},
	}
	if words != nil {
		meta.Text = &model.Text{Vocabulary: words, IDF: []float64{1, 1, 1}}
	}
	dir := filepath.Join(t.TempDir(), "m")
	w, err := model.NewWriter(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	for n, x := range []struct {
		columns []uint32
		values  []float32
	}{
		{[]uint32{0, 3}, []float32{0.5, -1}},
		{[]uint32{0, 1}, []float32{0.25, 1.5}},
		{},
		{[]uint32{0, 2}, []float32{0, 0.1}},
		{[]uint32{0, 3}, []float32{-2, 3}},
	} {
		if err := w.WriteNode(n, x.columns, x.values); err != nil {
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

func source(t *testing.T, m *model.Model, threshold float64) *Source {
	t.Helper()
	s, err := NewSource(m, threshold)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bytesOf(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The matrix of animals, by rows: animal, cat, car; 7 features and the bias.
var (
	wantBegin   = []int64{0, 3, 6, 8}
	wantIndices = []int32{1, 6, 7, 1, 3, 7, 6, 7}
	wantData    = []float32{1.5, 0.25, -1, 1.5, 0.1, -1, -2, 3}
)

func numbers[T any](t *testing.T, b []byte) []T {
	t.Helper()
	var zero T
	out := make([]T, len(b)/binary.Size(zero))
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

func TestNPZ(t *testing.T) {
	s := source(t, animals(t, nil), 0)
	b := bytesOf(t, func(w io.Writer) error { return s.NPZ(t.Context(), w, 0, 5, 2) })
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	arrays := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		a, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		head := 10 + int(binary.LittleEndian.Uint16(a[8:]))
		if head%64 != 0 || a[head-1] != '\n' || !bytes.HasPrefix(a, []byte("\x93NUMPY\x01\x00{'descr': '")[:8]) {
			t.Errorf("%s: header %q", f.Name, a[:head])
		}
		arrays[f.Name] = a[head:]
	}
	equal(t, "indptr", numbers[int64](t, arrays["indptr.npy"]), wantBegin)
	equal(t, "indices", numbers[int32](t, arrays["indices.npy"]), wantIndices)
	equal(t, "data", numbers[float32](t, arrays["data.npy"]), wantData)
	equal(t, "shape", numbers[int64](t, arrays["shape.npy"]), []int64{3, 8})
	if string(arrays["format.npy"]) != "csr" || len(arrays) != 5 {
		t.Errorf("format %q, %d arrays", arrays["format.npy"], len(arrays))
	}
}

func TestSafetensors(t *testing.T) {
	s := source(t, animals(t, nil), 0)
	b := bytesOf(t, func(w io.Writer) error { return s.Safetensors(t.Context(), w, 0, 5, 2) })
	n := binary.LittleEndian.Uint64(b)
	var header map[string]struct {
		Offsets []int64 `json:"data_offsets"`
		Shape   any     `json:"shape"`
	}
	if err := json.Unmarshal(b[8:8+n], &header); err != nil || n%8 != 0 {
		t.Fatalf("header of %d bytes: %v", n, err)
	}
	if header["__metadata__"].Shape != "3,8" {
		t.Errorf("metadata %v", header["__metadata__"])
	}
	data := b[8+n:]
	part := func(name string) []byte { o := header[name].Offsets; return data[o[0]:o[1]] }
	equal(t, "indptr", numbers[int64](t, part("indptr")), wantBegin)
	equal(t, "indices", numbers[int32](t, part("indices")), wantIndices)
	equal(t, "data", numbers[float32](t, part("data")), wantData)
	if header["data"].Offsets[1] != int64(len(data)) {
		t.Errorf("%d bytes of tensors, the header says %d", len(data), header["data"].Offsets[1])
	}
}

// A part holds the classes of its nodes; a threshold spares the bias.
func TestRangeAndThreshold(t *testing.T) {
	s := source(t, animals(t, nil), 1.2)
	r, err := s.count(t.Context(), 3, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "begin", r.begin, []int64{0, 2, 4})
	b := bytesOf(t, func(w io.Writer) error { return r.writeIndices(t.Context(), w) })
	equal(t, "indices", numbers[int32](t, b), []int32{1, 7, 6, 7})
	if l := string(s.Labels(3, 5)); l != "cat\ncar\n" {
		t.Errorf("labels %q", l)
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := NewSource(s.m, bad); err == nil {
			t.Errorf("threshold %v accepted", bad)
		}
	}
}

func TestLiblinear(t *testing.T) {
	s := source(t, animals(t, nil), 0)
	got := string(bytesOf(t, func(w io.Writer) error { return s.Liblinear(t.Context(), w, 3) }))
	want := "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 3\nlabel 1 2 3\nnr_feature 7\nbias 1\nw\n" +
		"0 0 0 \n1.5 1.5 0 \n0 0 0 \n0 0.10000000149011612 0 \n0 0 0 \n0 0 0 \n0.25 0 -2 \n-1 -1 3 \n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := s.Liblinear(t.Context(), io.Discard, 0); err == nil {
		t.Error("no threads accepted")
	}
}

// The golden files are what the real readers have opened (test/formats).
func TestGolden(t *testing.T) {
	words := animals(t, []string{"räder", "fell", "日本"})
	for name, write := range map[string]func(io.Writer) error{
		"animals.npz":       func(w io.Writer) error { return source(t, animals(t, nil), 0).NPZ(t.Context(), w, 0, 5, 1) },
		"words.safetensors": func(w io.Writer) error { return source(t, words, 0).Safetensors(t.Context(), w, 0, 5, 1) },
	} {
		path := filepath.Join("testdata", name)
		got := bytesOf(t, write)
		if *rewrite {
			if err := os.WriteFile(path, got, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the golden file", name)
		}
	}
	if got := string(source(t, words, 0).Features()["features.txt"]); got != "\nfell\n\n日本\n\n\nräder\n" {
		t.Errorf("words %q", got)
	}
}

// The golden files are from an earlier writer of Parquet, and what pyarrow has opened
// (test/formats): columns and rows stay, and their order.
func TestParquet(t *testing.T) {
	for name, m := range map[string]*model.Model{"animals": animals(t, nil), "words": animals(t, []string{"räder", "fell",
		"日本"})} {
		want, err := os.ReadFile(filepath.Join("testdata", name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		got := bytesOf(t, func(w io.Writer) error { return source(t, m, 0).Parquet(t.Context(), w, 0, 5, 2) })
		equal(t, name, parquetRows(t, got), parquetRows(t, want))
	}
	if got := parquetRows(t, bytesOf(t, func(w io.Writer) error {
		return source(t, animals(t, nil), 0).Parquet(t.Context(),
			w, 0, 0, 1)
	})); len(got) != 1 {
		t.Errorf("no weights: rows %v", got)
	}
}

// parquetRows gives a file's columns and types, then its rows.
func parquetRows(t *testing.T, b []byte) (rows []string) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	head := ""
	for _, c := range f.Root().Columns() {
		head += fmt.Sprint(c.Name(), " ", c.Type().Kind(), " ", c.Required(), "; ")
	}
	rows = append(rows, head)
	r := parquet.NewReader(f)
	defer r.Close()
	for {
		var row [1]parquet.Row
		n, err := r.ReadRows(row[:])
		if n == 1 {
			rows = append(rows, fmt.Sprintf("%v", row[0]))
		}
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A row group is written when it is full, and the groups add up.
func TestParquetGroups(t *testing.T) {
	s := source(t, animals(t, nil), 0)
	var b bytes.Buffer
	nodes := s.appendNode(nil, 3, s.m.Vector(3))
	p := newRowWriter(s, &b, func(r row) row { return r })
	const more = 5
	for range groupRows/(len(nodes)/12) + more {
		if _, err := p.Write(nodes); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.to.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if g := f.RowGroups(); len(g) != 2 || g[0].NumRows() != groupRows || f.NumRows() < groupRows+more {
		t.Errorf("%d groups of %d rows", len(g), f.NumRows())
	}
}

func TestClassNumbers(t *testing.T) {
	s := source(t, animals(t, nil), 0)
	equal(t, "names", s.ClassNumbers(), []int64{1, 2, 3})
	copy(s.m.Tree.Name, []string{"", "7", "7", "-3", "12"})
	equal(t, "numbers", s.ClassNumbers(), []int64{7, -3, 12})
	s.m.Tree.Name[3] = "03"
	equal(t, "not as printed", s.ClassNumbers(), []int64{1, 2, 3})
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestErrors(t *testing.T) {
	s := source(t, animals(t, nil), 0)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, write := range map[string]func(context.Context, io.Writer) error{
		"npz":         func(ctx context.Context, w io.Writer) error { return s.NPZ(ctx, w, 0, 5, 2) },
		"safetensors": func(ctx context.Context, w io.Writer) error { return s.Safetensors(ctx, w, 0, 5, 2) },
		"parquet":     func(ctx context.Context, w io.Writer) error { return s.Parquet(ctx, w, 0, 5, 2) },
		"liblinear":   func(ctx context.Context, w io.Writer) error { return s.Liblinear(ctx, w, 2) },
	} {
		if err := write(t.Context(), fullDisk{}); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%s on a full disk: %v", name, err)
		}
		if err := write(cancelled, io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("%s cancelled: %v", name, err)
		}
	}
}

// told keeps what an export says.
type told struct {
	progress.Discard
	notes []string
	total int64
}

func (t *told) Note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *told) StartBytes(_ string, total int64) progress.Progress {
	t.total = total
	return progress.Discard{}
}

// A large export says beforehand how large it will be, which progress and the time left go by, in one file and
// in parts.
func TestSizeBeforehand(t *testing.T) {
	const nodes = 9000
	meta := model.Meta{Options: model.Options{Method: "bsvm", Loss: "hinge", Bias: 1},
		Data: model.DataInfo{Fingerprint: "f00d", Instances: nodes, Positives: nodes},
		Form: form.Form{Weights: form.Whole}, Tree: &taxonomy.Tree{}}
	for c := range 500 {
		meta.Feature = append(meta.Feature, uint32(c+1))
	}
	for n := range nodes {
		tr := meta.Tree
		tr.Parent, tr.Kind, tr.Name = append(tr.Parent, -1), append(tr.Kind, taxonomy.Node),
			append(tr.Name, fmt.Sprintf("class-%d", n))
		tr.Label, tr.Depth, tr.Leaf = append(tr.Label, int32(n)), append(tr.Depth, 0), append(tr.Leaf, true)
		meta.Labels, meta.LabelCounts = append(meta.Labels, tr.Name[n]), append(meta.LabelCounts, 1)
	}
	dir := filepath.Join(t.TempDir(), "m")
	w, err := model.NewWriter(dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	for n := range nodes {
		var columns []uint32
		var values []float32
		for c := n % 7; c < 500; c += 1 + n%5 {
			columns, values = append(columns, uint32(c)), append(values, float32(math.Sin(float64(n*c+1))))
		}
		if err := w.WriteNode(n, columns, values); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(model.Report{Method: "bsvm", StoppedBy: "gap"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "parquet", "npz", "safetensors"} {
		for _, out := range []string{"file", "parts/"} {
			ui := new(told)
			o := Options{Model: dir, Format: format, What: Mean, Values: "float32", Out: filepath.Join(t.TempDir(), "new") +
				"/" + out}
			if _, err := Run(context.Background(), o, ui); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			size := int64(0)
			for _, pattern := range []string{"file", "parts/part-*"} {
				found, _ := filepath.Glob(filepath.Join(filepath.Dir(strings.TrimSuffix(o.Out, "/")), pattern))
				for _, name := range found {
					info, err := os.Stat(name)
					if err != nil {
						t.Fatal(err)
					}
					size += info.Size()
				}
			}
			if ratio := float64(ui.total) / float64(size); ratio < 0.6 || ratio > 1.6 {
				t.Errorf("%s, %s: %d bytes were said beforehand, %d were written", format, out, ui.total, size)
			}
			if said := len(ui.notes) > 0; said != (size > tellBytes) && size > 2*tellBytes {
				t.Errorf("%s, %s of %d bytes: notes %q", format, out, size, ui.notes)
			}
		}
	}
}
