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

// The layout of a snapshot is in FORMAT.md; all numbers are little endian, keys are
// those of AppendKey.
const (
	snapshotMagic   = "taxonsnap\x00"
	snapshotVersion = 1

	recordValue = 'V'
	recordEnd   = 'E'

	// batches of Snapshot and Restore are at most this many bytes, or one value.
	snapshotBatchBytes  = 16 << 20
	snapshotBatchValues = 4096
)

// Snapshot writes the values of keys to w, in key order whatever the order given,
// each once, in the format of FORMAT.md. A key without a value is ErrMissing. The
// same keys and values give the same bytes. It neither syncs nor closes w. Memory is
// bounded by 16 MiB or the largest value, whichever is more.
func Snapshot(ctx context.Context, w io.Writer, src Store, keys []Key) error {
	sizes, err := snapshotSizes(ctx, src, keys)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, Key.Compare)
	sorted = slices.Compact(sorted)
	infos := make([]Info, len(sorted))
	for i, k := range sorted {
		infos[i] = Info{Key: k, Bytes: sizes[k]}
	}
	return SnapshotListed(ctx, w, src, infos)
}

// SnapshotListed is Snapshot of values as List gave them: in strictly rising order of
// keys, with their sizes.
func SnapshotListed(ctx context.Context, w io.Writer, src Store, infos []Info) error {
	out, err := NewSnapshotWriter(w)
	if err != nil {
		return err
	}
	for len(infos) > 0 {
		var keys []Key
		bytes := uint64(0)
		for _, in := range infos {
			if len(keys) == snapshotBatchValues || len(keys) > 0 && bytes+in.Bytes > snapshotBatchBytes {
				break
			}
			bytes += in.Bytes
			keys = append(keys, in.Key)
		}
		if err := snapshotBatch(ctx, out, src, keys); err != nil {
			return err
		}
		infos = infos[len(keys):]
	}
	return out.End()
}

// snapshotSizes asks the store how large the values are, so that batches fit.
func snapshotSizes(ctx context.Context, src Store, keys []Key) (map[Key]uint64, error) {
	sizes := make(map[Key]uint64, len(keys))
	jobs := map[string]bool{}
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
		sizes[k] = 0
		jobs[k.Job] = true
	}
	for job := range jobs {
		err := src.List(ctx, job, func(in Info) error {
			if _, ok := sizes[in.Key]; ok {
				sizes[in.Key] = in.Bytes
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

func snapshotBatch(ctx context.Context, out *SnapshotWriter, src Store, keys []Key) error {
	data, err := src.Get(ctx, keys)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	for i, k := range keys {
		if data[i] == nil {
			return &KeyError{Op: "snapshot", Key: k, Err: ErrMissing}
		}
		if err := out.Add(Sum(Value{Key: k, Data: data[i]})); err != nil {
			return err
		}
	}
	return nil
}

// Restore checks a whole snapshot and only then puts its values into dst: a damaged
// one changes nothing. It reads r twice, from its present position.
func Restore(ctx context.Context, r io.ReadSeeker, dst Store, limits Limits) error {
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	if err := ReadSnapshot(ctx, r, limits, func(Checksummed) error { return nil }); err != nil {
		return err
	}
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	var batch []Value
	var bytes uint64
	flush := func() error {
		err := dst.Put(ctx, batch)
		batch, bytes = nil, 0
		return err
	}
	err = ReadSnapshot(ctx, r, limits, func(v Checksummed) error {
		batch = append(batch, Value{Key: v.Key, Data: v.Data})
		bytes += uint64(len(v.Data))
		if bytes >= snapshotBatchBytes || len(batch) >= snapshotBatchValues {
			return flush()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return flush()
}

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
func (s *SnapshotWriter) Add(v Checksummed) error {
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

// ReadSnapshot checks a snapshot and calls yield for each value, in key order, as
// soon as the value is verified: what comes later may still be damaged, so only a
// nil result says that the snapshot is whole. ErrSnapshot says what is wrong and at
// which byte. yield may keep the data. Bytes after the end are refused.
func ReadSnapshot(ctx context.Context, r io.Reader, limits Limits, yield func(Checksummed) error) error {
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
func (s *snapshotReader) next() (v Checksummed, ended bool, err error) {
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

func (s *snapshotReader) value() (Checksummed, error) {
	n, err := s.more(1)
	if err != nil {
		return Checksummed{}, err
	}
	b, err := s.more(int(n[0]) + 12)
	if err != nil {
		return Checksummed{}, err
	}
	encoded := b[:len(b)-12]
	size := binary.LittleEndian.Uint64(b[len(encoded):])
	sum := binary.LittleEndian.Uint32(b[len(encoded)+8:])
	k, keyErr := ParseKey(encoded)
	if err := s.seal(); err != nil {
		return Checksummed{}, err
	}
	if keyErr != nil {
		return Checksummed{}, s.bad("%v", keyErr)
	}
	if s.values > 0 && s.last.Compare(k) >= 0 {
		return Checksummed{}, s.bad("keys do not rise at %s", k)
	}
	if err := s.limits.CheckValue("snapshot", k, size); err != nil {
		return Checksummed{}, err
	}
	data, err := s.data(size)
	if err != nil {
		return Checksummed{}, err
	}
	v := Checksummed{Key: k, Data: data, CRC32C: sum}
	if err := v.Verify("snapshot"); err != nil {
		return Checksummed{}, fmt.Errorf("%w: byte %d: %w", ErrSnapshot, s.at, err)
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
