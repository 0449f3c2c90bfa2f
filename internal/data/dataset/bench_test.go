package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// generate returns rows like tf-idf data: columns by Zipf's law, values with six digits.
func generate(seed uint64, rows, perRow, cols int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	zipf := rand.NewZipf(rng, 1.1, 8, uint64(cols-1))
	var b bytes.Buffer
	seen := map[uint64]bool{}
	for range rows {
		fmt.Fprintf(&b, "n%05d", rng.IntN(300))
		clear(seen)
		for range perRow {
			if c := zipf.Uint64() + 1; !seen[c] {
				seen[c] = true
				fmt.Fprintf(&b, " %d:%.6g", c, rng.Float64())
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func BenchmarkReader(b *testing.B) {
	data := generate(1, 2000, 60, 30000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(data), ReaderOptions{})
		for {
			if _, err := r.Read(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkIngest(b *testing.B) {
	data := generate(1, 40000, 60, 30000)
	dir := b.TempDir()
	in := filepath.Join(dir, "in.svm")
	if err := os.WriteFile(in, data, 0o666); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Ingest(context.Background(), Options{Paths: []string{in}, Out: filepath.Join(dir, "set"),
			Replace: true}); err != nil {
			b.Fatal(err)
		}
	}
}
