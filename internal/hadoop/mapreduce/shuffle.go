package mapreduce

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// The shuffle carries Streaming's raw bytes: length of a key, key, length of a value, value.
// Lengths have 4 bytes, big endian. The key names an item of the next step. The value is a part of
// a task's value for that item, preceded by its place and checksum.

// maxRecord bounds keys and values. store.Limits bound the values.
const maxRecord = 1<<28 + 64

// shuffleKeys returns a name for each item. The names are such that Hadoop's hash partitioner gives
// each reducer a run of neighbouring items, in order. A name consists of digits and of letters that
// make its hash the required one.
func shuffleKeys(items, reducers int) [][]byte {
	out := make([][]byte, items)
	for r := range out {
		out[r] = keyFor(fmt.Sprintf("%05d", r), r*reducers/items, reducers)
	}
	return out
}

// keyFor appends up to two characters to a name so that its key goes to a given reducer. With
// characters a and b the hash grows by 31 a + b. Each takes 58 consecutive values, more than 31, so
// together they reach any of 1,800 consecutive numbers, which suffices for as many reducers.
func keyFor(name string, reducer, reducers int) []byte {
	key := []byte(name)
	if partition(key, reducers) == reducer {
		return key
	}
	for a := byte('A'); a <= 'z'; a++ {
		for b := byte('A'); b <= 'z'; b++ {
			key = append(append(key[:0], name...), a, b)
			if partition(key, reducers) == reducer {
				return key
			}
		}
	}
	return key // with even more reducers, the work goes to another one
}

// partition returns the reducer of a key: org.apache.hadoop.mapred.lib.HashPartitioner over
// BytesWritable.hashCode.
func partition(key []byte, reducers int) int {
	h := int32(1)
	for _, b := range key {
		h = 31*h + int32(int8(b))
	}
	return int(h&0x7fffffff) % reducers
}

// shuffleWriter writes records. It may be used concurrently.
type shuffleWriter struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func newShuffleWriter(w io.Writer) *shuffleWriter {
	return &shuffleWriter{w: bufio.NewWriterSize(w, 1<<20)}
}

// write writes the record of a part.
func (s *shuffleWriter) write(key []byte, v store.Value) error {
	head := binary.LittleEndian.AppendUint32(nil, store.Checksum(v.Data))
	for _, n := range []uint32{v.Key.Step, v.Key.Task, v.Key.Attempt} {
		head = binary.AppendUvarint(head, uint64(n))
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 64), uint32(len(key)))
	b = append(b, key...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)+len(v.Data)))
	b = append(b, head...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("shuffle: %w", err)
	}
	if _, err := s.w.Write(v.Data); err != nil {
		return fmt.Errorf("shuffle: %w", err)
	}
	return nil
}

func (s *shuffleWriter) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("shuffle: %w", err)
	}
	return nil
}

// readRecord reads the next record. It returns io.EOF after the last one.
func readRecord(r io.Reader) (key, value []byte, err error) {
	if key, err = readBytes(r); err != nil {
		return nil, nil, err
	}
	if value, err = readBytes(r); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return key, value, err
}

func readBytes(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxRecord {
		return nil, fmt.Errorf("shuffle: a record of %d bytes: these are not taxon's", n)
	}
	if n < 64<<10 {
		b := make([]byte, n)
		_, err := io.ReadFull(r, b)
		return b, noEOF(err)
	}
	// The buffer grows as bytes arrive, so that a wrong length allocates no memory.
	w := &growing{}
	_, err := io.CopyN(w, r, int64(n))
	return w.b, noEOF(err)
}

type growing struct{ b []byte }

func (g *growing) Write(p []byte) (int, error) {
	g.b = append(g.b, p...)
	return len(p), nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parsePart splits a record's value.
func parsePart(b []byte) (at taxonv1.Place, data []byte, err error) {
	var n [3]uint64
	if len(b) < 4 {
		return at, nil, errRecord
	}
	sum, b := binary.LittleEndian.Uint32(b), b[4:]
	for i := range n {
		x, size := binary.Uvarint(b)
		if size <= 0 || x > 1<<32-1 {
			return at, nil, errRecord
		}
		n[i], b = x, b[size:]
	}
	if store.Checksum(b) != sum {
		return at, nil, fmt.Errorf("%w: its checksum is wrong", errRecord)
	}
	return taxonv1.Place{Step: uint32(n[0]), Task: uint32(n[1]), Attempt: uint32(n[2])}, b, nil
}

var errRecord = errors.New("shuffle: a record is damaged")
