package dataset

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"

	"taxon/internal/fs"
	"taxon/internal/sparse"
)

// spill is the temporary file between the two passes: the rows as read, with label ids
// and feature indices that are not yet renumbered. A record is, in little-endian words
// of 32 bits: labels, features, the label ids, then (index, word) a feature, where word
// is the float32's bits or, for text, the count of the index-th word.
type spill struct {
	f      *os.File
	w      *bufio.Writer
	buf    []byte
	off    int64
	shards []spillShard
}

// spillShard says where a shard's rows begin and how much they hold.
type spillShard struct {
	off, end int64
	rows     int
	labels   int64 // label entries
	before   int64 // label entries of the shards before it
	features int64
}

func newSpill(dir string, bufBytes int) (*spill, error) {
	f, err := os.CreateTemp(dir, "taxon-spill-*.part")
	if err != nil {
		return nil, fs.Explain(filepath.Join(dir, "spill"), err)
	}
	return &spill{f: f, w: bufio.NewWriterSize(f, bufBytes)}, nil
}

// add appends one row.
func (s *spill) add(labels []uint32, index, word []uint32) error {
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
	for _, l := range labels {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	for i, x := range index {
		b = binary.LittleEndian.AppendUint64(b, uint64(x)|uint64(word[i])<<32)
	}
	s.buf = b
	s.off += int64(len(b))
	sh := &s.shards[last]
	sh.end = s.off
	sh.rows++
	sh.labels += int64(len(labels))
	sh.features += int64(len(index))
	_, err := s.w.Write(b)
	return fs.Explain(s.f.Name(), err)
}

func (s *spill) flush() error { return fs.Explain(s.f.Name(), s.w.Flush()) }

// remove deletes the file.
func (s *spill) remove() {
	s.f.Close()
	os.Remove(s.f.Name())
}

// reader reads the rows of one shard; several may run at once.
func (s *spill) reader(shard int, bufBytes int) *spillReader {
	sh := s.shards[shard]
	section := io.NewSectionReader(s.f, sh.off, sh.end-sh.off)
	return &spillReader{name: s.f.Name(), r: bufio.NewReaderSize(section, bufBytes)}
}

// spillReader yields rows; the slices hold until the next one.
type spillReader struct {
	name   string
	r      *bufio.Reader
	buf    []byte
	labels []uint32
	pairs  []uint64 // index in the low half, word in the high half
}

func (r *spillReader) next() error {
	var head [8]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return fs.Explain(r.name, err)
	}
	nl := int(binary.LittleEndian.Uint32(head[:]))
	nf := int(binary.LittleEndian.Uint32(head[4:]))
	need := 4*nl + 8*nf
	if cap(r.buf) < need {
		r.buf = make([]byte, need+need/2)
	}
	b := r.buf[:need]
	if _, err := io.ReadFull(r.r, b); err != nil {
		return fs.Explain(r.name, err)
	}
	r.labels, r.pairs = r.labels[:0], r.pairs[:0]
	for i := range nl {
		r.labels = append(r.labels, binary.LittleEndian.Uint32(b[4*i:]))
	}
	b = b[4*nl:]
	for i := range nf {
		r.pairs = append(r.pairs, binary.LittleEndian.Uint64(b[8*i:]))
	}
	return nil
}
