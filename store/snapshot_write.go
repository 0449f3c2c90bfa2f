package store

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// SnapshotWriter writes a snapshot value by value.
type SnapshotWriter struct {
	w      *bufio.Writer
	last   Key
	head   []byte // of the record under way, reused
	chain  uint32 // CRC32C over all record heads so far
	values uint64
	bytes  uint64
}

// NewSnapshotWriter begins a snapshot on w.
func NewSnapshotWriter(w io.Writer) (*SnapshotWriter, error) {
	s := &SnapshotWriter{w: bufio.NewWriterSize(w, 64<<10)}
	s.head = binary.LittleEndian.AppendUint16(append(s.head[:0], snapshotMagic...), snapshotVersion)
	return s, s.writeHead(nil)
}

// Add appends a value; keys must come in strictly rising order.
func (s *SnapshotWriter) Add(v Summed) error {
	if err := v.Key.Validate(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if s.values > 0 && s.last.Compare(v.Key) >= 0 {
		return &KeyError{Op: "snapshot", Key: v.Key, Err: fmt.Errorf("%w: keys must rise", ErrInvalid)}
	}
	s.last = v.Key
	s.values++
	s.bytes += uint64(len(v.Data))
	h := append(s.head[:0], recordValue, 0)
	h = AppendKey(h, v.Key)
	h[1] = byte(len(h) - 2)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(v.Data)))
	s.head = binary.LittleEndian.AppendUint32(h, v.CRC32C)
	return s.writeHead(v.Data)
}

// End writes the closing record and flushes.
func (s *SnapshotWriter) End() error {
	h := append(s.head[:0], recordEnd)
	h = binary.LittleEndian.AppendUint64(h, s.values)
	s.head = binary.LittleEndian.AppendUint64(h, s.bytes)
	if err := s.writeHead(nil); err != nil {
		return err
	}
	return snapshotError(s.w.Flush())
}

// writeHead writes the head with the chained checksum behind it, then data.
func (s *SnapshotWriter) writeHead(data []byte) error {
	s.chain = UpdateChecksum(s.chain, s.head)
	s.head = binary.LittleEndian.AppendUint32(s.head, s.chain)
	if _, err := s.w.Write(s.head); err != nil {
		return snapshotError(err)
	}
	_, err := s.w.Write(data)
	return snapshotError(err)
}

func snapshotError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write snapshot: %w", err)
}
