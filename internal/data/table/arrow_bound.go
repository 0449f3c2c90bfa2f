package table

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

// Arrow's library trusts the lengths in a file. The functions of this file compare them with the
// size of the file before the library allocates memory for them, because a failed allocation ends
// the process. The names and numbers of fields are those of Arrow's Schema.fbs, Message.fbs and
// File.fbs.

var errLength = errors.New("a length is larger than the file can hold")

// bound is an allocator with a limit on the memory for one batch, or for the dictionaries.
type bound struct {
	memory.GoAllocator
	size, left int64
}

const (
	// maxRatio bounds the memory relative to the file's size. It exceeds the compression ratio of
	// real tables.
	maxRatio = 256
	// smallBatch is the number of bytes that any file may allocate, because zeros compress even
	// better.
	smallBatch = 4 << 30
)

func (b *bound) reset() { b.left = max(smallBatch, maxRatio*b.size) }

// Allocate panics if the bound is exceeded. caught turns the panic into an error.
func (b *bound) Allocate(size int) []byte {
	if b.left -= int64(size); size < 0 || b.left < 0 {
		panic(errLength)
	}
	return b.GoAllocator.Allocate(size)
}

// Reallocate grows a buffer, within the same bound as Allocate.
func (b *bound) Reallocate(size int, old []byte) []byte {
	if size <= len(old) {
		return old[:size]
	}
	grown := b.Allocate(size)
	copy(grown, old)
	return grown
}

// flat is a table of a flatbuffer. A read outside the buffer panics.
type flat struct{ flatbuffers.Table }

// slot returns the position of a table's field, given its number, or 0 if the table does not have
// the field.
func (t flat) slot(field int) flatbuffers.UOffsetT {
	at := t.Offset(flatbuffers.VOffsetT(4 + 2*field))
	if at == 0 {
		return 0
	}
	return t.Pos + flatbuffers.UOffsetT(at)
}

// table returns a field that is a table, or a union of tables. It returns the zero value if the
// field does not exist.
func (t flat) table(field int) flat {
	at := t.slot(field)
	if at == 0 {
		return flat{}
	}
	return flat{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at)}}
}

// vector returns the start and the length of a field that is a vector. It checks that the whole
// vector is in the buffer.
func (t flat) vector(field, entryBytes int) (begin flatbuffers.UOffsetT, n int, err error) {
	at := t.slot(field)
	if at == 0 {
		return 0, 0, nil
	}
	begin, n = t.Vector(at-t.Pos), t.VectorLen(at-t.Pos)
	if n > (len(t.Bytes)-int(begin))/entryBytes {
		return 0, 0, errLength
	}
	return begin, n, nil
}

func root(b []byte) flat {
	return flat{flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}}
}

// checkFields checks a vector of fields and their descendants, which may be at most *left in all.
func (t flat) checkFields(field int, left *int) error {
	begin, n, err := t.vector(field, 4)
	if *left -= n; err != nil || *left < 0 {
		return errLength
	}
	for i := range n {
		one := flat{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(begin + flatbuffers.UOffsetT(4*i))}}
		const union = 14
		if at := one.slot(2); at != 0 && one.GetByte(at) == union {
			_, _, err = one.table(3).vector(1, 4)
		}
		_, _, bad := one.vector(6, 4) // custom metadata
		if err = cmp.Or(err, bad, one.checkFields(5, left)); err != nil {
			return err
		}
	}
	return nil
}

func (t flat) checkSchema() error {
	left := len(t.Bytes) / 4
	_, _, err := t.vector(2, 4) // custom metadata
	return cmp.Or(err, t.checkFields(1, &left))
}

// checkMessage checks a schema, a record batch or a dictionary batch. b begins with the message's
// length. body is the rest of the file after the message.
func checkMessage(b []byte, body *io.SectionReader) error {
	const schema, dictionary, records = 1, 2, 3
	if binary.LittleEndian.Uint32(b) == 0xffffffff { // a marker before the length, which old files lack
		b = b[4:]
	}
	if int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
		return errLength
	}
	message := root(b[4:])
	at := message.slot(1)
	if at == 0 {
		return nil
	}
	header := message.table(2)
	switch message.GetByte(at) {
	case schema:
		return header.checkSchema()
	case dictionary:
		header = header.table(1)
	case records:
	default:
		return nil
	}
	first, buffers, err := header.vector(2, 16)
	begin, n, bad := header.vector(4, 8) // number of buffers of each column of views
	if err = cmp.Or(err, bad); err != nil {
		return err
	}
	for i := range buffers {
		at := first + flatbuffers.UOffsetT(16*i)
		offset, length := header.GetInt64(at), header.GetInt64(at+8)
		if offset < 0 || length < 0 || offset > body.Size() || length > body.Size()-offset {
			return errLength
		}
		if header.slot(3) == 0 || length == 0 { // no compression, or an empty body
			continue
		}
		packed := frames{in: body, at: offset, to: offset + length}
		if plain := int64(packed.uint(8)); plain < -1 || plain > packed.most() { // -1 marks a buffer that is not compressed
			return errLength
		}
	}
	for i := range n {
		if count := header.GetInt64(begin + flatbuffers.UOffsetT(8*i)); count < 0 || count > int64(buffers) {
			return errLength
		}
	}
	return nil
}

// checkArrow checks the footer and the metadata of all blocks that it lists.
func checkArrow(in io.ReaderAt, size int64) error {
	tail := make([]byte, 10) // the footer's length, then ARROW1
	if size < int64(len(tail)) {
		return io.ErrUnexpectedEOF
	}
	if _, err := in.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	if length > size-int64(len(tail)) {
		return errLength
	}
	b := make([]byte, length)
	if _, err := in.ReadAt(b, size-int64(len(tail))-length); err != nil {
		return err
	}
	footer := root(b)
	_, _, err := footer.vector(4, 4) // custom metadata
	if err = cmp.Or(err, footer.table(1).checkSchema()); err != nil {
		return err
	}
	for _, field := range []int{2, 3} {
		begin, n, err := footer.vector(field, 24)
		if err != nil {
			return err
		}
		for i := range n {
			block := begin + flatbuffers.UOffsetT(24*i)
			offset, head, body := footer.GetInt64(block), int64(footer.GetInt32(block+8)), footer.GetInt64(block+16)
			if offset < 0 || head < 8 || head > size || offset > size-head || body < 0 || body > size-head-offset {
				return errLength
			}
			message := make([]byte, head)
			if _, err := in.ReadAt(message, offset); err != nil {
				return err
			}
			if err := checkMessage(message, io.NewSectionReader(in, offset+head, body)); err != nil {
				return err
			}
		}
	}
	return nil
}
