package storerpc

import (
	"sync/atomic"

	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
)

// node is a shard as all clients of a process know it: its id for good, and the way to
// it at the moment.
type node struct {
	name string
	rpc  atomic.Pointer[link]
	down atomic.Bool // said to be down: not tried where a copy elsewhere will do
	// failing: the last write gave up on it. Until one succeeds, others don't wait for
	// it if a copy elsewhere will do.
	failing atomic.Bool
	files   atomic.Pointer[attachment] // nil: not asked for
	scratch atomic.Pointer[scratch]    // that waits to be written over; nil: none does
}

// link is a connection's stub.
type link struct{ taxonv1.StoreClient }

func newNode(name string, conn grpc.ClientConnInterface) *node {
	n := &node{name: name}
	n.connect(conn)
	return n
}

// connect sets the connection for calls that begin from now on.
func (n *node) connect(conn grpc.ClientConnInterface) {
	n.rpc.Store(&link{taxonv1.NewStoreClient(conn)})
	n.files.Store(nil)
}

func (n *node) stub() taxonv1.StoreClient { return n.rpc.Load().StoreClient }
