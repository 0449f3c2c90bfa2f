package storerpc

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"taxon/store"
)

// Member is a shard of a cluster: its id for good, where it is at the moment, and
// whether it is known to be down there.
type Member struct {
	ID   string
	Addr string
	Down bool
}

// Conn is a connection that a Fleet has made.
type Conn interface {
	grpc.ClientConnInterface
	Close() error
}

// Fleet is what a process knows of a cluster's shards: one connection to each, shared by
// the clients of all jobs. Update moves shards while calls go on. Methods may be called
// from several goroutines.
type Fleet struct {
	dial func(addr string) (Conn, error)

	mu     sync.Mutex
	nodes  map[string]*fleetNode
	closed bool
}

type fleetNode struct {
	*node
	addr string
	conn Conn
}

// NewFleet makes a fleet without shards. dial connects to an address; it must not
// block: see DialOptions.
func NewFleet(dial func(addr string) (Conn, error)) *Fleet {
	return &Fleet{dial: dial, nodes: map[string]*fleetNode{}}
}

// Update takes in what is known of shards. One that is not listed stays as it was: the
// jobs that placed values on it still wait for it. Calls to an address that a shard has
// left end with an error that is tried again at the new one.
func (f *Fleet) Update(members []Member) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return store.ErrClosed
	}
	var errs []error
	for _, m := range members {
		errs = append(errs, f.update(m))
	}
	return errors.Join(errs...)
}

func (f *Fleet) update(m Member) error {
	if err := store.ValidateJob(m.ID); err != nil { // same rule for shard names
		return fmt.Errorf("store shard: %w", err)
	}
	n := f.nodes[m.ID]
	if n == nil || n.addr != m.Addr {
		conn, err := f.dial(m.Addr)
		if err != nil {
			return fmt.Errorf("store shard %s at %s: %w", m.ID, m.Addr, err)
		}
		if n == nil {
			n = &fleetNode{node: newNode(m.ID, conn)}
			f.nodes[m.ID] = n
		} else {
			n.connect(conn)
			err = n.conn.Close()
		}
		n.addr, n.conn = m.Addr, conn
		if err != nil {
			return fmt.Errorf("store shard %s: %w", m.ID, err)
		}
	}
	n.down.Store(m.Down)
	return nil
}

// Client makes a client over the shards of a job, which must all have been told of.
// The order of ids does not matter. Clients of the same shards may be made any number
// of times; they need not be closed.
func (f *Fleet) Client(ids []string, o Options) (*Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, store.ErrClosed
	}
	nodes := make([]*node, len(ids))
	for i, id := range ids {
		n := f.nodes[id]
		if n == nil {
			return nil, fmt.Errorf("store client: %w: shard %q is not known: ask the coordinator for its address", store.ErrInvalid, id)
		}
		nodes[i] = n.node
	}
	return newClient(nodes, o)
}

// Members lists what is known, by id.
func (f *Fleet) Members() []Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Member, 0, len(f.nodes))
	for id, n := range f.nodes {
		out = append(out, Member{ID: id, Addr: n.addr, Down: n.down.Load()})
	}
	slices.SortFunc(out, func(a, b Member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

// Close closes the connections. Idempotent.
func (f *Fleet) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for _, n := range f.nodes {
		errs = append(errs, n.conn.Close())
	}
	return errors.Join(errs...)
}
