package table

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"taxon/internal/fs"
)

func TestExplore(t *testing.T) {
	files, _ := filepath.Glob(os.Getenv("EXPLORE"))
	for _, file := range files {
		content, _ := os.ReadFile(file)
		ext := filepath.Ext(file)
		path := filepath.Join(t.TempDir(), "x"+ext)
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		read := func(o Options, b []byte) (rows []string, err error, bytes uint64) {
			os.WriteFile(path, b, 0o600)
			metrics.Read(sample)
			before := sample[0].Value.Uint64()
			defer func() {
				metrics.Read(sample)
				bytes = sample[0].Value.Uint64() - before
				if r := recover(); r != nil {
					err = fmt.Errorf("PANIC %v", r)
					buf := make([]byte, 4000)
					t.Logf("%s: panic %v\n%s", file, r, buf[:runtime.Stack(buf, false)])
				}
			}()
			r, err := Open(t.Context(), fs.Local{}, path, o, Use{Features: true, Labels: !Matrix(ext[1:])})
			if err != nil {
				return nil, err, 0
			}
			defer r.Close()
			for {
				row, err := r.Read()
				if errors.Is(err, io.EOF) {
					return rows, nil, 0
				}
				if err != nil {
					return rows, err, 0
				}
				rows = append(rows, show(row))
			}
		}
		os_ := []Options{{Columns: Columns{Text: []string{"text", "d", "ts"}, Features: []string{"num", "v", "dec", "u"}, Label: "label"}}}
		if Matrix(ext[1:]) {
			os_ = []Options{{}}
		}
		o := os_[0]
		want, err, _ := read(o, content)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		n, bad, diff, most := 0, 0, 0, uint64(0)
		start := time.Now()
		var diffs []string
		try := func(what string, b []byte) {
			n++
			at := time.Now()
			rows, err, bytes := read(o, b)
			if d := time.Since(at); d > time.Second {
				t.Logf("%s %s: slow %v", file, what, d)
			}
			if bytes > most {
				most = bytes
			}
			if bytes > 100<<20 {
				t.Logf("%s %s: %d MB, %v", file, what, bytes>>20, err)
			}
			if err != nil {
				bad++
				if strings.Contains(err.Error(), "PANIC") {
					t.Errorf("%s", err)
				}
				return
			}
			if !slices.Equal(rows, want) {
				diff++
				if len(diffs) < 12 {
					for i := range want {
						if i >= len(rows) || rows[i] != want[i] {
							diffs = append(diffs, fmt.Sprintf("%s row %d %q != %q", what, i, rows[min(i, len(rows)-1)], want[i]))
							break
						}
					}
				}
			}
		}
		for i := range content {
			for bit := range 8 {
				b := slices.Clone(content)
				b[i] ^= 1 << bit
				try(fmt.Sprintf("flip %d.%d", i, bit), b)
			}
			for _, w := range []string{"\xff\xff\xff\xff", "\xff\xff\xff\x7f", "\xff\xff\xff\xff\xff\xff\xff\x7f", "\x00\x00\x00\x00\x00\x01\x00\x00", "\x00\x00\x00\x00\x01\x00\x00\x00"} {
				if i+len(w) <= len(content) {
					b := slices.Clone(content)
					copy(b[i:], w)
					try(fmt.Sprintf("put %d %x", i, w), b)
				}
			}
		}
		t.Logf("%s: %d mutants, %d errors, %d differ, most %d MB, %v", filepath.Base(file), n, bad, diff, most>>20, time.Since(start))
		if os.Getenv("DIFFS") != "" {
			for _, d := range diffs {
				t.Log(d)
			}
		}
	}
}
