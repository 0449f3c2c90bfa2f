package storerpc

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Embedded serves shards in this process and returns their client. Shard i is named
// "shard-i". Values of memory shards are shared with the client, not copied. The
// caller closes the shards after the last call.
func Embedded(shards []store.Shard, limits store.Limits) (*Client, error) {
	ends := make([]Endpoint, len(shards))
	for i, shard := range shards {
		server := NewServer(shard)
		server.local = true
		channel := NewChannel()
		server.Register(channel)
		ends[i] = Endpoint{Name: fmt.Sprintf("shard-%d", i), Conn: channel}
	}
	c, err := NewClient(ends, limits)
	if err != nil {
		return nil, err
	}
	for _, s := range c.shards {
		s.local = true
	}
	return c, nil
}

// cloneMessage makes what a sender's message is on its way. Bulk messages and tasks'
// reports are not copied: nobody writes to one again after sending it.
func cloneMessage(in any) (any, error) {
	switch in := in.(type) {
	case *taxonv1.PutChunks, *taxonv1.PutResult, *taxonv1.GetChunks, *taxonv1.KeyInfos, *taxonv1.GetRequest,
		*taxonv1.ReportRequest, *taxonv1.ReportResult:
		return in, nil
	case proto.Message:
		return proto.Clone(in), nil
	default:
		return nil, status.Errorf(codes.Internal, "in-process call: %T is no message", in)
	}
}

// copyMessage fills a receiver's message.
func copyMessage(out, in any) error {
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
	case *taxonv1.GetRequest:
		if out, ok := out.(*taxonv1.GetRequest); ok {
			out.Keys = in.Keys
			return nil
		}
	case *taxonv1.KeyInfos:
		if out, ok := out.(*taxonv1.KeyInfos); ok {
			out.Infos = in.Infos
			return nil
		}
	case *taxonv1.PutResult:
		if out, ok := out.(*taxonv1.PutResult); ok {
			out.Values, out.Bytes = in.Values, in.Bytes
			return nil
		}
	case *taxonv1.ReportRequest:
		if out, ok := out.(*taxonv1.ReportRequest); ok {
			handReport(out, in)
			return nil
		}
	case *taxonv1.ReportResult:
		if out, ok := out.(*taxonv1.ReportResult); ok {
			out.Accepted, out.Lease, out.More = in.Accepted, in.Lease, in.More
			return nil
		}
	case proto.Message:
		if out, ok := out.(proto.Message); ok && out.ProtoReflect().Descriptor() == in.ProtoReflect().Descriptor() {
			proto.Reset(out)
			proto.Merge(out, in)
			return nil
		}
	}
	return status.Errorf(codes.Internal, "in-process call: cannot copy %T to %T", in, out)
}

// handReport makes out, which is empty, the report in.
func handReport(out, in *taxonv1.ReportRequest) {
	out.Worker, out.Lease, out.Returned, out.Next, out.Ahead, out.Most, out.More = in.Worker, in.Lease, in.Returned, in.Next, in.Ahead, in.Most, in.More
	out.Sums, out.CpuSeconds, out.BytesRead, out.BytesWritten = in.Sums, in.CpuSeconds, in.BytesRead, in.BytesWritten
	out.Error, out.Deterministic, out.Unavailable, out.Unfit, out.Lost = in.Error, in.Deterministic, in.Unavailable, in.Unfit, in.Lost
}
