package storerpc

import (
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	taxonv1 "taxon/proto/taxon/v1"
)

// bulkCodec encodes messages as gRPC's own codec does. But for the two messages that carry
// values, it does not copy the values on their way out, and copies them once on their way in.
// gRPC's codec joins a message's frames in one buffer, which it clears first, and copies the
// values out of that. The bytes on the wire are the same.
type bulkCodec struct{ encoding.CodecV2 }

func newBulkCodec() encoding.CodecV2 { return bulkCodec{encoding.GetCodecV2(proto.Name)} }

// Marshal encodes a message. The result contains the slices of values, which must not be changed:
// see store.Value.
func (c bulkCodec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *taxonv1.PutChunks:
		w := newBulkWriter(len(m.Chunks))
		for _, c := range m.Chunks {
			w.putChunk(c)
		}
		return w.finish(), nil
	case *taxonv1.GetChunks:
		w := newBulkWriter(len(m.Chunks))
		for _, c := range m.Chunks {
			w.getChunk(c)
		}
		return w.finish(), nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal decodes a message.
func (c bulkCodec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *taxonv1.PutChunks:
		if chunks, ok := readPutChunks(data); ok {
			m.Chunks = chunks
			return nil
		}
	case *taxonv1.GetChunks:
		if chunks, ok := readGetChunks(data); ok {
			m.Chunks = chunks
			return nil
		}
	}
	return c.CodecV2.Unmarshal(data, v) // gRPC's codec may accept it, or has the error
}

// inlineBytes: data of up to this size are copied between the heads, as a slice of their own
// costs more.
const inlineBytes = 512

// bulkWriter joins heads and data.
type bulkWriter struct {
	out   mem.BufferSlice
	heads []byte // those not in out yet begin at from
	from  int
	one   []byte // fields of a chunk without its data
}

func newBulkWriter(chunks int) *bulkWriter {
	return &bulkWriter{out: make(mem.BufferSlice, 0, 2*chunks+1), heads: make([]byte, 0, 96*chunks)}
}

// Fields of the messages, see proto/taxon/v1/store.proto.
const (
	fieldChunks = 1

	putKey, putData, putLast, putSum, putSize                                            = 1, 2, 3, 4, 5
	getIndex, getData, getLast, getSum, getMissing, getSize, getCorrupt                  = 1, 2, 3, 4, 5, 6, 7
	keyJob, keyStep, keyTask, keyAttempt, keyName                       protowire.Number = 1, 2, 3, 4, 5
)

func (w *bulkWriter) putChunk(c *taxonv1.PutChunk) {
	b := w.one[:0]
	if k := c.GetKey(); k != nil {
		n := len(k.Job) + len(k.Name) + 64
		key := make([]byte, 0, n)
		key = appendText(key, keyJob, k.Job)
		key = appendNumber(key, keyStep, uint64(k.Step))
		key = appendNumber(key, keyTask, uint64(k.Task))
		key = appendNumber(key, keyAttempt, uint64(k.Attempt))
		key = appendText(key, keyName, k.Name)
		b = protowire.AppendTag(b, putKey, protowire.BytesType)
		b = protowire.AppendBytes(b, key)
	}
	b = appendFlag(b, putLast, c.GetLast())
	b = appendNumber(b, putSum, uint64(c.GetCrc32C()))
	b = appendNumber(b, putSize, c.GetSize())
	w.one = b
	w.chunk(putData, c.GetData())
}

func (w *bulkWriter) getChunk(c *taxonv1.GetChunk) {
	b := appendNumber(w.one[:0], getIndex, uint64(c.GetIndex()))
	b = appendFlag(b, getLast, c.GetLast())
	b = appendNumber(b, getSum, uint64(c.GetCrc32C()))
	b = appendFlag(b, getMissing, c.GetMissing())
	b = appendNumber(b, getSize, c.GetSize())
	b = appendFlag(b, getCorrupt, c.GetCorrupt())
	w.one = b
	w.chunk(getData, c.GetData())
}

