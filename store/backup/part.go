package backup

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"taxon/store"
)

// FORMAT.md has the layout of a part. All numbers are little endian, and keys are encoded by
// store.AppendKey.
const (
	partMagic   = "taxonsnap\x00"
	partVersion = 1

	recordValue = 'V'
	recordEnd   = 'E'

	// batchBytes and batchValues bound the batches that are read of the store. A larger value is a
	// batch of its own.
	batchBytes  = 16 << 20
	batchValues = 4096
)

// writePart writes values to w. infos describes the values as List does, with their sizes and in
// strictly ascending order of keys. If a key has no value, writePart returns store.ErrMissing. The
// same keys and values give the same bytes. It neither syncs nor closes w.
func writePart(ctx context.Context, w io.Writer, src store.Store, infos []store.Info) error {
	out, err := newPartWriter(w)
	if err != nil {
		return err
	}
	for len(infos) > 0 {
		var keys []store.Key
		bytes := uint64(0)
		for _, in := range infos {
			if len(keys) == batchValues || len(keys) > 0 && bytes+in.Bytes > batchBytes {
				break
			}
			bytes += in.Bytes
			keys = append(keys, in.Key)
		}
		if err := writeBatch(ctx, out, src, keys); err != nil {
			return err
		}
		infos = infos[len(keys):]
	}
	return out.end()
}

// writeBatch writes the values of keys.
func writeBatch(ctx context.Context, out *partWriter, src store.Store, keys []store.Key) error {
	data, err := src.Get(ctx, keys)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	for i, k := range keys {
		if data[i] == nil {
			return &store.KeyError{Op: "snapshot", Key: k, Err: store.ErrMissing}
		}
		if err := out.add(store.Sum(store.Value{Key: k, Data: data[i]})); err != nil {
			return err
		}
	}
	return nil
}

// partWriter writes a part value by value.
type partWriter struct {
	w    *bufio.Writer
	last store.Key
	// head is the head of the current record. The slice is reused.
	head []byte
	// chain is the CRC32C of all record heads so far.
	chain  uint32
	values uint64
	bytes  uint64
}

// newPartWriter begins a part on w.
func newPartWriter(w io.Writer) (*partWriter, error) {
	s := &partWriter{w: bufio.NewWriterSize(w, 64<<10)}
	s.head = binary.LittleEndian.AppendUint16(append(s.head[:0], partMagic...), partVersion)
	return s, s.writeHead(nil)
}

// add appends a value. Keys must be in strictly ascending order.
func (s *partWriter) add(v store.Checksummed) error {
	if err := v.Key.Validate(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if s.values > 0 && s.last.Compare(v.Key) >= 0 {
		return &store.KeyError{Op: "snapshot", Key: v.Key, Err: fmt.Errorf("%w: keys must rise", store.ErrInvalid)}
	}
	s.last = v.Key
	s.values++
	s.bytes += uint64(len(v.Data))
	h := append(s.head[:0], recordValue, 0)
	h = store.AppendKey(h, v.Key)
	h[1] = byte(len(h) - 2)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(v.Data)))
	s.head = binary.LittleEndian.AppendUint32(h, v.CRC32C)
	return s.writeHead(v.Data)
}

// end writes the closing record and flushes.
func (s *partWriter) end() error {
	h := append(s.head[:0], recordEnd)
	h = binary.LittleEndian.AppendUint64(h, s.values)
	s.head = binary.LittleEndian.AppendUint64(h, s.bytes)
	if err := s.writeHead(nil); err != nil {
		return err
	}
	return partError(s.w.Flush())
}

// writeHead writes the head, followed by the chained checksum, and then data.
func (s *partWriter) writeHead(data []byte) error {
	s.chain = store.UpdateChecksum(s.chain, s.head)
	s.head = binary.LittleEndian.AppendUint32(s.head, s.chain)
	if _, err := s.w.Write(s.head); err != nil {
		return partError(err)
	}
	_, err := s.w.Write(data)
	return partError(err)
}

