package mapreduce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

const (
	// gapBytes is the size up to which gaps are read and discarded rather than skipped. A request
	// to a data node takes a millisecond, in which that many bytes arrive.
	gapBytes = 256 << 10
	// spanBytes bounds the size of one read.
	spanBytes = 64 << 20
	// openFiles bounds the number of segments that are kept open.
	openFiles = 8
)

// values reads the committed values of a state folder. It caches indexes and tables, because a
// step's index only grows. It may be used concurrently.
type values struct {
	dir folder

	mu    sync.Mutex
	steps map[uint32]*stepValues
	// open is in the order of last use.
	open []*openSegment
}

// stepValues is a step's index, with the tables read so far.
type stepValues struct {
	index  *taxonv1.StepIndex
	tables map[string][]*taxonv1.SegmentValue
}

type openSegment struct {
	path string
	file *fs.RangeFile
}

func newValues(dir folder) *values { return &values{dir: dir, steps: map[uint32]*stepValues{}} }

// forget drops the cache of a step whose index has changed or which no longer exists.
func (v *values) forget(step uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.steps, step)
	v.closeFiles(v.dir.step(step))
}

// closeFiles closes cached files below a path. The caller must hold mu.
func (v *values) closeFiles(below string) {
	v.open = slices.DeleteFunc(v.open, func(o *openSegment) bool {
		if !strings.HasPrefix(o.path, below) {
			return false
		}
		o.file.Close()
		return true
	})
}

// close releases the files.
func (v *values) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closeFiles("")
}

// hit is a key that was found.
type hit struct {
	// i is the index of the key.
	i     int
	value *taxonv1.SegmentValue
}

// Get implements store.Getter.
func (v *values) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([][]byte, len(keys))
	hits := map[string][]hit{} // by path
	var paths []string
	for i, k := range keys {
		path, value, err := v.find(ctx, k)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		if hits[path] == nil {
			paths = append(paths, path)
		}
		hits[path] = append(hits[path], hit{i, value})
	}
	for _, path := range paths {
		if err := v.read(ctx, path, hits[path], keys, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// find looks up a key in the tables of its step. The value is nil if there is none.
func (v *values) find(ctx context.Context, k store.Key) (string, *taxonv1.SegmentValue, error) {
	st, err := v.stepOf(ctx, k.Step)
	if err != nil {
		return "", nil, err
	}
	for _, s := range st.index.GetSegments() {
		if !holds(s, k) {
			continue
		}
		path := fs.Join(v.dir.step(k.Step), s.GetFile())
		table, err := v.table(ctx, st, path, s)
		if err != nil {
			return "", nil, err
		}
		want := &taxonv1.SegmentValue{Step: k.Step, Task: k.Task, Attempt: k.Attempt, Name: k.Name}
		if i, ok := slices.BinarySearchFunc(table, want, compareValues); ok {
			return path, table[i], nil
		}
	}
	return "", nil, nil
}

// holds reports whether a segment may contain a key.
func holds(s *taxonv1.StepSegment, k store.Key) bool {
	if len(s.GetTasks()) > 0 {
		if _, ok := slices.BinarySearch(s.GetTasks(), k.Task); !ok {
			return false
		}
	}
	if len(s.GetRanges()) == 0 {
		return true
	}
	_, r, ok := partOf(k.Name)
	if ok {
		_, ok = slices.BinarySearch(s.GetRanges(), r)
	}
	return ok
}

// partOf splits the name of a part into the variable and the item that it is for.
func partOf(name string) (family string, item uint32, ok bool) {
	family, text, ok := strings.Cut(name, "/")
	n, err := strconv.ParseUint(text, 10, 32)
	return family, uint32(n), ok && err == nil
}

func (v *values) stepOf(ctx context.Context, step uint32) (*stepValues, error) {
	if st := v.steps[step]; st != nil {
		return st, nil
	}
	x, err := v.dir.readIndex(ctx, step)
	if err != nil {
		return nil, err
	}
	st := &stepValues{index: x, tables: map[string][]*taxonv1.SegmentValue{}}
	v.steps[step] = st
	return st, nil
}

// table reads a segment's table. A segment that is missing or damaged is treated as empty: its
// values count as lost and are computed again.
func (v *values) table(ctx context.Context, st *stepValues, path string,
	s *taxonv1.StepSegment) ([]*taxonv1.SegmentValue, error) {
	if t, ok := st.tables[path]; ok {
		return t, nil
	}
	f, err := v.file(ctx, path)
	var t *taxonv1.SegmentTable
	if err == nil {
		t, err = readTable(f, place{s.GetTableOffset(), s.GetTableBytes(), s.GetTableCrc32C()})
	}
	if err != nil && !errors.Is(err, errSegment) && !fs.IsInput(err) {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	st.tables[path] = t.GetValues()
	return t.GetValues(), nil
}

// file returns an open segment, and opens it if necessary.
func (v *values) file(ctx context.Context, path string) (*fs.RangeFile, error) {
	if i := slices.IndexFunc(v.open, func(o *openSegment) bool { return o.path == path }); i >= 0 {
		o := v.open[i]
		v.open = append(slices.Delete(v.open, i, i+1), o)
		return o.file, nil
	}
	// The file outlives the call that opens it. Calls are interrupted between reads.
	f, err := fs.OpenRanges(context.WithoutCancel(ctx), path)
	if err != nil {
		return nil, err
	}
	if len(v.open) == openFiles {
		v.open[0].file.Close()
		v.open = slices.Delete(v.open, 0, 1)
	}
	v.open = append(v.open, &openSegment{path, f})
	return f, nil
}

// read fills out with values of one segment. Neighbours are read together.
func (v *values) read(ctx context.Context, path string, hits []hit, keys []store.Key, out [][]byte) error {
	f, err := v.file(ctx, path)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.value.GetOffset(), b.value.GetOffset()) })
	for len(hits) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, end := together(hits)
		from := hits[0].value.GetOffset()
		b := make([]byte, end-from)
		if err := f.ReadRange(b, int64(from)); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return &store.KeyError{Op: "get", Key: keys[hits[0].i], Err: fmt.Errorf("%w: %s was cut", store.ErrCorrupt, path)}
			}
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		for _, h := range hits[:n] {
			at := h.value.GetOffset() - from
			s := store.Checksummed{Key: keys[h.i], Data: b[at : at+h.value.GetBytes() : at+h.value.GetBytes()],
				CRC32C: h.value.GetCrc32C()}
			if err := s.Verify("get"); err != nil {
				return err
			}
			out[h.i] = s.Data
		}
		hits = hits[n:]
	}
	return nil
}

// together returns how many of the first hits are read at once, and the offset at which they end.
// The hits must be sorted by offset.
func together(hits []hit) (n int, end uint64) {
	n = 1
	begin := hits[0].value.GetOffset()
	end = begin + hits[0].value.GetBytes()
	for n < len(hits) {
		next := hits[n].value
		if next.GetOffset() > end+gapBytes || next.GetOffset()+next.GetBytes() > begin+spanBytes {
			break
		}
		end = max(end, next.GetOffset()+next.GetBytes())
		n++
	}
	return n, end
}
