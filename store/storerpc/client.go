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

// Endpoint is one shard: its name, which decides placement and must never change while it holds
// values, and a way to reach it.
type Endpoint struct {
	Name string
	Conn grpc.ClientConnInterface
	Down func() bool // it is believed to be down, so it is not read from if another copy will do; nil: never
}

// Options of a client; the zero value means the defaults.
type Options struct {
	Limits   store.Limits
	Replicas int // copies of each value, 1 to 8 and at most the number of shards; default 1
	// Patience is how long a call tries a shard that is away before it fails with
	// store.ErrUnavailable; default 20 s, negative: one try.
	Patience time.Duration
}

// Client is a store.Store over several shards. With replicas it works as long as fewer of a
// value's shards are away than it has copies:
//
//   - Put is acknowledged when all copies are written. A copy on a shard that is away for a
//     fifth of the patience is left out if another copy is written. Behind then lists the shard,
//     and Repair brings it up to date.
//   - Get tries the copies in the order of placement, with shards believed to be down last. It
//     goes on to the next copy if one is missing, damaged or away, and then writes the value to
//     where it was missing or damaged. A value is missing (nil) or corrupt (store.LostError)
//     only if all copies are. The copies of a value are equal if its writer writes nothing else
//     under its key, which all writers must obey: each attempt has its own key.
//   - Commit, Drop and List work without shards that are away, if these are fewer than the copies.
type Client struct {
	shards   []*shard // by name
	place    placement
	limits   store.Limits
	copies   int
	patience time.Duration

	mu     sync.Mutex
	behind map[string]uint64 // how often writes left out a shard since its last repair
}

var _ store.Store = (*Client)(nil)

// shard is the client of one shard.
type shard struct {
	*node
	limits store.Limits
	local  bool // in this process: values are passed on whole
}

// NewClient makes a client for shards that are always there: one copy, one try. Limits apply to
// requests here, beside those of the shards.
func NewClient(endpoints []Endpoint, limits store.Limits) (*Client, error) {
	return New(endpoints, Options{Limits: limits, Patience: -1})
}

// New makes a client for a set of shards. Their names matter, but not the order of endpoints.
func New(endpoints []Endpoint, o Options) (*Client, error) {
	nodes := make([]*node, len(endpoints))
	for i, e := range endpoints {
		nodes[i] = newNode(e)
	}
	return newClient(nodes, o)
}

func newClient(nodes []*node, o Options) (*Client, error) {
	if len(nodes) == 0 {
		return nil, fmt.Errorf("store client: %w: no shard", store.ErrInvalid)
	}
	copies := max(o.Replicas, 1)
	if copies > min(len(nodes), maxReplicas) {
		return nil, fmt.Errorf("store client: %w: %d replicas on %d shards: at most one a shard and %d in all", store.ErrInvalid, copies, len(nodes), maxReplicas)
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

// Shards are the names of the shards, sorted.
func (c *Client) Shards() []string { return slices.Clone(c.place.names) }

// Replicas is the number of copies of each value.
func (c *Client) Replicas() int { return c.copies }

// Behind lists the shards that this client's writes left out since it last repaired them, sorted.
// Repair them when they are back.
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

// misses is how often writes left a shard out.
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

// each runs f for the given shards at once, and returns the first error.
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

// all lists all shards.
func (c *Client) all() []int {
	out := make([]int, len(c.shards))
	for i := range out {
		out[i] = i
	}
	return out
}

// Commit goes to every shard; see store.Store.
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

// Drop goes to every shard; see store.Store. Copies of a value count once.
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

// An order to a shard that is not worth waiting for is tried for orderWait, and not again for
// orderPause.
const (
	orderWait  = time.Second
	orderPause = 10 * time.Second
)

// tell makes a call to every shard that only deletes what nobody reads. With replicas it works
// without shards that stay away; what they keep is deleted by a later Drop. It waits for such a
// shard once, and then hardly: other calls follow, and a job's end waits for them all.
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

// hopeless says whether a shard is not worth waiting for.
func (c *Client) hopeless(i int) bool { return c.shards[i].failing.Load() || c.shards[i].down() }

// Close does nothing: connections belong to their makers.
func (c *Client) Close() error { return nil }

// ShardOf is the index in Shards of the shard with a key's first copy.
func (c *Client) ShardOf(k store.Key) int { return c.place.of(k) }

// node is a shard as a client knows it: its permanent id, and the way to it.
type node struct {
	name string
	rpc  taxonv1.StoreClient
	down func() bool // said to be down: not read from where a copy elsewhere will do
	// failing: the last write or order gave up on it. Until one succeeds, others do not wait for it
	// if another copy will do.
	failing atomic.Bool
	ordered atomic.Int64               // when an order was given up, in nanoseconds since 1970
	files   atomic.Pointer[attachment] // nil: not asked for
	scratch atomic.Pointer[scratch]    // waits to be reused; nil: none
}

func newNode(e Endpoint) *node {
	n := &node{name: e.Name, rpc: taxonv1.NewStoreClient(e.Conn), down: e.Down}
	if n.down == nil {
		n.down = func() bool { return false }
	}
	return n
}

const (
	// defaultPatience is how long an unavailable shard is tried. A supervisor restarts it within
	// seconds, and reading its log takes a few more.
	defaultPatience = 20 * time.Second

	firstWait = 25 * time.Millisecond
	lastWait  = time.Second
)

// patience is the time that one call has for shards that are away. Pauses between tries double up
// to a second.
type patience struct {
	total time.Duration
	start time.Time
	wait  time.Duration
}

func newPatience(total time.Duration) patience {
	return patience{total: total, start: time.Now(), wait: firstWait}
}

// spent says whether a share (0 to 1) of the patience is used up.
func (p *patience) spent(share float64) bool {
	return time.Since(p.start) >= time.Duration(share*float64(p.total))
}

// pause waits before the next try; the context's error if that ends first.
func (p *patience) pause(ctx context.Context) error {
	d := p.wait
	p.wait = min(2*d, lastWait)
	return retry.For(ctx, d)
}

// away says whether an error means that a shard is away for a while: it can't be reached, or it
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