// partError wraps an error of writing a part. It returns nil for nil.
func partError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write snapshot: %w", err)
}

// readPart checks a part and calls yield for each value, in key order, as soon as the value is
// verified. What follows may still be damaged, so only a nil result means that the part is intact.
// store.ErrSnapshot says what is wrong and at which byte. yield may keep the data. Bytes after the
// end are refused.
func readPart(ctx context.Context, r io.Reader, limits store.Limits, yield func(store.Checksummed) error) error {
	s := &partReader{r: bufio.NewReaderSize(r, 64<<10), limits: limits.WithDefaults()}
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

// partReader is the state of a readPart.
type partReader struct {
	r      *bufio.Reader
	limits store.Limits
	// at is the number of bytes read.
	at     uint64
	head   []byte
	chain  uint32
	last   store.Key
	values uint64
	bytes  uint64
}

// bad returns a store.ErrSnapshot with the position and a reason.
func (s *partReader) bad(format string, args ...any) error {
	return fmt.Errorf("%w: byte %d: %s", store.ErrSnapshot, s.at, fmt.Sprintf(format, args...))
}

// more reads n further bytes of a head.
func (s *partReader) more(n int) ([]byte, error) {
	from := len(s.head)
	s.head = append(s.head, make([]byte, n)...)
	return s.head[from:], s.fill(s.head[from:])
}

// fill fills b from the part.
func (s *partReader) fill(b []byte) error {
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
func (s *partReader) seal() error {
	s.chain = store.UpdateChecksum(s.chain, s.head)
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

// begin reads the head of the part.
func (s *partReader) begin() error {
	b, err := s.more(len(partMagic) + 2)
	if err != nil {
		return err
	}
	if !bytes.Equal(b[:len(partMagic)], []byte(partMagic)) {
		return s.bad("this is no snapshot")
	}
	if v := binary.LittleEndian.Uint16(b[len(partMagic):]); v != partVersion {
		return s.bad("version %d, this program reads %d", v, partVersion)
	}
	return s.seal()
}

// next reads a record. ended says that it was the closing one.
func (s *partReader) next() (v store.Checksummed, ended bool, err error) {
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

// value reads the rest of a value's record.
func (s *partReader) value() (store.Checksummed, error) {
	n, err := s.more(1)
	if err != nil {
		return store.Checksummed{}, err
	}
	b, err := s.more(int(n[0]) + 12)
	if err != nil {
		return store.Checksummed{}, err
	}
	encoded := b[:len(b)-12]
	size := binary.LittleEndian.Uint64(b[len(encoded):])
	sum := binary.LittleEndian.Uint32(b[len(encoded)+8:])
	k, keyErr := store.ParseKey(encoded)
	if err := s.seal(); err != nil {
		return store.Checksummed{}, err
	}
	if keyErr != nil {
		return store.Checksummed{}, s.bad("%v", keyErr)
	}
	if s.values > 0 && s.last.Compare(k) >= 0 {
		return store.Checksummed{}, s.bad("keys do not rise at %s", k)
	}
	if err := s.limits.CheckValue("snapshot", k, size); err != nil {
		return store.Checksummed{}, err
	}
	data, err := s.data(size)
	if err != nil {
		return store.Checksummed{}, err
	}
	v := store.Checksummed{Key: k, Data: data, CRC32C: sum}
	if err := v.Verify("snapshot"); err != nil {
		return store.Checksummed{}, fmt.Errorf("%w: byte %d: %w", store.ErrSnapshot, s.at, err)
	}
	s.last = k
	s.values++
	s.bytes += size
	return v, nil
}

// data reads a value's bytes. The buffer grows only as bytes arrive, whatever size is announced.
func (s *partReader) data(size uint64) ([]byte, error) {
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
func (s *partReader) end() error {
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
