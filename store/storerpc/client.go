package storerpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Endpoint is one shard and the way to reach it.
type Endpoint struct {
	// Name decides the placement of keys. It must not change while the shard holds values.
	Name string
	// Conn is the connection to the shard's server.
	Conn grpc.ClientConnInterface
	// Down reports whether the shard is believed to be down. The client then reads other copies, if
	// there are any. A nil Down means that it is never believed to be down.
	Down func() bool
}

// Options configure a client. The zero value means the defaults.
type Options struct {
	// Limits bound single requests, in addition to the limits of the shards.
	Limits store.Limits

	// Replicas is the number of copies of each value, 1 to 8 and at most the number of shards. Zero
	// stands for 1.
	Replicas int

	// Patience is how long a call tries a shard that is away before it fails with
	// store.ErrUnavailable. Zero stands for 20 s. A negative patience means a single try.
	Patience time.Duration
}

// Client is a store.Store over several shards. With replicas it works as long as fewer of a value's
// shards are away than it has copies:
//
//   - Put is acknowledged when all copies are written. A copy on a shard that is away for a fifth
//     of the patience is left out if another copy is written. Behind then lists the shard, and
//     Repair updates it.
//   - Get tries the copies in the order of placement, with shards believed to be down last. If a
//     copy is missing, damaged or away it reads the next one, and then writes the value to where it
//     was missing or damaged. A value is missing (nil) or corrupt (store.LostError) only if all
//     copies are. The copies of a value are equal if its writer writes nothing else under its key;
//     all writers must obey this rule, and do, because each attempt has its own key.
//   - Commit, Drop and List work without shards that are away, if these are fewer than the copies.
type Client struct {
	shards   []*shard // by name
	place    placement
	limits   store.Limits
	copies   int
	patience time.Duration

	mu sync.Mutex
	// behind counts how often writes left out a shard since its last repair, by name.
	behind map[string]uint64
}

var _ store.Store = (*Client)(nil)

// shard is the client of one shard.
type shard struct {
	*node
	limits store.Limits
	// local says that the shard is in this process, so that values are passed on as they are.
	local bool
}

// NewClient returns a client for shards that are always there: with one copy, and a single try.
// limits bound single requests, in addition to the limits of the shards.
func NewClient(endpoints []Endpoint, limits store.Limits) (*Client, error) {
	return New(endpoints, Options{Limits: limits, Patience: -1})
}

// New returns a client for a set of shards. Their names matter, but not the order of endpoints.
func New(endpoints []Endpoint, o Options) (*Client, error) {
	nodes := make([]*node, len(endpoints))
	for i, e := range endpoints {
		nodes[i] = newNode(e)
	}
	return newClient(nodes, o)
}

// newClient returns a client for shards whose connections are made.
func newClient(nodes []*node, o Options) (*Client, error) {
	if len(nodes) == 0 {
		return nil, fmt.Errorf("store client: %w: no shard", store.ErrInvalid)
	}
	copies := max(o.Replicas, 1)
	if copies > min(len(nodes), maxReplicas) {
		return nil, fmt.Errorf("store client: %w: %d replicas on %d shards: at most one a shard and %d in all",
			store.ErrInvalid, copies, len(nodes), maxReplicas)
	}
	c := &Client{limits: o.Limits.WithDefaults(), copies: copies, patience: o.Patience, behind: map[string]uint64{}}
	c.patience = cmp.Or(c.patience, defaultPatience)
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	names := make([]string, len(sorted))
	for i, n := range sorted {
		if i > 0 && names[i-1] == n.name {
			return nil, fmt.Errorf("store client: %w: two shards named %q", store.ErrInvalid, n.name)
		}
		if err := store.ValidateJob(n.name); err != nil { // same rule for shard names
			return nil, fmt.Errorf("store client: shard name: %w", err)
		}
		names[i] = n.name
		c.shards = append(c.shards, &shard{node: n, limits: c.limits})
	}
	c.place = newPlacement(names)
	return c, nil
}

// Shards returns the names of the shards, sorted.
func (c *Client) Shards() []string { return slices.Clone(c.place.names) }

// Replicas returns the number of copies of each value.
func (c *Client) Replicas() int { return c.copies }

// Behind returns the names of the shards that this client's writes left out since it last repaired
// them, sorted. Repair them when they are back.
func (c *Client) Behind() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for name := range c.behind {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// missed records that a write left a shard out.
func (c *Client) missed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind[name]++
}

// misses returns how often writes left a shard out.
func (c *Client) misses(name string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behind[name]
}

// repaired resets a shard's misses after a repair, if there were no more since.
func (c *Client) repaired(name string, misses uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.behind[name] == misses {
		delete(c.behind, name)
	}
}

