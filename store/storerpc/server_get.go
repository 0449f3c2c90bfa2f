package storerpc

import (
	"errors"

	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Get streams values in the order asked for. Its memory is that of one value and
// one message. A damaged copy is told as such in its place: the client may find the
// value elsewhere.
func (s *Server) Get(req *taxonv1.GetRequest, stream grpc.ServerStreamingServer[taxonv1.GetChunks]) error {
	return s.watch(func(t *turns) error { return s.get(req, stream, t) })
}

func (s *Server) get(req *taxonv1.GetRequest, stream grpc.ServerStreamingServer[taxonv1.GetChunks], t *turns) error {
	if err := s.limits.CheckBatch("get", len(req.Keys), 0); err != nil {
		return toStatus(err)
	}
	ctx := stream.Context()
	if err := acquire(ctx, s.slots); err != nil {
		return toStatus(err)
	}
	defer func() { <-s.slots }()
	out := getAnswer{
		chunks: newSlab[taxonv1.GetChunk](min(len(req.Keys), messageChunks)),
		packer: packer[*taxonv1.GetChunk]{
			chunkBytes: chunkBytes(s.local),
			send: func(chunks []*taxonv1.GetChunk) error {
				return t.other(func() error { return stream.Send(&taxonv1.GetChunks{Chunks: chunks}) })
			},
		},
	}
	keys := make([]store.Key, len(req.Keys))
	for i, k := range req.Keys {
		keys[i] = keyFromProto(k)
	}
	if err := s.limits.CheckGet(keys); err != nil {
		return toStatus(err)
	}
	for from := 0; from < len(keys) || from == 0; {
		next := from
		err := s.shard.Read(ctx, keys[from:], func(i int, v store.Summed) error {
			next = from + i + 1
			return out.add(from+i, v)
		})
		if err == nil {
			break
		}
		var ke *store.KeyError
		if !errors.Is(err, store.ErrCorrupt) || !errors.As(err, &ke) || next == len(keys) || ke.Key != keys[next] {
			return toStatus(err)
		}
		if err := out.corrupt(next); err != nil {
			return toStatus(err)
		}
		from = next + 1
	}
	return toStatus(out.packer.flush())
}

// getAnswer packs the answers to one Get.
type getAnswer struct {
	chunks slab[taxonv1.GetChunk]
	packer packer[*taxonv1.GetChunk]
}

// add answers with a value, or with its absence.
func (a *getAnswer) add(i int, v store.Summed) error {
	if v.Data == nil {
		c := a.chunks.next()
		c.Index, c.Last, c.Missing = uint32(i), true, true
		return a.packer.add(c, 0)
	}
	return a.packer.value(v.Data, func(part []byte, first, last bool) *taxonv1.GetChunk {
		c := a.chunks.next()
		c.Index, c.Data, c.Last = uint32(i), part, last
		if first {
			c.Size = uint64(len(v.Data))
		}
		if last {
			c.Crc32C = v.CRC32C
		}
		return c
	})
}

// corrupt answers that the shard's copy is damaged.
func (a *getAnswer) corrupt(i int) error {
	c := a.chunks.next()
	c.Index, c.Last, c.Corrupt = uint32(i), true, true
	return a.packer.add(c, 0)
}
