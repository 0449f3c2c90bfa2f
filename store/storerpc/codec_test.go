package storerpc

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	taxonv1 "taxon/proto/taxon/v1"
)

// split cuts bytes into buffers, as frames arrive.
func split(b []byte, n int) (out mem.BufferSlice) {
	for n > 0 && len(b) > n {
		out, b = append(out, mem.SliceBuffer(b[:n])), b[n:]
	}
	return append(out, mem.SliceBuffer(b))
}

func drawChunks(r *rapid.T) (*taxonv1.PutChunks, *taxonv1.GetChunks) {
	put, get := &taxonv1.PutChunks{}, &taxonv1.GetChunks{}
	for range rapid.IntRange(0, 5).Draw(r, "chunks") {
		data := bytes.Repeat([]byte{7, 0, 255}, rapid.SampledFrom([]int{0, 1, 170, 171, 5000}).Draw(r, "bytes"))
		p := &taxonv1.PutChunk{Data: data, Last: rapid.Bool().Draw(r, "last"), Crc32C: rapid.Uint32().Draw(r, "sum"),
			Size: rapid.Uint64().Draw(r, "size")}
		if rapid.Bool().Draw(r, "key") {
			p.Key = &taxonv1.Key{Job: rapid.SampledFrom([]string{"", "job-1"}).Draw(r, "job"), Step: rapid.Uint32().Draw(r,
				"step"),
				Task: rapid.Uint32Range(0, 200).Draw(r, "task"), Attempt: 1, Name: rapid.StringMatching(`[a-z/]{0,128}`).Draw(r,
					"name")}
		}
		put.Chunks = append(put.Chunks, p)
		get.Chunks = append(get.Chunks, &taxonv1.GetChunk{Index: p.Crc32C >> 7, Data: data, Last: p.Last, Crc32C: p.Crc32C,
			Size:    p.Size,
			Missing: rapid.Bool().Draw(r, "missing"), Corrupt: rapid.Bool().Draw(r, "corrupt")})
	}
	return put, get
}

// TestCodec: what it writes, Protocol Buffers read, and the other way round, however the
// bytes are cut.
func TestCodec(t *testing.T) {
	codec := newBulkCodec()
	rapid.Check(t, func(r *rapid.T) {
		put, get := drawChunks(r)
		n := rapid.SampledFrom([]int{0, 1, 13, 16384}).Draw(r, "frame")
		for _, c := range []struct{ in, out, again proto.Message }{
			{put, &taxonv1.PutChunks{}, &taxonv1.PutChunks{}},
			{get, &taxonv1.GetChunks{}, &taxonv1.GetChunks{}},
			{&taxonv1.DropRequest{Job: "j"}, &taxonv1.DropRequest{}, &taxonv1.DropRequest{}},
		} {
			ours, err := codec.Marshal(c.in)
			if err != nil {
				r.Fatal(err)
			}
			if err := proto.Unmarshal(ours.Materialize(), c.out); err != nil || !proto.Equal(c.in, c.out) {
				r.Fatalf("%v is read as %v, %v", c.in, c.out, err)
			}
			theirs, err := proto.Marshal(c.in)
			if err != nil {
				r.Fatal(err)
			}
			if err := codec.Unmarshal(split(theirs, n), c.again); err != nil || !proto.Equal(c.in, c.again) {
				r.Fatalf("%v is read as %v, %v", c.in, c.again, err)
			}
		}
		// None of it fell back to the other codec.
		ours, err := codec.Marshal(put)
		if err != nil {
			r.Fatal(err)
		}
		if _, ok := readPutChunks(split(ours.Materialize(), n)); !ok {
			r.Fatal("a message of our own is not read")
		}
		if ours, err = codec.Marshal(get); err != nil {
			r.Fatal(err)
		}
		if _, ok := readGetChunks(split(ours.Materialize(), n)); !ok {
			r.Fatal("a message of our own is not read")
		}
	})
}

// TestCodecSharesValues: values are neither copied on their way out, nor kept in gRPC's
// buffers on their way in.
func TestCodecSharesValues(t *testing.T) {
	data := bytes.Repeat([]byte("value"), inlineBytes)
	out, err := newBulkCodec().Marshal(&taxonv1.PutChunks{Chunks: []*taxonv1.PutChunk{{Data: data, Last: true}}})
	if err != nil || len(out) != 2 || &out[1].ReadOnlyData()[0] != &data[0] {
		t.Fatalf("%d buffers, %v", len(out), err)
	}
	b := out.Materialize()
	chunks, ok := readPutChunks(split(b, 1000))
	clear(b)
	if !ok || len(chunks) != 1 || !bytes.Equal(chunks[0].Data, data) {
		t.Error("a value lies in a buffer that is not its own")
	}
}

// FuzzCodec: bytes mean the same as to Protocol Buffers, or are refused as there.
func FuzzCodec(f *testing.F) {
	in := &taxonv1.PutChunks{Chunks: []*taxonv1.PutChunk{{Key: &taxonv1.Key{Job: "j", Step: 1, Task: 300, Attempt: 3,
		Name: "v"}, Data: []byte("data"), Last: true, Crc32C: 9, Size: 4}}}
	b, err := proto.Marshal(in)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, uint16(3))
	f.Add(append(b, b...), uint16(0))
	f.Add([]byte{10, 2, 18, 200}, uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		codec := newBulkCodec()
		for _, c := range []struct{ ours, theirs proto.Message }{
			{&taxonv1.PutChunks{}, &taxonv1.PutChunks{}}, {&taxonv1.GetChunks{}, &taxonv1.GetChunks{}},
		} {
			err := codec.Unmarshal(split(bytes.Clone(b), int(n)), c.ours)
			want := proto.Unmarshal(b, c.theirs)
			if (err == nil) != (want == nil) || err == nil && !proto.Equal(c.ours, c.theirs) {
				t.Errorf("%x is %v, %v; must be %v, %v", b, c.ours, err, c.theirs, want)
			}
		}
	})
}
