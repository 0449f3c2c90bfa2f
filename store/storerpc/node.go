package storerpc

import (
	"sync/atomic"

	taxonv1 "taxon/proto/taxon/v1"
)

// node is a shard as a client knows it: its id for good, and the way to it.
type node struct {
	name string
	rpc  taxonv1.StoreClient
	down func() bool // said to be down: not read from where a copy elsewhere will do
	// failing: the last write gave up on it. Until one succeeds, others don't wait for
	// it if a copy elsewhere will do.
	failing atomic.Bool
	files   atomic.Pointer[attachment] // nil: not asked for
	scratch atomic.Pointer[scratch]    // that waits to be written over; nil: none does
}

func newNode(e Endpoint) *node {
	n := &node{name: e.Name, rpc: taxonv1.NewStoreClient(e.Conn), down: e.Down}
	if n.down == nil {
		n.down = func() bool { return false }
	}
	return n
}