// each runs f for the given shards concurrently, and returns the first error.
func (c *Client) each(ctx context.Context, shards []int, f func(ctx context.Context, i int) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(shards) == 1 {
		return f(ctx, shards[0])
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, i := range shards {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}

// all lists the indices of all shards.
func (c *Client) all() []int {
	out := make([]int, len(c.shards))
	for i := range out {
		out[i] = i
	}
	return out
}

// Commit implements store.Store. It calls every shard.
func (c *Client) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	if err := store.CheckCommit(job, attempts); err != nil {
		return err
	}
	req := &taxonv1.CommitRequest{Job: job, Step: step, Attempts: attempts}
	return c.tell(ctx, func(ctx context.Context, s *shard) error {
		_, err := s.rpc.Commit(ctx, req)
		return fromStatus(s.name, "commit", err)
	})
}

// Drop implements store.Store. It calls every shard. Copies of a value count once.
func (c *Client) Drop(ctx context.Context, what store.DropSpec) (uint64, error) {
	if err := what.Validate(); err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	req := &taxonv1.DropRequest{Job: what.Job, Before: what.Before, KeepSteps: what.Keep, All: what.All}
	var mu sync.Mutex
	var values uint64
	err := c.tell(ctx, func(ctx context.Context, s *shard) error {
		res, err := s.rpc.Drop(ctx, req)
		mu.Lock()
		defer mu.Unlock()
		values += res.GetValues()
		return fromStatus(s.name, "drop", err)
	})
	n := uint64(c.copies)
	return (values + n - 1) / n, err
}

// orderWait is how long an order is tried at a shard that is not worth waiting for, and orderPause
// the time in which it is not tried again.
const (
	orderWait  = time.Second
	orderPause = 10 * time.Second
)

// tell makes a call that only deletes what nobody reads to every shard. With replicas it works
// without shards that stay away; a later Drop deletes what they keep. It waits for such a shard
// only once, because other calls follow and the end of a job waits for all of them.
func (c *Client) tell(ctx context.Context, call func(ctx context.Context, s *shard) error) error {
	left := c.all()
	spare := c.copies - 1
	left = slices.DeleteFunc(left, func(i int) bool {
		skip := spare > 0 && c.hopeless(i) && time.Since(time.Unix(0, c.shards[i].ordered.Load())) < orderPause
		if skip {
			spare--
		}
		return skip
	})
	p := newPatience(c.patience)
	for {
		errs := make([]error, len(c.shards))
		err := c.each(ctx, left, func(ctx context.Context, i int) error {
			if errs[i] = c.order(ctx, c.shards[i], call); !away(errs[i]) {
				return errs[i]
			}
			return nil
		})
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(i int) bool {
			c.shards[i].failing.Store(errs[i] != nil && c.shards[i].failing.Load())
			return errs[i] == nil
		})
		patient := slices.ContainsFunc(left, func(i int) bool { return !c.hopeless(i) }) && !p.spent(shortPatience)
		if len(left) == 0 || len(left) <= spare && !patient {
			for _, i := range left {
				c.shards[i].failing.Store(true)
				c.shards[i].ordered.Store(time.Now().UnixNano())
			}
			return nil
		}
		if p.spent(1) {
			return errs[left[0]]
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}

// order makes one call. With replicas, a shard that does not answer in time counts as away.
func (c *Client) order(ctx context.Context, s *shard, call func(ctx context.Context, s *shard) error) error {
	if c.copies == 1 {
		return call(ctx, s)
	}
	wait := max(time.Duration(shortPatience*float64(c.patience)), orderWait)
	if s.failing.Load() || s.down() {
		wait = orderWait
	}
	short, done := context.WithTimeout(ctx, wait)
	defer done()
	err := call(short, s)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("store shard %s: %w: no answer", s.name, store.ErrUnavailable)
	}
	return err
}

// hopeless reports whether a shard is not worth waiting for.
func (c *Client) hopeless(i int) bool { return c.shards[i].failing.Load() || c.shards[i].down() }

// Close does nothing, because connections belong to their makers.
func (c *Client) Close() error { return nil }

// ShardOf returns the index in Shards of the shard with a key's first copy.
func (c *Client) ShardOf(k store.Key) int { return c.place.of(k) }

// node is a shard as a client knows it: its permanent id, and the way to it.
type node struct {
	name string
	rpc  taxonv1.StoreClient
	// down is Endpoint.Down, and never nil.
	down func() bool
	// failing says that the last write or order gave up on the shard. Until one succeeds, others do
	// not wait for it if another copy will do.
	failing atomic.Bool
	// ordered is when an order was given up, in nanoseconds since 1970.
	ordered atomic.Int64
}

// newNode returns the node of an endpoint.
func newNode(e Endpoint) *node {
	n := &node{name: e.Name, rpc: taxonv1.NewStoreClient(e.Conn), down: e.Down}
	if n.down == nil {
		n.down = func() bool { return false }
	}
	return n
}

const (
	// defaultPatience is the default of Options.Patience. A supervisor restarts a shard within
	// seconds, and reading its log takes a few more.
	defaultPatience = 20 * time.Second

	// firstWait and lastWait bound the pause between two tries.
	firstWait = 25 * time.Millisecond
	lastWait  = time.Second
)

// patience is the time that one call has for shards that are away. The pause between tries doubles
// up to a second.
type patience struct {
	total time.Duration
	start time.Time
	wait  time.Duration
}

// newPatience starts a patience.
func newPatience(total time.Duration) patience {
	return patience{total: total, start: time.Now(), wait: firstWait}
}

// spent reports whether a share (0 to 1) of the patience is used up.
func (p *patience) spent(share float64) bool {
	return time.Since(p.start) >= time.Duration(share*float64(p.total))
}

// pause waits before the next try. It returns the context's error if that ends first.
func (p *patience) pause(ctx context.Context) error {
	d := p.wait
	p.wait = min(2*d, lastWait)
	return retry.For(ctx, d)
}

// away reports whether an error means that a shard is away for a while: it can't be reached, or it
// is closing (which gives both errors).
func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable)
}

// insist repeats a call to one shard while the shard is away and patience lasts.
func (c *Client) insist(ctx context.Context, call func() error) error {
	p := newPatience(c.patience)
	for {
		err := call()
		if err == nil || !away(err) || p.spent(1) {
			return err
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}
