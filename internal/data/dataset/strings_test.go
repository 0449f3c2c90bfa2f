package dataset

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kernel computes the string kernel by comparing every two subsequences, by recursion over both
// strings.
func kernel(a, b string, p, gaps int, decay float64) (sum float64) {
	of := func(s string) map[string]float64 {
		out := map[string]float64{}
		var walk func(at []int)
		walk = func(at []int) {
			if len(at) == p {
				if g := at[p-1] - at[0] + 1 - p; g <= gaps {
					u := ""
					for _, k := range at {
						u += s[k : k+1]
					}
					out[u] += math.Pow(decay, float64(g))
				}
				return
			}
			from := 0
			if len(at) > 0 {
				from = at[len(at)-1] + 1
			}
			for k := from; k < len(s); k++ {
				walk(append(at[:len(at):len(at)], k))
			}
		}
		walk(nil)
		return out
	}
	x, y := of(a), of(b)
	for u, v := range x {
		sum += v * y[u]
	}
	return sum
}

// TestStringKernels checks that inner products of the rows are the normalised kernels. The features
// ascend, and are the same wherever a line occurs.
func TestStringKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, o := range []Strings{{"spectrum", 2, 0, 0, "letters"}, {"spectrum", 4, 3, 0.5, "printable"},
		{"gappy", 3, 2, 0.5, "letters"}, {"gappy", 2, 4, 0.9, "printable"}, {"gappy", 3, 0, 0.3, "bytes"}} {
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		var text []string
		var rows []Row
		s := stringRow{o: o}
		for range 6 {
			seq := ""
			for range 3 + r.IntN(9) {
				seq += string("ABC"[r.IntN(3)])
			}
			var row Row
			if err := s.parse([]byte("x,y\t"+seq), &row); err != nil || len(row.Labels) != 2 {
				t.Fatal(err)
			}
			text, rows = append(text, seq), append(rows, row)
		}
		gaps := o.Gaps
		if o.Kernel == "spectrum" {
			gaps = 0
		}
		for i, a := range rows {
			for j, b := range rows {
				got := 0.0
				for k, f := range a.Index {
					if k > 0 && f <= a.Index[k-1] {
						t.Fatalf("%v: indices %v", o, a.Index)
					}
					for l, g := range b.Index {
						if f == g {
							got += float64(a.Value[k]) * float64(b.Value[l])
						}
					}
				}
				want := kernel(text[i], text[j], o.Length, gaps, o.Decay)
				if want > 0 {
					want /= math.Sqrt(kernel(text[i], text[i], o.Length, gaps, o.Decay) * kernel(text[j], text[j], o.Length, gaps,
						o.Decay))
				}
				if math.Abs(got-want) > 1e-6 {
					t.Errorf("%v: %q and %q: %g, want %g", o, text[i], text[j], got, want)
				}
			}
		}
	}
}

// TestStringsIngested checks that sequences are ingested as vectors, from parts and from a single
// file alike, and that a symbol outside the alphabet is an error with its line.
func TestStringsIngested(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "ec%d\tMKV%cLLAG\n", i%3, 'A'+i%26)
	}
	in := filepath.Join(dir, "seq")
	if err := os.WriteFile(in, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var prints []string
	for _, threads := range []int{1, 4} {
		rep, err := Ingest(t.Context(), Options{Paths: []string{in}, Out: filepath.Join(dir, fmt.Sprint(threads)),
			MemoryBytes: 1 << 20, Threads: threads, Strings: Strings{"spectrum", 4, 0, 0, "letters"}})
		if err != nil || rep.Stats.Rows != 3000 || rep.Stats.Columns < 50 {
			t.Fatal(rep, err)
		}
		prints = append(prints, rep.Fingerprint)
	}
	if prints[0] != prints[1] {
		t.Error("threads change the data")
	}
	r := NewReader(bytes.NewReader([]byte("a\tABC\na\tAB1\n")), ReaderOptions{Name: "f", Strings: Strings{"spectrum", 2, 0,
		0, "letters"}})
	_, err := r.Read()
	if err == nil {
		_, err = r.Read()
	}
	if err == nil || !strings.Contains(err.Error(), "byte 3 of the sequence") || !strings.Contains(err.Error(), "f:2") {
		t.Error(err)
	}
	for _, o := range []Strings{{"spectrum", 5, 0, 0, "printable"}, {"spectrum", 0, 0, 0, "letters"},
		{"gappy", 3, -1, 0.5, "letters"}, {"gappy", 6, 40, 0.5, "letters"}, {"gappy", 3, 1, 0, "letters"}} {
		if o.Check() == nil {
			t.Errorf("%+v passes", o)
		}
	}
}
