package mapreduce

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// A segment is a file of values: a magic line, the values' bytes, the table (SegmentTable), and a
// footer of fixed size with the position of the table.
const (
	segmentMagic = "taxon segment 1\n"
	footerBytes  = 8 + 8 + 4 + len(segmentMagic) // offset, bytes, CRC32C of the table, little endian; magic
	maxTable     = 1 << 30
)

// errSegment reports that a file is not a complete segment.
var errSegment = errors.New("is not a complete segment")

// segment is a segment that is being written. Its methods may be called concurrently.
type segment struct {
	path string

	mu    sync.Mutex
	file  *fs.OutFile
	at    uint64
	table taxonv1.SegmentTable
}

// newSegment starts a segment, which appears under its name when commit has succeeded.
func newSegment(path string) (*segment, error) {
	f, err := fs.CreateFile(path)
	if err != nil {
		return nil, err
	}
	s := &segment{path: path, file: f}
	return s, s.write([]byte(segmentMagic))
}

func (s *segment) write(b []byte) error {
	n, err := s.file.Write(b)
	s.at += uint64(n)
	return err
}

// add appends a value.
func (s *segment) add(v store.Value) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.Values = append(s.table.Values, &taxonv1.SegmentValue{
		Step: v.Key.Step, Task: v.Key.Task, Attempt: v.Key.Attempt, Name: v.Key.Name,
		Offset: s.at, Bytes: uint64(len(v.Data)), Crc32C: store.Checksum(v.Data),
	})
	return s.write(v.Data)
}

// result adds a task's result.
func (s *segment) result(r *taxonv1.ReportRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.Results = append(s.table.Results, r)
}

// commit writes the table and publishes the segment.
func (s *segment) commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.table.Values, compareValues)
	table, err := proto.MarshalOptions{Deterministic: true}.Marshal(&s.table)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if len(table) > maxTable {
		return fmt.Errorf("%s: a table of %d bytes, at most %d are possible: use more map tasks", s.path, len(table),
			maxTable)
	}
	at := s.at
	if err := s.write(append(table, footer(at, table)...)); err != nil {
		return err
	}
	return s.file.Commit()
}

// abort removes an uncommitted segment.
func (s *segment) abort() { s.file.Abort() }

func footer(at uint64, table []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, at)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(table)))
	b = binary.LittleEndian.AppendUint32(b, store.Checksum(table))
	return append(b, segmentMagic...)
}

func compareValues(a, b *taxonv1.SegmentValue) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt),
		cmp.Compare(a.Name, b.Name))
}

// place is the position of a segment's table.
type place struct {
	offset, bytes uint64
	sum           uint32
}

// ranger is a file that can be read in parts.
type ranger interface {
	ReadRange(p []byte, offset int64) error
	Size() int64
}

// openTable reads the table of a segment, which it finds by the footer.
func openTable(f ranger) (*taxonv1.SegmentTable, place, error) {
	var at place
	b := make([]byte, footerBytes)
	if f.Size() < int64(footerBytes+len(segmentMagic)) {
		return nil, at, errSegment
	}
	if err := f.ReadRange(b, f.Size()-int64(footerBytes)); err != nil {
		return nil, at, err
	}
	at = place{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:])}
	if string(b[20:]) != segmentMagic {
		return nil, at, errSegment
	}
	t, err := readTable(f, at)
	return t, at, err
}

// readTable reads and checks the table at a position.
func readTable(f ranger, at place) (*taxonv1.SegmentTable, error) {
	end := uint64(f.Size()) - uint64(footerBytes)
	if at.bytes > maxTable || at.offset < uint64(len(segmentMagic)) || at.offset > end || at.bytes != end-at.offset {
		return nil, errSegment
	}
	b := make([]byte, at.bytes)
	if err := f.ReadRange(b, int64(at.offset)); err != nil {
		return nil, err
	}
	t := &taxonv1.SegmentTable{}
	if store.Checksum(b) != at.sum || proto.Unmarshal(b, t) != nil {
		return nil, errSegment
	}
	for i, v := range t.Values {
		if v == nil || v.Offset < uint64(len(segmentMagic)) || v.Offset > at.offset || v.Bytes > at.offset-v.Offset ||
			i > 0 && compareValues(t.Values[i-1], v) > 0 {
			return nil, errSegment
		}
	}
	return t, nil
}

// scanSegment opens a segment file and reads its table. If it is damaged, the error names it.
func scanSegment(ctx context.Context, path string) (*taxonv1.SegmentTable, place, error) {
	f, err := fs.OpenRanges(ctx, path)
	if err != nil {
		return nil, place{}, err
	}
	defer f.Close()
	t, at, err := openTable(f)
	if errors.Is(err, errSegment) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%s: %w", path, errSegment)
	}
	return t, at, err
}
