package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ReadSnapshot checks a snapshot and calls yield for each value, in key order, as
// soon as the value is verified: what comes later may still be damaged, so only a
// nil result says that the snapshot is whole. ErrSnapshot says what is wrong and at
// which byte. yield may keep the data. Bytes after the end are refused.
func ReadSnapshot(ctx context.Context, r io.Reader, limits Limits, yield func(Summed) error) error {
	s := &snapshotReader{r: bufio.NewReaderSize(r, 64<<10), limits: limits.WithDefaults()}
	if err := s.begin(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, ended, err := s.next()
		if err != nil {
			return err
		}
		if ended {
			return s.end()
		}
		if err := yield(v); err != nil {
			return err
		}
	}
}

type snapshotReader struct {
	r      *bufio.Reader
	limits Limits
	at     uint64 // bytes read
	head   []byte
	chain  uint32
	last   Key
	values uint64
	bytes  uint64
}

func (s *snapshotReader) bad(format string, args ...any) error {
	return fmt.Errorf("%w: byte %d: %s", ErrSnapshot, s.at, fmt.Sprintf(format, args...))
}

// more reads n further bytes of a head.
func (s *snapshotReader) more(n int) ([]byte, error) {
	from := len(s.head)
	s.head = append(s.head, make([]byte, n)...)
	return s.head[from:], s.fill(s.head[from:])
}

func (s *snapshotReader) fill(b []byte) error {
	n, err := io.ReadFull(s.r, b)
	s.at += uint64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.bad("it ends early: the file is truncated")
	}
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	return nil
}

// seal checks the head against the chained checksum that follows it.
func (s *snapshotReader) seal() error {
	s.chain = UpdateChecksum(s.chain, s.head)
	var sum [4]byte
	if err := s.fill(sum[:]); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(sum[:]); got != s.chain {
		return s.bad("checksum of the record is %08x, must be %08x: the file is damaged", got, s.chain)
	}
	s.head = s.head[:0]
	return nil
}

func (s *snapshotReader) begin() error {
	b, err := s.more(len(snapshotMagic) + 2)
	if err != nil {
		return err
	}
	if !bytes.Equal(b[:len(snapshotMagic)], []byte(snapshotMagic)) {
		return s.bad("this is no snapshot")
	}
	if v := binary.LittleEndian.Uint16(b[len(snapshotMagic):]); v != snapshotVersion {
		return s.bad("version %d, this program reads %d", v, snapshotVersion)
	}
	return s.seal()
}

// next reads a record; ended: it was the closing one.
func (s *snapshotReader) next() (v Summed, ended bool, err error) {
	kind, err := s.more(1)
	if err != nil {
		return v, false, err
	}
	switch kind[0] {
	case recordEnd:
		return v, true, nil
	case recordValue:
		v, err = s.value()
		return v, false, err
	default:
		return v, false, s.bad("record of unknown kind %#x: the file is damaged", kind[0])
	}
}

func (s *snapshotReader) value() (Summed, error) {
	n, err := s.more(1)
	if err != nil {
		return Summed{}, err
	}
	b, err := s.more(int(n[0]) + 12)
	if err != nil {
		return Summed{}, err
	}
	encoded := b[:len(b)-12]
	size := binary.LittleEndian.Uint64(b[len(encoded):])
	sum := binary.LittleEndian.Uint32(b[len(encoded)+8:])
	k, keyErr := ParseKey(encoded)
	if err := s.seal(); err != nil {
		return Summed{}, err
	}
	if keyErr != nil {
		return Summed{}, s.bad("%v", keyErr)
	}
	if s.values > 0 && s.last.Compare(k) >= 0 {
		return Summed{}, s.bad("keys do not rise at %s", k)
	}
	if err := s.limits.CheckValue("snapshot", k, size); err != nil {
		return Summed{}, err
	}
	data, err := s.data(size)
	if err != nil {
		return Summed{}, err
	}
	v := Summed{Key: k, Data: data, CRC32C: sum}
	if err := v.Verify("snapshot"); err != nil {
		return Summed{}, fmt.Errorf("%w: byte %d: %w", ErrSnapshot, s.at, err)
	}
	s.last = k
	s.values++
	s.bytes += size
	return v, nil
}

// data reads a value's bytes; a large buffer is made only as bytes arrive.
func (s *snapshotReader) data(size uint64) ([]byte, error) {
	const step = 8 << 20
	out := make([]byte, 0, min(size, step))
	for uint64(len(out)) < size {
		n := int(min(size-uint64(len(out)), step))
		out = slices.Grow(out, n)
		if err := s.fill(out[len(out) : len(out)+n]); err != nil {
			return nil, err
		}
		out = out[:len(out)+n]
	}
	return out, nil
}

// end checks the closing record, whose first byte is read.
func (s *snapshotReader) end() error {
	b, err := s.more(16)
	if err != nil {
		return err
	}
	values, bytes := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if err := s.seal(); err != nil {
		return err
	}
	if values != s.values || bytes != s.bytes {
		return s.bad("%d values of %d bytes, %d of %d announced", s.values, s.bytes, values, bytes)
	}
	if _, err := s.r.ReadByte(); !errors.Is(err, io.EOF) {
		if err == nil {
			return s.bad("bytes after the end")
		}
		return fmt.Errorf("read snapshot: %w", err)
	}
	return nil
}
