package storerpc

import (
	"fmt"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/protobuf/proto"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// NewChannel makes an in-process transport: a grpc.ServiceRegistrar and
// grpc.ClientConnInterface in one, for any of taxon's services. Calls go through the
// generated stubs and handlers with deadlines, cancellation and status codes as over
// a connection, but messages are copied rather than serialised, and the store's
// bulk messages, which neither side writes to after sending, are handed over.
func NewChannel() *inprocgrpc.Channel {
	return new(inprocgrpc.Channel).WithCloner(cloner{})
}

// Embedded serves shards in this process and returns their client. Shard i is named
// "shard-i". Values of memory shards are shared with the client, not copied. The
// caller closes the shards after the last call.
func Embedded(shards []store.Shard, limits store.Limits) (*Client, error) {
	ends := make([]Endpoint, len(shards))
	for i, shard := range shards {
		server := NewServer(shard)
		server.chunkBytes = wholeValue
		channel := NewChannel()
		server.Register(channel)
		ends[i] = Endpoint{Name: fmt.Sprintf("shard-%d", i), Conn: channel}
	}
	c, err := NewClient(ends, limits)
	if err != nil {
		return nil, err
	}
	for _, s := range c.shards {
		s.chunkBytes = wholeValue
	}
	return c, nil
}

// cloner hands messages over between client and server.
type cloner struct{}

// Clone makes what a sender's message is on its way. Bulk messages are not copied:
// Client and Server never touch one again after sending it.
func (c cloner) Clone(in any) (any, error) {
	switch in := in.(type) {
	case *taxonv1.PutChunks, *taxonv1.GetChunks, *taxonv1.KeyInfos:
		return in, nil
	case proto.Message:
		return proto.Clone(in), nil
	default:
		return nil, fmt.Errorf("in-process call: %T is no message", in)
	}
}

// Copy fills a receiver's message.
func (c cloner) Copy(out, in any) error {
	switch in := in.(type) {
	case *taxonv1.PutChunks:
		if out, ok := out.(*taxonv1.PutChunks); ok {
			out.Chunks = in.Chunks
			return nil
		}
	case *taxonv1.GetChunks:
		if out, ok := out.(*taxonv1.GetChunks); ok {
			out.Chunks = in.Chunks
			return nil
		}
	case *taxonv1.KeyInfos:
		if out, ok := out.(*taxonv1.KeyInfos); ok {
			out.Infos = in.Infos
			return nil
		}
	case proto.Message:
		if out, ok := out.(proto.Message); ok {
			proto.Reset(out)
			proto.Merge(out, in)
			return nil
		}
	}
	return fmt.Errorf("in-process call: cannot copy %T to %T", in, out)
}
