package dataset

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"taxon/internal/data/text"
	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// fuzzReader reads to the end and checks every property of rows that Reader guarantees.
func fuzzReader(t *testing.T, in []byte, o ReaderOptions) {
	o.Name = "f"
	r := NewReader(bytes.NewReader(in), o)
	last := int64(0)
	for {
		row, err := r.Read()
		if err == io.EOF {
			c, want := r.Counts(), int64(bytes.Count(in, []byte("\n")))
			if in[len(in)-1] != '\n' {
				want++
			}
			if r.Form() == "xmc" {
				want--
			}
			if c.Rows == 0 || c.Rows+c.EmptyLines+c.Comments != want {
				t.Errorf("%+v of %d lines", c, want)
			}
			return
		}
		if err != nil {
			if !fs.IsInput(err) || bytes.ContainsAny([]byte(err.Error()), "\n\x00") {
				t.Errorf("error %q", err)
			}
			return
		}
		if row.Line <= last || len(row.Index) != len(row.Value) {
			t.Fatalf("line %d after %d, %d indices, %d values", row.Line, last, len(row.Index), len(row.Value))
		}
		last = row.Line
		for i, x := range row.Index {
			v := row.Value[i]
			if x == 0 || x > maxIndex+1 || i > 0 && x <= row.Index[i-1] || v == 0 || v-v != 0 {
				t.Fatalf("line %d: %v %v", row.Line, row.Index, row.Value)
			}
		}
		for i, l := range row.Labels {
			written := textio.AppendName(nil, string(l))
			back, rest, err := textio.CutLabel(written)
			if len(l) == 0 || err != nil || len(rest) > 0 || !bytes.Equal(back, l) || slices.ContainsFunc(row.Labels[:i],
				func(o []byte) bool { return bytes.Equal(o, l) }) {
				t.Fatalf("line %d: labels %q", row.Line, row.Labels)
			}
		}
	}
}

func FuzzLibsvm(f *testing.F) {
	for _, s := range []string{"a,b 3:1 1:-2e3 # c\n 7:1\n\n", "1:2\r\n+1 2147483647:.5\n", "\xef\xbb\xbfa",
		"a 1:1.00000005960464477539 1:2", "\xff\xfea", " \n\t\r\n\n# c\n\ra", "\" \",\"a, b\" 1:1"} {
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, zeroBased bool) { fuzzReader(t, in, ReaderOptions{ZeroBased: zeroBased}) })
}

func FuzzXMC(f *testing.F) {
	for _, s := range []string{"2 5 3\n0,2 0:1 4:2\n 3:1\n", "1 2147483648 1\n0 2147483647:1\n", "3 1 1\n\n0\n",
		"2 1 1\n\n0\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) { fuzzReader(t, in, ReaderOptions{}) })
}

func FuzzText(f *testing.F) {
	f.Add([]byte(smallText))
	f.Add([]byte("a\tÉ２ ½\r\n\tx"))
	f.Add([]byte("\t\n\n \na\tb\rc"))
	f.Fuzz(func(t *testing.T, in []byte) {
		fuzzReader(t, in, ReaderOptions{Text: true})
		c := newCounter(func() *text.Analyser { return text.New(text.Options{Ngrams: 2}, nil) }, 10)
		index, tf := c.count(in)
		if len(index) != len(c.names.list) || len(tf) != len(index) {
			t.Errorf("%d words, %d counts of %d", len(index), len(tf), len(c.names.list))
		}
	})
}

// FuzzOpen replaces one file of a set, updates the checksums in the manifest, and reads everything
// in the set that Open returns. Nothing may panic.
func FuzzOpen(f *testing.F) {
	names := []string{"shard-00000.csr", rowLabelsFile, postingsFile, featuresFile, idfFile, labelsFile, vocabularyFile}
	dir := filepath.Join(f.TempDir(), "set")
	ingestString(f, dir, smallText, Options{Text: true}).Close()
	for i, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), b)
	}
	f.Fuzz(func(t *testing.T, which byte, content []byte) {
		mine := filepath.Join(t.TempDir(), "set")
		if err := os.CopyFS(mine, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mine, names[int(which)%len(names)]), content, 0o666); err != nil {
			t.Fatal(err)
		}
		reseal(t, mine, nil)
		s, err := Open(mine)
		if err != nil {
			if !fs.IsInput(err) {
				t.Errorf("%v", err)
			}
			return
		}
		defer s.Close()
		walk(s)
	})
}

// FuzzManifest opens a set with arbitrary bytes as its manifest.
func FuzzManifest(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "set")
	ingestString(f, dir, "a 1:1\n", Options{}).Close()
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"format":"taxon-data","version":1}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if m, err := decodeManifest(content); err == nil {
			if again, err := m.encode(); err != nil || !bytes.Equal(again, content) {
				t.Errorf("%q was accepted for %q", content, again)
			}
		}
	})
}

// walk reads all entries of a set through its index arrays.
func walk(s *Set) (sum float64) {
	for i := range s.Matrix.Rows {
		index, value := s.Matrix.Row(i)
		for k, c := range index {
			sum += float64(value[k]) * float64(s.Feature[c]) * float64(s.FeatureRows[c])
			if s.IDF != nil {
				sum += s.IDF[c] * float64(len(s.Vocabulary[c]))
			}
		}
		for _, l := range s.LabelIndex[s.LabelBegin[i]:s.LabelBegin[i+1]] {
			sum += float64(len(s.Labels[l]))
		}
	}
	for l := range s.Labels {
		for _, r := range s.PosRows[s.PosBegin[l]:s.PosBegin[l+1]] {
			index, _ := s.Matrix.Row(int(r))
			sum += float64(len(index))
		}
	}
	return sum
}
