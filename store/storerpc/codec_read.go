package storerpc

import (
	"math"

	"google.golang.org/grpc/mem"

	taxonv1 "taxon/proto/taxon/v1"
)

// bulkReader reads the bytes of a message that lies in several buffers. What it can't
// make anything of sets bad, and zeros follow.
type bulkReader struct {
	now  []byte // of the buffer under way
	rest mem.BufferSlice
	left int // bytes up to the end
	bad  bool
}

func newBulkReader(data mem.BufferSlice) *bulkReader {
	return &bulkReader{rest: data, left: data.Len()}
}

// next gives some of the next bytes, at least one and at most n; left must be.
func (r *bulkReader) next(n int) []byte {
	for len(r.now) == 0 {
		r.now, r.rest = r.rest[0].ReadOnlyData(), r.rest[1:]
	}
	b := r.now[:min(n, len(r.now))]
	r.now = r.now[len(b):]
	r.left -= len(b)
	return b
}

// varint reads a number of at most 64 bits.
func (r *bulkReader) varint() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		if r.left == 0 {
			break
		}
		b := r.next(1)[0]
		if shift == 63 && b > 1 {
			break
		}
		if v |= uint64(b&0x7f) << shift; b < 0x80 {
			return v
		}
	}
	r.bad = true
	return 0
}

// size reads a length that must fit into what is left.
func (r *bulkReader) size() int {
	n := r.varint()
	if n > uint64(r.left) {
		r.bad = true
		return 0
	}
	return int(n)
}

// bytes copies the next n bytes, at most what is left.
func (r *bulkReader) bytes(n int) []byte {
	out := make([]byte, 0, n)
	for len(out) < n {
		out = append(out, r.next(n-len(out))...)
	}
	return out
}

// text reads a string. Only what keys are made of is taken: a key of other bytes is
// refused anyway, with the words of gRPC's own codec if it is no text at all.
func (r *bulkReader) text() string {
	b := r.bytes(r.size())
	for _, c := range b {
		r.bad = r.bad || c >= 0x80
	}
	return string(b)
}

// number32 reads a number of 32 bits.
func (r *bulkReader) number32() uint32 {
	v := r.varint()
	r.bad = r.bad || v > math.MaxUint32
	return uint32(v)
}

// flag reads a boolean as anybody writes it.
func (r *bulkReader) flag() bool {
	v := r.varint()
	r.bad = r.bad || v > 1
	return v == 1
}

// message calls f for each field of the next message, of n bytes, by its tag; each field
// comes at most once, but for the numbers in many.
func (r *bulkReader) message(n int, many uint64, f func(tag uint64)) {
	end := r.left - n
	seen := uint64(0)
	for r.left > end && !r.bad {
		tag := r.varint()
		bit := uint64(1) << (tag >> 3 & 63)
		if tag>>3 > 63 || seen&bit&^many != 0 {
			r.bad = true
			return
		}
		seen |= bit
		f(tag)
	}
	r.bad = r.bad || r.left != end
}

// tagOf is a field's number with its kind: 0 a number, 2 bytes.
func tagOf(field, kind uint64) uint64 { return field<<3 | kind }

// chunks calls f for each chunk of a message, with its size. It is false if the message
// is not what this program writes.
func (r *bulkReader) chunks(f func(n int)) bool {
	r.message(r.left, 1<<fieldChunks, func(tag uint64) {
		if tag != tagOf(fieldChunks, 2) {
			r.bad = true
			return
		}
		f(r.size())
	})
	return !r.bad
}

func readPutChunks(data mem.BufferSlice) (out []*taxonv1.PutChunk, ok bool) {
	r := newBulkReader(data)
	ok = r.chunks(func(n int) {
		c := new(taxonv1.PutChunk)
		out = append(out, c)
		r.message(n, 0, func(tag uint64) {
			switch tag {
			case tagOf(putKey, 2):
				c.Key = r.key(r.size())
			case tagOf(putData, 2):
				c.Data = r.bytes(r.size())
			case tagOf(putLast, 0):
				c.Last = r.flag()
			case tagOf(putSum, 0):
				c.Crc32C = r.number32()
			case tagOf(putSize, 0):
				c.Size = r.varint()
			default:
				r.bad = true
			}
		})
	})
	return out, ok
}

func readGetChunks(data mem.BufferSlice) (out []*taxonv1.GetChunk, ok bool) {
	r := newBulkReader(data)
	ok = r.chunks(func(n int) {
		c := new(taxonv1.GetChunk)
		out = append(out, c)
		r.message(n, 0, func(tag uint64) {
			switch tag {
			case tagOf(getIndex, 0):
				c.Index = r.number32()
			case tagOf(getData, 2):
				c.Data = r.bytes(r.size())
			case tagOf(getLast, 0):
				c.Last = r.flag()
			case tagOf(getSum, 0):
				c.Crc32C = r.number32()
			case tagOf(getMissing, 0):
				c.Missing = r.flag()
			case tagOf(getSize, 0):
				c.Size = r.varint()
			case tagOf(getCorrupt, 0):
				c.Corrupt = r.flag()
			default:
				r.bad = true
			}
		})
	})
	return out, ok
}

// key reads a key of n bytes.
func (r *bulkReader) key(n int) *taxonv1.Key {
	k := new(taxonv1.Key)
	r.message(n, 0, func(tag uint64) {
		switch tag {
		case tagOf(uint64(keyJob), 2):
			k.Job = r.text()
		case tagOf(uint64(keyStep), 0):
			k.Step = r.number32()
		case tagOf(uint64(keyTask), 0):
			k.Task = r.number32()
		case tagOf(uint64(keyAttempt), 0):
			k.Attempt = r.number32()
		case tagOf(uint64(keyName), 2):
			k.Name = r.text()
		default:
			r.bad = true
		}
	})
	return k
}
