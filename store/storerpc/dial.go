package storerpc

import "google.golang.org/grpc"

// ioBytes is how many bytes a connection reads or writes at a time. A message with a task's values
// then takes two or three system calls.
const ioBytes = 128 << 10

// BulkDialOptions are for connections that carry values, in addition to a cluster's usual
// options: windows as large as a message, so that a message never waits for the other side.
func BulkDialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		// Fixed windows, as gRPC would let them grow to 16 MiB a connection.
		grpc.WithInitialWindowSize(messageBytes),
		grpc.WithInitialConnWindowSize(4 * messageBytes),
		grpc.WithReadBufferSize(ioBytes), grpc.WithWriteBufferSize(ioBytes),
	}
}

// BulkServerOptions returns the corresponding options for the server of a shard.
func BulkServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InitialWindowSize(messageBytes),
		grpc.InitialConnWindowSize(4 * messageBytes),
		grpc.ReadBufferSize(ioBytes), grpc.WriteBufferSize(ioBytes),
	}
}
