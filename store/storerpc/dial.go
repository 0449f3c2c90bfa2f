package storerpc

import "google.golang.org/grpc"

// ioBytes is what a connection reads and writes at a time: a message of a task's values in
// two or three system calls.
const ioBytes = 128 << 10

// BulkDialOptions are those of connections that carry values, beside what a cluster sets on
// all connections: windows that a message fits into, so that nothing waits for the other
// side in the middle of one, and a codec that does not copy values.
func BulkDialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		// Fixed windows: left to itself gRPC lets them grow to 16 MiB a connection.
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
