package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taxon/internal/data/table"
	"taxon/internal/fs"
)

// npyBytes returns an array in NumPy's format.
func npyBytes(dtype, shape string, data []byte) []byte {
	d := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype, shape)
	d += strings.Repeat(" ", (64-(11+len(d))%64)%64) + "\n"
	return slices.Concat([]byte("\x93NUMPY\x01\x00"), []byte{byte(len(d)), byte(len(d) >> 8)}, []byte(d), data)
}

func le(v any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, v)
	return b.Bytes()
}

// npz packs arrays as NumPy does.
func npz(method uint16, arrays map[string][]byte) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"indices", "indptr", "format", "shape", "data"} {
		w, _ := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		_, _ = w.Write(arrays[name])
	}
	z.Close()
	return b.String()
}

// TestMatrices checks that matrices of every number type give the same set as lines of the same
// numbers.
func TestMatrices(t *testing.T) {
	const rows, columns = 50, 20
	rng := rand.New(rand.NewPCG(1, 2))
	var lines, labels strings.Builder
	var begin, index []int64
	var value, dense []float64
	var half []uint16
	begin = append(begin, 0)
	for i := range rows {
		name := []string{`"a b"`, "c", `c,"d,e"`, ""}[i%4]
		fmt.Fprintln(&labels, name)
		lines.WriteString(name)
		row := make([]float64, columns)
		for _, c := range rng.Perm(columns)[:rng.IntN(6)] { // in no order
			h := uint16(rng.IntN(0x7c00)) | uint16(rng.IntN(2))<<15
			v := float64(table.Half(h))
			row[c] = v
			index, value, half = append(index, int64(c)), append(value, v), append(half, h)
			fmt.Fprintf(&lines, " %d:%v", c+1, v)
		}
		if row == nil || name == "" {
			lines.WriteByte(' ')
		}
		lines.WriteByte('\n')
		begin, dense = append(begin, int64(len(index))), append(dense, row...)
	}
	want := ingestPath(t, "x.svm", lines.String(), Options{})
	names := filepath.Join(t.TempDir(), "labels.txt")
	if err := os.WriteFile(names, []byte(labels.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	single, narrow, ptr := make([]float32, len(value)), make([]int32, len(index)), make([]int32, len(begin))
	for i, v := range value {
		single[i], narrow[i] = float32(v), int32(index[i])
	}
	for i, v := range begin {
		ptr[i] = int32(v)
	}
	n := fmt.Sprintf("(%d,)", len(value))
	sparse := func(method uint16, data, index, begin []byte) string {
		return npz(method, map[string][]byte{"indices": index, "indptr": begin, "data": data,
			"format": npyBytes("|S3", "()", []byte("csr")), "shape": npyBytes("<i8", "(2,)", le([]int64{rows, columns}))})
	}
	wide, short := npyBytes("<i8", n, le(index)), npyBytes("<i4", n, le(narrow))
	begins := fmt.Sprintf("(%d,)", rows+1)
	for name, content := range map[string]string{
		"float64.npz": sparse(zip.Deflate, npyBytes("<f8", n, le(value)), wide, npyBytes("<i8", begins, le(begin))),
		"float32.npz": sparse(zip.Store, npyBytes("<f4", n, le(single)), short, npyBytes("<i4", begins, le(ptr))),
		"float16.npz": sparse(zip.Deflate, npyBytes("<f2", n, le(half)), short, npyBytes("<i4", begins, le(ptr))),
		"dense.npy":   string(npyBytes("<f8", fmt.Sprintf("(%d, %d)", rows, columns), le(dense))),
	} {
		got := ingestPath(t, name, content, Options{Table: table.Options{Labels: names}})
		if err := sameRows(got, want); err != nil || !slices.Equal(got.Feature, want.Feature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// labels may also be an array
	ids := filepath.Join(t.TempDir(), "y.npy")
	numbers := make([]int64, rows)
	for i := range numbers {
		numbers[i] = int64(i%3) - 1
	}
	if err := os.WriteFile(ids, npyBytes("<i8", fmt.Sprintf("(%d,)", rows), le(numbers)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := ingestPath(t, "x.npy", string(npyBytes("<f8", fmt.Sprintf("(%d, %d)", rows, columns), le(dense))),
		Options{Table: table.Options{Labels: ids}})
	if !slices.Equal(got.Labels, []string{"-1", "0", "1"}) {
		t.Errorf("labels %q", got.Labels)
	}
}

func TestMatrixMistakes(t *testing.T) {
	dir := t.TempDir()
	array := npyBytes("<f4", "(2, 2)", le([]float32{1, 0, 2, 3}))
	for name, content := range map[string]string{
		"a.npy": string(array), "cut.npy": string(array[:len(array)-3]), "short.npy": string(array[:len(array)-8]),
		"entry.npy": string(array[:len(array)-4]), "none.npy": string(array[:len(array)-16]), "more.npy": string(array) +
			"x",
		"y.npy":  string(npyBytes("<i8", "(2,)", le([]int64{1, 2}))),
		"y1.npy": string(npyBytes("<i8", "(2,)", le([]int64{1}))),
		"y3.npy": string(npyBytes("<i8", "(2,)", le([]int64{1, 2, 3}))),
		"cut.npz": npz(zip.Store, map[string][]byte{"format": npyBytes("|S3", "()", []byte("csr")), "shape": npyBytes("<i8",
			"(2,)", le([]int64{2, 2})), "indptr": npyBytes("<i4", "(3,)", le([]int32{0, 1, 2})),
			"indices": npyBytes("<i4", "(2,)", le([]int32{0})), "data": npyBytes("<f4", "(2,)", le([]float32{1, 2}))}),
		"nan.npy": string(npyBytes("<f4", "(2, 2)", le([]float32{1, 0, float32(math.NaN()), 3}))),
		"f.npy":   strings.Replace(string(array), "False", "True ", 1), "o.npy": strings.Replace(string(array), "<f4", "|O8",
			1), "big.npy": strings.Replace(string(array), "<f4", ">f4", 1),
		"one.npy": string(npyBytes("<f4", "(4,)", le([]float32{1, 0, 2, 3}))), "x.npz": "PK\x03\x04", "l2": "a\nb\n",
		"l1": "a\n", "l3": "a\nb\nc\n", "bad": "a\n\"b\n",
		"csc.npz": npz(zip.Store, map[string][]byte{"format": npyBytes("|S3", "()", []byte("csc"))}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ data, labels, want string }{
		{"a.npy", "", "give its labels with ‹labels=FILE›"}, {"a.npy", "l1", "l1: has 1 lines, and the matrix more rows"},
		{"a.npy", "l3", "l3:3: a line more than the 2 rows"},
		{"a.npy", "bad", "bad:2: a name that begins with a quote"}, {"cut.npy", "l2", "cut.npy:2: its header says 2 rows, " +
			"and the file holds 1"},
		{"short.npy", "l2", "short.npy:2: its header says 2 rows, and the file holds 1"},
		{"entry.npy", "l2", "entry.npy:2: its header says 2 rows, and the file holds 1"},
		{"none.npy", "l2", "none.npy:1: its header says 2 rows, and the file holds 0"},
		{"more.npy", "l2", "more.npy: after the 2 rows that its header states: bytes after the array's end"},
		{"a.npy", "y1.npy", "y1.npy:2: is cut off"}, {"a.npy", "y3.npy", "y3.npy: bytes after the array's end"},
		{"cut.npz", "l2", "cut.npz:2: is cut off"},
		{"nan.npy", "l2", "nan.npy:2: column 1 holds a value that is not finite"},
		{"f.npy", "l2", "np.ascontiguousarray"}, {"o.npy", "l2", "want float16"}, {"big.npy", "l2", "big-endian"},
		{"one.npy", "l2", "want 2, rows and features"},
		{"x.npz", "l2", "is no .npz file"}, {"csc.npz", "l2", "X.tocsr()"}, {"a.npy", "y.npy", ""},
	} {
		o := Options{Paths: []string{filepath.Join(dir, c.data)}, Out: filepath.Join(dir, "set")}
		if c.labels != "" {
			o.Table.Labels = filepath.Join(dir, c.labels)
		}
		if _, err := Ingest(t.Context(), o); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("%s, %s: %v, want %s", c.data, c.labels, err, c.want)
		}
	}
}

// TestSparseWidth checks that a sparse matrix may have any width as long as no value lies beyond
// the known columns.
func TestSparseWidth(t *testing.T) {
	dir := t.TempDir()
	of := func(name string, columns int64, index ...int32) string {
		path := filepath.Join(dir, name)
		n := fmt.Sprintf("(%d,)", len(index))
		values := make([]float32, len(index))
		for i := range values {
			values[i] = 1
		}
		content := npz(zip.Store, map[string][]byte{"indices": npyBytes("<i4", n, le(index)), "indptr": npyBytes("<i4",
			"(2,)", le([]int32{0, int32(len(index))})),
			"data": npyBytes("<f4", n, le(values)), "format": npyBytes("|S3", "()", []byte("csr")), "shape": npyBytes("<i8",
				"(2,)", le([]int64{1, columns}))})
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	labels := filepath.Join(dir, "l")
	if err := os.WriteFile(labels, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Paths: []string{of("three.npz", 3, 0, 2), of("five.npz", 5, 1, 3), of("two.npz", 2, 1)},
		Out: filepath.Join(dir, "set"), Table: table.Options{Labels: labels}}
	if _, err := Ingest(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s, err := Open(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Table.Matrix != 5 {
		t.Errorf("%d columns, want those of the widest", s.Table.Matrix)
	}
	for _, c := range []struct{ path, want string }{
		{of("narrow.npz", 4, 3), ""}, {of("wide.npz", 9, 4), ""}, {of("beyond.npz", 9, 1, 5), "beyond.npz:1: column 6 " +
			"holds a value, and the model's training data have 5 columns"},
	} {
		r, err := OpenReader(t.Context(), fs.Local{}, c.path, ReaderOptions{Use: table.Use{Features: true, Schema: s.Table}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Read(); err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(),
			c.want)) {
			t.Errorf("%v, want %s", err, c.want)
		}
		r.Close()
	}
}

// BenchmarkNpz reads a compressed matrix of 440 x 28,000 with a hundred entries per row.
func BenchmarkNpz(b *testing.B) {
	const rows, width = 440, 100
	rng := rand.New(rand.NewPCG(1, 2))
	index, value, begin := make([]int32, 0, rows*width), make([]float32, 0, rows*width), []int32{0}
	for range rows {
		row := rng.Perm(28000)[:width]
		slices.Sort(row)
		for _, c := range row {
			index, value = append(index, int32(c)), append(value, rng.Float32())
		}
		begin = append(begin, int32(len(index)))
	}
	n := fmt.Sprintf("(%d,)", len(index))
	path := filepath.Join(b.TempDir(), "x.npz")
	if err := os.WriteFile(path, []byte(npz(zip.Deflate, map[string][]byte{"indices": npyBytes("<i4", n, le(index)),
		"indptr": npyBytes("<i4", fmt.Sprintf("(%d,)", rows+1), le(begin)),
		"data":   npyBytes("<f4", n, le(value)), "format": npyBytes("|S3", "()", []byte("csr")), "shape": npyBytes("<i8",
			"(2,)", le([]int64{rows, 28000}))})), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := table.Open(b.Context(), fs.Local{}, path, table.Options{}, table.Use{})
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = r.Read()
		}
		r.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows*width), "ns/entry")
}
