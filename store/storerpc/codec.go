package storerpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	taxonv1 "taxon/proto/taxon/v1"
)

// bulkCodec codes messages as gRPC's own codec does, but the two that carry values
// without copying the values on their way out, and with one copy on their way in: gRPC's
// joins a message's frames in one buffer, which it clears before, and copies the values
// out of that. On the wire nothing differs.
type bulkCodec struct{ encoding.CodecV2 }

func newBulkCodec() encoding.CodecV2 { return bulkCodec{encoding.GetCodecV2(proto.Name)} }

// Marshal codes a message. The slices of values are part of the result: who put them must
// not write to them, see store.Value.
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
	return c.CodecV2.Unmarshal(data, v) // it may be right all the same, or has the error
}

// inlineBytes is the size up to which data are copied between the heads: a slice of its
// own costs more.
const inlineBytes = 512

// bulkWriter joins heads and data.
type bulkWriter struct {
	out   mem.BufferSlice
	heads []byte // those not yet in out begin at from
	from  int
	one   []byte // the fields of one chunk but its data
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

// chunk adds a chunk of the fields in one and, last, its data.
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

// flush hands the heads on. Growing the slice later does not move what was handed on.
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
