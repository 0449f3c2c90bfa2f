package dataset

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"taxon/internal/fs"
)

// repeated is a reader of n bytes of generated lines, which it does not hold in memory.
type repeated struct {
	lines []byte
	off   int
	left  int64
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 && r.off == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.lines[r.off:])
	r.off = (r.off + n) % len(r.lines)
	r.left -= int64(n)
	return n, nil
}

// watchHeap returns the largest number of live heap bytes observed while f runs.
func watchHeap(f func()) uint64 {
	var peak atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			metrics.Read(sample)
			peak.Store(max(peak.Load(), sample[0].Value.Uint64()))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	f()
	close(stop)
	<-done
	return peak.Load()
}

// TestMemoryBound ingests ten times its memory bound. The short form uses 40 MB at 4 MiB;
// TAXON_TEST_MEMORY=1 (make test-memory) uses 2.7 GB at 256 MiB.
func TestMemoryBound(t *testing.T) {
	bound := int64(4 << 20)
	if os.Getenv("TAXON_TEST_MEMORY") != "" {
		bound = DefaultMemoryBytes
	} else if testing.Short() {
		t.Skip("short")
	}
	lines := generate(7, 500, 60, 3000)
	in := &repeated{lines: lines, left: 10 * bound}
	out := filepath.Join(t.TempDir(), "set")
	base := watchHeap(func() {})
	var report *Report
	var err error
	peak := watchHeap(func() {
		report, err = Ingest(context.Background(), Options{Paths: []string{"-"}, FS: fs.Local{In: in}, Out: out,
			MemoryBytes: bound})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("bound %d, peak %d above %d, %d rows, %d nonzeros", bound, peak-base, base, report.Stats.Rows,
		report.Stats.Nonzeros)
	if stored := report.Stats.Nonzeros * 8; stored < 4*bound {
		t.Fatalf("only %d bytes of rows: the test misses its point", stored)
	}
	if peak > base+uint64(bound) {
		t.Errorf("the heap grew by %d bytes, the bound is %d", peak-base, bound)
	}
}
