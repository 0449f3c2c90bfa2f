package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// The constants and kinds below are defined in FORMAT.md, which shows the layout of each file.
const (
	magic       = "TAXONSET"
	version     = 1
	headerBytes = 64

	kindShard    = 1 // a rows, b nonzeros, c columns: Begin, Index, Value
	kindLabels   = 2 // a rows, b label entries, c labels: LabelBegin, LabelIndex
	kindPostings = 3 // a labels, b label entries, c rows: PosBegin, PosRows
	kindFeatures = 4 // a columns: Feature, FeatureRows
	kindIDF      = 5 // a columns: IDF
	kindWeights  = 6 // a rows: Weight
)

const (
	labelsFile     = "labels.txt"
	rowLabelsFile  = "rowlabels.bin"
	postingsFile   = "postings.bin"
	featuresFile   = "features.bin"
	vocabularyFile = "vocabulary.txt"
	idfFile        = "idf.bin"
	weightsFile    = "weights.bin"
	termsFile      = "terms.txt"
)

func shardFile(i int) string { return fmt.Sprintf("shard-%05d.csr", i) }

// header is the first 64 bytes of a binary file.
type header struct {
	kind    uint32
	a, b, c uint64
}

func (h header) encode() []byte {
	out := make([]byte, headerBytes)
	copy(out, magic)
	binary.LittleEndian.PutUint32(out[8:], h.kind)
	binary.LittleEndian.PutUint32(out[12:], version)
	binary.LittleEndian.PutUint64(out[16:], h.a)
	binary.LittleEndian.PutUint64(out[24:], h.b)
	binary.LittleEndian.PutUint64(out[32:], h.c)
	return out
}

// sections returns the offsets and the sizes, in bytes, of the arrays that follow the header. Each
// begins at a multiple of 8. The last offset is the file's size.
func (h header) sections() (off [3]int64, size [3]int64, total int64) {
	switch h.kind {
	case kindShard:
		size = [3]int64{8 * int64(h.a+1), 4 * int64(h.b), 4 * int64(h.b)}
	case kindLabels, kindPostings:
		size = [3]int64{8 * int64(h.a+1), 4 * int64(h.b)}
	case kindFeatures:
		size = [3]int64{4 * int64(h.a), 4 * int64(h.a)}
	case kindIDF, kindWeights:
		size = [3]int64{8 * int64(h.a)}
	}
	total = headerBytes
	for i := range size {
		off[i] = total
		total += (size[i] + 7) &^ 7
	}
	return off, size, total
}

// maxCount is far beyond the capacity of any disk. It keeps the arithmetic of sections from
// overflowing.
const maxCount = 1 << 48

// decode checks a whole file against its header. It returns the header and the bytes of the three
// arrays.
func decode(b []byte, kind uint32) (h header, part [3][]byte, err error) {
	if len(b) < headerBytes {
		return h, part, errors.New("shorter than its header")
	}
	if string(b[:8]) != magic {
		return h, part, errors.New("not a file of a data set (wrong magic)")
	}
	if v := binary.LittleEndian.Uint32(b[12:]); v != version {
		return h, part, fmt.Errorf("format version %d, this build reads %d", v, version)
	}
	h = header{
		kind: binary.LittleEndian.Uint32(b[8:]),
		a:    binary.LittleEndian.Uint64(b[16:]),
		b:    binary.LittleEndian.Uint64(b[24:]),
		c:    binary.LittleEndian.Uint64(b[32:]),
	}
	if h.kind != kind {
		return h, part, fmt.Errorf("kind %d where kind %d belongs", h.kind, kind)
	}
	if h.a >= maxCount || h.b >= maxCount || !bytes.Equal(b[:headerBytes], h.encode()) {
		return h, part, errors.New("the header is damaged")
	}
	off, size, total := h.sections()
	if total != int64(len(b)) {
		return h, part, fmt.Errorf("has %d bytes where its header needs %d", len(b), total)
	}
	for i := range part {
		part[i] = b[off[i] : off[i]+size[i]]
	}
	return h, part, nil
}

// binaryFile writes one file. Its arrays may be written in any order and concurrently.
type binaryFile struct {
	f    vfs.File
	off  [3]int64
	name string
}

func createBinary(dir *fs.OutDir, name string, h header) (*binaryFile, error) {
	f, err := dir.Create(name)
	if err != nil {
		return nil, err
	}
	b := &binaryFile{f: f, name: dir.Name()}
	var total int64
	b.off, _, total = h.sections()
	if _, err = f.WriteAt(h.encode(), 0); err == nil {
		err = f.Truncate(total) // the file is extended with zeros, which serve as padding
	}
	if err != nil {
		f.Close()
		return nil, fs.Explain(dir.Name(), err)
	}
	return b, nil
}

// array returns a writer for section i that begins skip bytes after the section's start.
func (b *binaryFile) array(i int, skip int64, bufBytes int) *arrayWriter {
	return &arrayWriter{b: b, off: b.off[i] + skip, buf: make([]byte, 0, bufBytes)}
}

// close syncs and closes the file. If err is not nil, close returns err in place of an error of its
// own.
func (b *binaryFile) close(err error) error {
	if e := vfs.CloseSynced(b.f, err); err == nil {
		err = fs.Explain(b.name, e)
	}
	return err
}

// arrayWriter appends little-endian words to one array. It keeps its first error, which flush
// returns.
type arrayWriter struct {
	b   *binaryFile
	off int64
	buf []byte
	err error
}

func (w *arrayWriter) u32(v uint32) {
	if len(w.buf)+4 > cap(w.buf) {
		w.write()
	}
	w.buf = binary.LittleEndian.AppendUint32(w.buf, v)
}

func (w *arrayWriter) u64(v uint64) {
	if len(w.buf)+8 > cap(w.buf) {
		w.write()
	}
	w.buf = binary.LittleEndian.AppendUint64(w.buf, v)
}

func (w *arrayWriter) write() {
	if w.err == nil {
		_, w.err = w.b.f.WriteAt(w.buf, w.off)
	}
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
}

func (w *arrayWriter) flush() error {
	w.write()
	return fs.Explain(w.b.name, w.err)
}