// chunk adds a chunk: the fields in one, then its data.
func (w *bulkWriter) chunk(field protowire.Number, data []byte) {
	size := len(w.one)
	if len(data) > 0 {
		size += protowire.SizeTag(field) + protowire.SizeBytes(len(data))
	}
	w.heads = protowire.AppendTag(w.heads, fieldChunks, protowire.BytesType)
	w.heads = protowire.AppendVarint(w.heads, uint64(size))
	w.heads = append(w.heads, w.one...)
	if len(data) == 0 {
		return
	}
	w.heads = protowire.AppendTag(w.heads, field, protowire.BytesType)
	w.heads = protowire.AppendVarint(w.heads, uint64(len(data)))
	if len(data) <= inlineBytes {
		w.heads = append(w.heads, data...)
		return
	}
	w.flush()
	w.out = append(w.out, mem.SliceBuffer(data))
}

// flush passes the heads on. Later growth of the slice does not move them.
func (w *bulkWriter) flush() {
	if len(w.heads) > w.from {
		w.out = append(w.out, mem.SliceBuffer(w.heads[w.from:len(w.heads):len(w.heads)]))
		w.from = len(w.heads)
	}
}

func (w *bulkWriter) finish() mem.BufferSlice {
	w.flush()
	return w.out
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFlag(b []byte, field protowire.Number, v bool) []byte {
	return appendNumber(b, field, protowire.EncodeBool(v))
}

func appendText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// bulkReader reads a message that is spread over several buffers. If something is wrong it sets
// bad, and reads zeros from then on.
type bulkReader struct {
	now  []byte // of the buffer under way
	rest mem.BufferSlice
	left int // bytes up to the end
	bad  bool
}

func newBulkReader(data mem.BufferSlice) *bulkReader {
	return &bulkReader{rest: data, left: data.Len()}
}

// next returns some of the next bytes, at least one and at most n; there must be bytes left.
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

// bytes copies the next n bytes; n is at most what is left.
func (r *bulkReader) bytes(n int) []byte {
	out := make([]byte, 0, n)
	for len(out) < n {
		out = append(out, r.next(n-len(out))...)
	}
	return out
}

// text reads a string. It accepts only characters allowed in keys. Keys with other bytes are
// refused anyway, by gRPC's own codec if they are no text at all.
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

// flag reads a boolean in any valid encoding.
func (r *bulkReader) flag() bool {
	v := r.varint()
	r.bad = r.bad || v > 1
	return v == 1
}

// message calls f with the tag of each field of the next message, of n bytes. A field may occur
// once, unless its number is in many.
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

// tagOf is a field's number with its wire type: 0 for numbers, 2 for bytes.
func tagOf(field, kind uint64) uint64 { return field<<3 | kind }

// chunks calls f with the size of each chunk of a message. It returns false if the message is not
// as this program writes it.
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

// ioBytes is how much a connection reads and writes at a time: a message with a task's values
// takes two or three system calls.
const ioBytes = 128 << 10

// BulkDialOptions are for connections that carry values, in addition to a cluster's usual
// options: windows as large as a message, so that a message never waits for the other side, and a
// codec that does not copy values.
func BulkDialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		// Fixed windows, as gRPC would let them grow to 16 MiB a connection.
		grpc.WithInitialWindowSize(messageBytes),
		grpc.WithInitialConnWindowSize(4 * messageBytes),
		grpc.WithReadBufferSize(ioBytes), grpc.WithWriteBufferSize(ioBytes),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newBulkCodec())),
	}
}

// BulkServerOptions are the same for the server of a shard.
func BulkServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InitialWindowSize(messageBytes),
		grpc.InitialConnWindowSize(4 * messageBytes),
		grpc.ReadBufferSize(ioBytes), grpc.WriteBufferSize(ioBytes),
		grpc.ForceServerCodecV2(newBulkCodec()),
	}
}
