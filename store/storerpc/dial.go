package storerpc

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

const (
	// pingAfter and pingTimeout bound how long a shard may be silent under a call: a
	// stopped process or a cut line shows within their sum. gRPC takes no less than 10 s.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second

	// maxStreams bounds what one connection may have open; a server's slots bound what
	// of it is served.
	maxStreams = 256
)

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

// DialOptions are those that connections to shards need beside credentials: they come
// back within a second of the shard, where gRPC would wait up to two minutes, and find
// out when it falls silent; what is on its way is bounded by 4 MiB a connection.
func DialOptions() []grpc.DialOption {
	return append(BulkDialOptions(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
	)
}

// ServerGRPCOptions are those that the gRPC server of a shard needs beside credentials:
// it allows the pings of DialOptions, bounds streams, messages and heads, and lets go of
// clients that fell silent.
func ServerGRPCOptions() []grpc.ServerOption {
	return append(BulkServerOptions(),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxRecvMsgSize(4*messageBytes),
		grpc.MaxHeaderListSize(64<<10),
		grpc.ConnectionTimeout(20*time.Second),
	)
}
