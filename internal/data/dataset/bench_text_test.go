package dataset

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"taxon/internal/data/text"
)

// texts returns the content of the file that the variable TAXON_BENCH_TEXT names, whose lines are
// LABELS<TAB>TEXT. Without the variable it returns generated lines, with words drawn by Zipf's law.
func texts(b *testing.B) []byte {
	b.Helper()
	if path := os.Getenv("TAXON_BENCH_TEXT"); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	var out []byte
	for line := range bytes.Lines(generate(1, 20000, 30, 30000)) {
		for i, field := range bytes.Fields(line) {
			if i == 0 {
				out = append(append(out, field...), '\t')
				continue
			}
			n, _, _ := bytes.Cut(field, []byte{':'})
			x, _ := strconv.Atoi(string(n))
			out = strconv.AppendInt(out, int64(x)*7919, 36)
			out = append(out, ' ')
		}
		out = append(out, '\n')
	}
	return out
}

// BenchmarkIngestText measures both passes over texts by kind of terms.
func BenchmarkIngestText(b *testing.B) {
	data := texts(b)
	dir := b.TempDir()
	in := filepath.Join(dir, "in.txt")
	if err := os.WriteFile(in, data, 0o666); err != nil {
		b.Fatal(err)
	}
	for _, o := range []text.Options{{}, {Features: "stems", Languages: "fi"}, {Features: "chars"},
		{Features: "words+chars"}} {
		b.Run(o.Features, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Ingest(context.Background(), Options{Paths: []string{in}, Text: true, Words: Words{Options: o},
					Out: filepath.Join(dir, "set"), Replace: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
