package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"taxon/internal/fs"
)

// readAll reads a file, and returns its rows and the number of bytes that were allocated.
func readAll(t *testing.T, path string, o Options) (rows []string, asked uint64, err error) {
	t.Helper()
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	defer func() {
		metrics.Read(sample)
		asked = sample[0].Value.Uint64() - before
	}()
	r, err := Open(t.Context(), fs.Local{}, path, o, Use{Features: true, Labels: o.Label != ""})
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, 0, nil
		}
		if err != nil {
			return rows, 0, err
		}
		rows = append(rows, show(row))
	}
}

// pages returns the byte ranges of a Parquet file that its checksums cover.
func pages(t *testing.T, content []byte) (out [][2]int64) {
	t.Helper()
	in, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range in.Metadata().RowGroups {
		for _, c := range group.Columns {
			at := c.MetaData.DataPageOffset
			if c.MetaData.DictionaryPageOffset != 0 {
				at = c.MetaData.DictionaryPageOffset
			}
			for end := at + c.MetaData.TotalCompressedSize; at < end; {
				head, rest, err := pageHead(bytes.NewReader(content), at, end)
				if err != nil || head.CRC == 0 {
					t.Fatalf("%v, checksum %d", err, head.CRC)
				}
				at = rest + int64(head.CompressedPageSize)
				out = append(out, [2]int64{rest, at})
			}
		}
	}
	return out
}

// damageStride is the distance in bytes between two positions that are damaged. With
// TAXON_TEST_DAMAGE=full it is 1.
const damageStride = 7

// TestDamage checks that a damaged file is an error, or reads as before. Other content is possible
// only where no checksum covers the bytes. No damage ends the process, or allocates more memory
// than the file could fill.
func TestDamage(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(tables(), "damage", "*.*"))
	if err != nil || len(files) != 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := filepath.Ext(file)
		o := Options{Columns: Columns{Text: []string{"text"}, Features: []string{"number", "list"}, Label: "label"}}
		guarded := [][2]int64{}
		switch kind {
		case ".npz":
			o, guarded = Options{}, [][2]int64{{0, int64(len(content))}}
		case ".parquet":
			guarded = pages(t, content)
		}
		want, _, err := readAll(t, file, o)
		if err != nil || len(want) < 4 {
			t.Fatal(file, want, err)
		}
		path, found := filepath.Join(t.TempDir(), "x"+kind), 0
		damage := func(what string, at int, b []byte) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			rows, asked, err := readAll(t, path, o)
			if asked > 2*smallPage {
				t.Errorf("%s, %s at byte %d: %d bytes of memory, %v", file, what, at, asked, err)
			}
			if err != nil {
				if found++; !fs.IsInput(err) {
					t.Errorf("%s, %s at byte %d: %v does not name the file", file, what, at, err)
				}
				return
			}
			for _, g := range guarded {
				if int64(at) >= g[0] && int64(at) < g[1] && !slices.Equal(rows, want) {
					t.Errorf("%s, %s at byte %d: reads as %q", file, what, at, rows)
				}
			}
		}
		lengths := []string{"\xff\xff\xff\xff", "\xff\xff\xff\x7f", "\xff\xff\xff\xff\xff\xff\xff\x7f",
			"\x00\x00\x00\x00\x00\x01\x00\x00", "\x00\x00\x00\x00\x01\x00\x00\x00"}
		stride := damageStride
		if kind == ".npz" || os.Getenv("TAXON_TEST_DAMAGE") == "full" {
			stride = 1
		}
		for at := 0; at < len(content); at += stride {
			b := bytes.Clone(content)
			b[at] ^= 1 << (at * 5 % 8)
			damage("a flipped bit", at, b)
			if with := lengths[at%len(lengths)]; at+len(with) <= len(content) && !strings.HasPrefix(string(content[at:]), with) {
				b = bytes.Clone(content)
				copy(b[at:], with)
				damage(fmt.Sprintf("%x", with), at, b)
			}
		}
		if found < len(content)/stride/4 {
			t.Errorf("%s: %d errors", file, found)
		}
	}
}

// TestBound checks that content which decompresses to more than the memory of a batch is an error,
// even if its lengths are correct.
func TestBound(t *testing.T) {
	ask := func(b *bound, sizes ...int) (err error) {
		defer caught("Arrow", &err)
		b.reset()
		for _, size := range sizes {
			b.left -= int64(size) // as Allocate does, without allocating
		}
		b.Allocate(1)
		return nil
	}
	if err := ask(&bound{size: 1}, smallBatch-1); err != nil {
		t.Error(err)
	}
	for _, err := range []error{ask(&bound{size: 1}, smallBatch/2, smallBatch/2), ask(&bound{size: smallBatch},
		maxRatio*smallBatch)} {
		if err == nil || !strings.Contains(err.Error(), errLength.Error()) {
			t.Error(err)
		}
	}
}
