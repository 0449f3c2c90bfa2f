package dataset

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"taxon/internal/fs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// goldens are sets whose bytes are determined by version 1 of the format.
var goldens = []struct {
	name, in string
	o        Options
}{
	{"libsvm", "b,a 7:1 3:2.5\na 3:-1\n 9:4\nc # none\n", Options{}},
	{"weights", "b,a 7:1 3:2.5\na 3:-1\n 9:4\nc # none\n", Options{Weights: "testdata/weights.txt"}},
	{"text", "a,b\tred dog\nb\tRED cat\n\tthe cat\n", Options{Text: true}},
}

// TestGolden compares every file with its dump in testdata. A difference means that data sets of
// earlier builds may be misread: raise the version in layout.go before running with -rewrite.
func TestGolden(t *testing.T) {
	for _, g := range goldens {
		dir := filepath.Join(t.TempDir(), "set")
		o := g.o
		o.Paths, o.Out, o.FS = []string{"-"}, dir, fs.Local{In: bytes.NewReader([]byte(g.in))}
		if _, err := Ingest(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var dump bytes.Buffer
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			dump.WriteString("== " + e.Name() + "\n")
			if ext := filepath.Ext(e.Name()); ext == ".json" || ext == ".txt" {
				dump.Write(b)
			} else {
				dump.WriteString(hex.Dump(b))
			}
		}
		golden := filepath.Join("testdata", g.name+".golden")
		if *rewrite {
			if err := os.WriteFile(golden, dump.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, dump.Bytes()) {
			t.Errorf("%s differs from %s:\n%s", g.name, golden, dump.Bytes())
		}
	}
}
