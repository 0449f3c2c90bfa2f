package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"path/filepath"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/linalg/sparse"
)

// spill holds the rows between the two passes, with label ids and with feature indices that are not
// yet renumbered. Rows stay in memory up to a bound; the others go to a temporary file. A record
// consists of little-endian words of 32 bits: the numbers of labels, features and numbers; the
// label ids; (index, word) for each feature; then (index, bits of the float64) for each number of a
// table. A word holds the bits of a float32 or, in text, the number of times the word with that
// index occurs.
type spill struct {
	f      tempFile
	drop   func() error // closes and removes the file
	w      *bufio.Writer
	room   int64    // bytes that all slabs together may hold
	slabs  [][]byte // each has slabBytes bytes, except the last
	held   int64    // bytes in slabs; later bytes are in the file
	buf    []byte
	off    int64
	shards []spillShard
}

// tempFile is a file that is written once and then read.
type tempFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Name() string
}

// spillShard says where a shard's rows begin and how many entries they have.
type spillShard struct {
	off, end int64
	rows     int
	labels   int64 // label entries
	before   int64 // label entries of the preceding shards
	features int64
}

// slabBytes is the increment by which a spill's memory grows.
const slabBytes = 64 << 10

// spillName is the name of a spill's file in the folder of the data set.
const spillName = "taxon-spill-0.part"

// newSpill creates a spill whose file lies in temp. If temp is empty, the file lies in the data
// set's own folder.
func newSpill(dir *fs.OutDir, temp string, bufBytes int, room int64) (*spill, error) {
	f, drop, err := spillFile(dir, temp)
	if err != nil {
		return nil, err
	}
	return &spill{f: f, drop: drop, w: bufio.NewWriterSize(f, bufBytes), room: room &^ (slabBytes - 1)}, nil
}

// spillFile creates the file of a spill. drop removes the file.
func spillFile(dir *fs.OutDir, temp string) (f tempFile, drop func() error, err error) {
	if temp == "" {
		f, err = dir.Create(spillName)
		return f, func() error { return errors.Join(f.Close(), dir.Remove(spillName)) }, err
	}
	f, drop, err = vfs.ScratchFile(temp, "spill")
	return f, drop, fs.Explain(filepath.Join(temp, "spill"), err)
}

// add appends one row.
func (s *spill) add(labels []uint32, index, word []uint32, numbers []number) error {
	last := len(s.shards) - 1
	if last < 0 || s.shards[last].rows == 1<<sparse.RowShift {
		next := spillShard{off: s.off, end: s.off}
		if last >= 0 {
			next.before = s.shards[last].before + s.shards[last].labels
		}
		s.shards = append(s.shards, next)
		last++
	}
	b := s.buf[:0]
	b = binary.LittleEndian.AppendUint32(b, uint32(len(labels)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(index)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(numbers)))
	for _, l := range labels {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	for i, x := range index {
		b = binary.LittleEndian.AppendUint64(b, uint64(x)|uint64(word[i])<<32)
	}
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n.index)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.value))
	}
	s.buf = b
	s.off += int64(len(b))
	sh := &s.shards[last]
	sh.end = s.off
	sh.rows++
	sh.labels += int64(len(labels))
	sh.features += int64(len(index) + len(numbers))
	return s.write(b)
}

// write appends b to the slabs while they have room, then to the file.
func (s *spill) write(b []byte) error {
	for len(b) > 0 && s.held < s.room {
		if s.held%slabBytes == 0 {
			s.slabs = append(s.slabs, make([]byte, slabBytes))
		}
		n := copy(s.slabs[len(s.slabs)-1][s.held%slabBytes:], b)
		s.held += int64(n)
		b = b[n:]
	}
	if len(b) == 0 {
		return nil
	}
	_, err := s.w.Write(b)
	return fs.Explain(s.f.Name(), err)
}

// ReadAt implements io.ReaderAt over the slabs and the file.
func (s *spill) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && off < s.held {
		c := copy(p[n:], s.slabs[off/slabBytes][off%slabBytes:min(slabBytes, s.held-off/slabBytes*slabBytes)])
		n += c
		off += int64(c)
	}
	if n == len(p) {
		return n, nil
	}
	c, err := s.f.ReadAt(p[n:], off-s.held)
	return n + c, err
}

func (s *spill) flush() error { return fs.Explain(s.f.Name(), s.w.Flush()) }

// remove releases the memory and removes the file.
func (s *spill) remove() error {
	s.slabs = nil
	if err := s.drop(); err != nil {
		return fs.Explain(s.f.Name(), err)
	}
	return nil
}

// reader returns a reader of one shard's rows. Several readers may be used concurrently.
func (s *spill) reader(shard int, bufBytes int) *spillReader {
	sh := s.shards[shard]
	section := io.NewSectionReader(s, sh.off, sh.end-sh.off)
	return &spillReader{name: s.f.Name(), r: bufio.NewReaderSize(section, bufBytes)}
}

// spillReader yields rows. Its slices are valid until the next call of next.
type spillReader struct {
	name   string
	r      *bufio.Reader
	buf    []byte
	labels []uint32
	pairs  []uint64 // index in the low half, word in the high half

	numbers []number
}

// number is a number of a table before it is standardised.
type number struct {
	index uint32
	value float64
}

// next reads the next row.
func (r *spillReader) next() error {
	var head [12]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return fs.Explain(r.name, err)
	}
	nl := int(binary.LittleEndian.Uint32(head[:]))
	nf := int(binary.LittleEndian.Uint32(head[4:]))
	nn := int(binary.LittleEndian.Uint32(head[8:]))
	need := 4*nl + 8*nf + 12*nn
	if cap(r.buf) < need {
		r.buf = make([]byte, need+need/2)
	}
	b := r.buf[:need]
	if _, err := io.ReadFull(r.r, b); err != nil {
		return fs.Explain(r.name, err)
	}
	r.labels, r.pairs, r.numbers = r.labels[:0], r.pairs[:0], r.numbers[:0]
	for i := range nl {
		r.labels = append(r.labels, binary.LittleEndian.Uint32(b[4*i:]))
	}
	b = b[4*nl:]
	for i := range nf {
		r.pairs = append(r.pairs, binary.LittleEndian.Uint64(b[8*i:]))
	}
	b = b[8*nf:]
	for i := range nn {
		r.numbers = append(r.numbers, number{binary.LittleEndian.Uint32(b[12*i:]),
			math.Float64frombits(binary.LittleEndian.Uint64(b[12*i+4:]))})
	}
	return nil
}
