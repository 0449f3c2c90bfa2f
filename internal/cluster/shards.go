package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/storerpc"
)

// Shards knows where the store's shards are. A shard is identified by its id, because its address
// may change. Calls go to where it was last seen, and a call that does not reach it makes Shards
// ask the coordinator again.
type Shards struct {
	// Dialer makes the connections to the shards.
	Dialer *Dialer
	// List asks the coordinator for the shards (Jobs.Stores).
	List func(ctx context.Context) (*taxonv1.StoresResult, error)

	// mu guards known and silent.
	mu sync.Mutex
	// known lists the shards in order of joining.
	known []*taxonv1.Shard
	// silent has the ids of the shards that the last call did not reach.
	silent map[string]bool
	// asked is the time of the last call. asking is held during a call, and guards it.
	asked  time.Time
	asking sync.Mutex
}

// askEvery is the least time between two requests that are caused by failed calls.
const askEvery = 100 * time.Millisecond

// Learn updates or adds some shards, as another answer of the coordinator describes them.
func (s *Shards) Learn(shards []*taxonv1.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range shards {
		i := slices.IndexFunc(s.known, func(k *taxonv1.Shard) bool { return k.GetId() == n.GetId() })
		switch {
		case n.GetAddr() == "": // its address is unknown
		case i < 0:
			s.known = append(s.known, n)
		default:
			s.known[i] = n
		}
	}
}

// Refresh asks where the shards are, unless it did so just before.
func (s *Shards) Refresh(ctx context.Context) error {
	s.asking.Lock()
	defer s.asking.Unlock()
	if time.Since(s.asked) < askEvery {
		return nil
	}
	r, err := s.List(ctx)
	if err != nil {
		return fmt.Errorf("list of store shards: %w", err)
	}
	s.asked = time.Now()
	s.Replace(r.GetShards())
	return nil
}

// Replace sets the list of all shards. A shard that is not listed was forgotten.
func (s *Shards) Replace(shards []*taxonv1.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = slices.Clone(shards)
}

// Known lists the shards in order of joining. It asks the coordinator if it knows none.
func (s *Shards) Known(ctx context.Context) ([]*taxonv1.Shard, error) {
	s.mu.Lock()
	known := slices.Clone(s.known)
	s.mu.Unlock()
	if len(known) > 0 {
		return known, nil
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == 0 {
		return nil, fmt.Errorf("the cluster has no store: %w", store.ErrUnavailable)
	}
	return slices.Clone(s.known), nil
}

// Endpoint returns the shard with an id, wherever it runs.
func (s *Shards) Endpoint(id string) storerpc.Endpoint {
	return storerpc.Endpoint{Name: id, Conn: &shardConn{shards: s, id: id}, Down: func() bool { return s.down(id) }}
}

// shard returns what is known about a shard, or nil. The caller holds mu.
func (s *Shards) shard(id string) *taxonv1.Shard {
	if i := slices.IndexFunc(s.known, func(k *taxonv1.Shard) bool { return k.GetId() == id }); i >= 0 {
		return s.known[i]
	}
	return nil
}

// addr returns where a shard was seen last.
func (s *Shards) addr(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shard(id).GetAddr()
}

// down reports whether a call to a shard would probably wait in vain, because the coordinator does
// not hear from the shard or the last call did not reach it.
func (s *Shards) down(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.silent[id] || s.shard(id).GetState() == taxonv1.MemberState_MEMBER_STATE_DOWN
}

// heard notes whether a call reached a shard.
func (s *Shards) heard(id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok {
		delete(s.silent, id)
		return
	}
	if s.silent == nil {
		s.silent = map[string]bool{}
	}
	s.silent[id] = true
}

// shardConn is a connection to a shard that follows the shard when it moves.
type shardConn struct {
	shards *Shards
	id     string
}

// conn returns the connection to where the shard is believed to be now.
func (c *shardConn) conn(ctx context.Context) (*grpc.ClientConn, error) {
	addr := c.shards.addr(c.id)
	if addr == "" {
		if err := c.shards.Refresh(ctx); err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		if addr = c.shards.addr(c.id); addr == "" {
			return nil, status.Errorf(codes.Unavailable, "shard %s is not known to the coordinator (yet)", c.id)
		}
	}
	return c.shards.Dialer.Shard(addr)
}

// ended notes whether a call reached the shard, and otherwise asks again where it is.
func (c *shardConn) ended(ctx context.Context, err error) {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded: // this says nothing about the shard
	case codes.Unavailable, codes.Unauthenticated: // another process may have the address now
		c.shards.heard(c.id, false)
		_ = c.shards.Refresh(ctx) // the caller reports its own error
	default:
		c.shards.heard(c.id, true)
	}
}

// Invoke implements grpc.ClientConnInterface.
func (c *shardConn) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	conn, err := c.conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Invoke(ctx, method, args, reply, options...)
	c.ended(ctx, err)
	return err
}

// NewStream implements grpc.ClientConnInterface.
func (c *shardConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	conn, err := c.conn(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := conn.NewStream(ctx, desc, method, options...)
	if err != nil {
		c.ended(ctx, err)
		return nil, err
	}
	return &shardStream{ClientStream: stream, conn: c, ctx: ctx}, nil
}

// shardStream notices if the shard goes away during a call.
type shardStream struct {
	grpc.ClientStream
	conn *shardConn
	ctx  context.Context
}

func (s *shardStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.conn.ended(s.ctx, err)
	return err
}

// Away reports whether an error means that a shard could not be reached.
func Away(err error) bool { return errors.Is(err, store.ErrUnavailable) }
