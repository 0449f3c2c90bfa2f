package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/storerpc"
)

// DataStore keeps data sets on all shards of a cluster. Data sets exist before and after jobs, so
// no job's list of shards places them. Instead each value has its own order of all shards
// (rendezvous hashing). It is put on the first shards that are up, and looked for in that order,
// with shards that are down last. So shards may join, leave and return, and a missing shard delays
// nobody who finds the value elsewhere.
type DataStore struct {
	// Shards knows where the shards are.
	Shards *Shards
	// Copies is the number of copies of each value. Zero means one.
	Copies int
	// Patience is how long a call waits for shards that are away. Zero means until the context
	// ends.
	Patience time.Duration

	// mu guards clients.
	mu sync.Mutex
	// clients are the clients of single shards, by id.
	clients map[string]*storerpc.Client
}

// client returns the client of one shard.
func (d *DataStore) client(id string) (*storerpc.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.clients[id]; c != nil {
		return c, nil
	}
	c, err := storerpc.New([]storerpc.Endpoint{d.Shards.Endpoint(id)}, storerpc.Options{Patience: -1})
	if err != nil {
		return nil, err
	}
	if d.clients == nil {
		d.clients = map[string]*storerpc.Client{}
	}
	d.clients[id] = c
	return c, nil
}

// order lists the shards' ids in a key's order, with those that are down last.
func (d *DataStore) order(ctx context.Context, k store.Key) ([]string, error) {
	shards, err := d.Shards.Known(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(shards))
	rank := map[string][]byte{}
	for i, s := range shards {
		id := s.GetId()
		sum := sha256.Sum256(store.AppendKey(append([]byte(id), 0), k))
		down := byte(0)
		if d.Shards.down(id) {
			down = 1
		}
		ids[i], rank[id] = id, append([]byte{down}, sum[:]...)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(bytes.Compare(rank[a], rank[b]), cmp.Compare(a, b)) })
	return ids, nil
}

// heard lists the ids of the shards that the coordinator knows to be up.
func (d *DataStore) heard(ctx context.Context) ([]string, error) {
	_ = d.Shards.Refresh(ctx) // otherwise use what was known before
	shards, err := d.Shards.Known(ctx)
	var ids []string
	for _, s := range shards {
		if s.GetState() != taxonv1.MemberState_MEMBER_STATE_DOWN {
			ids = append(ids, s.GetId())
		}
	}
	return ids, err
}

// Put stores values, several at a time.
func (d *DataStore) Put(ctx context.Context, values []store.Value) error {
	return d.putCopies(ctx, values, d.Copies)
}

// Refill adds copies, on the shards that are up, of the values of a data set that have fewer than
// copies. It returns the number of such values.
func (d *DataStore) Refill(ctx context.Context, job string, copies int) (filled int, err error) {
	up, err := d.heard(ctx)
	if err != nil {
		return 0, err
	}
	copies = min(copies, len(up))
	have := map[store.Key]int{}
	if err := d.List(ctx, job, func(i store.Info) error { have[i.Key]++; return nil }); err != nil {
		return 0, err
	}
	for k, n := range have {
		if n >= copies {
			continue
		}
		value, err := d.get(ctx, k)
		if err == nil && value != nil {
			err = d.putCopies(ctx, []store.Value{{Key: k, Data: value}}, copies)
			filled++
		}
		if err != nil {
			return filled, err
		}
	}
	return filled, nil
}

// putCopies does what Put does, with a given number of copies.
func (d *DataStore) putCopies(ctx context.Context, values []store.Value, copies int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(batchParts)
	for _, v := range values {
		g.Go(func() error {
			return retry.Retry(ctx, d.Patience, func() error { return d.put(ctx, v, copies) }, store.IsTransient)
		})
	}
	return g.Wait()
}

// put puts a value on as many shards as it should have copies, or on all that answer.
func (d *DataStore) put(ctx context.Context, v store.Value, copies int) error {
	shards, err := d.order(ctx, v.Key)
	if err != nil {
		return err
	}
	done, errs := 0, []error(nil)
	for _, id := range shards {
		if done == max(copies, 1) {
			return nil
		}
		c, err := d.client(id)
		if err != nil {
			return err
		}
		switch err := c.Put(ctx, []store.Value{v}); {
		case err == nil:
			done++
		case store.IsTransient(err):
			errs = append(errs, err)
		default:
			return err
		}
	}
	if done > 0 {
		return nil
	}
	return cmp.Or(errors.Join(errs...), fmt.Errorf("no shard takes %v: %w", v.Key, store.ErrUnavailable))
}

// Get returns values, several at a time. A value that no shard has is nil.
func (d *DataStore) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	out := make([][]byte, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(batchParts)
	for i, k := range keys {
		g.Go(func() error {
			return retry.Retry(ctx, d.Patience, func() (err error) {
				out[i], err = d.get(ctx, k)
				return err
			}, Away)
		})
	}
	return out, g.Wait()
}

// get asks the shards in the key's order. A value is missing only if all of them say so. A damaged
// copy does not count as an answer.
func (d *DataStore) get(ctx context.Context, k store.Key) ([]byte, error) {
	shards, err := d.order(ctx, k)
	if err != nil {
		return nil, err
	}
	var away error
	for _, id := range shards {
		c, err := d.client(id)
		if err != nil {
			return nil, err
		}
		values, err := c.Get(ctx, []store.Key{k})
		switch {
		case err == nil && values[0] != nil:
			return values[0], nil
		case err != nil && (Away(err) || errors.Is(err, store.ErrCorrupt)):
			away = err
		case err != nil:
			return nil, err
		}
	}
	return nil, away
}

// Drop drops a data set, or any job, from all shards that answer.
func (d *DataStore) Drop(ctx context.Context, job string) error {
	shards, err := d.heard(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range shards {
		c, err := d.client(id)
		if err != nil {
			return err
		}
		if _, err := c.Drop(ctx, store.DropSpec{Job: job, All: true}); err != nil && !Away(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// List calls yield for the values of a job on all shards that answer. It yields a value once for
// each copy.
func (d *DataStore) List(ctx context.Context, job string, yield func(store.Info) error) error {
	return retry.Retry(ctx, d.Patience, func() error {
		shards, err := d.heard(ctx)
		if err != nil {
			return err
		}
		for _, id := range shards {
			c, err := d.client(id)
			if err != nil {
				return err
			}
			if err := c.List(ctx, job, yield); err != nil && !Away(err) {
				return err
			}
		}
		return nil
	}, Away)
}
