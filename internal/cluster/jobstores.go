package cluster

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/storerpc"
)

// JobStores makes the store of each job. Its values are on the shards that were chosen when it was
// submitted, in that order, wherever these run now.
type JobStores struct {
	// Shards knows where the shards are.
	Shards *Shards
	// Patience is how long a call waits for shards that are away. Zero means the client's default.
	Patience time.Duration

	// mu guards the fields below.
	mu    sync.Mutex
	byJob map[string]*jobStore // by job
	// order lists the jobs by their last use, latest last.
	order []string
}

// jobStore is the client of a job on the shards ids.
type jobStore struct {
	ids    []string
	client *storerpc.Client
}

// maxJobStores bounds the clients that are kept. They have no connections of their own.
const maxJobStores = 64

// Of returns the store of a job on the given shards, with the given number of copies of each value.
func (s *JobStores) Of(job string, shards []*taxonv1.Shard, replicas uint32) (*storerpc.Client, error) {
	if len(shards) == 0 {
		return nil, fmt.Errorf("job %s: no shard holds its values: %w", job, store.ErrUnavailable)
	}
	s.Shards.Learn(shards)
	ids := make([]string, len(shards))
	for i, sh := range shards {
		ids[i] = sh.GetId()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.byJob[job]; j != nil && slices.Equal(j.ids, ids) {
		return j.client, nil
	}
	ends := make([]storerpc.Endpoint, len(ids))
	for i, id := range ids {
		ends[i] = s.Shards.Endpoint(id)
	}
	c, err := storerpc.New(ends, storerpc.Options{Replicas: int(replicas), Patience: s.Patience})
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", job, err)
	}
	if s.byJob == nil {
		s.byJob = map[string]*jobStore{}
	}
	s.byJob[job] = &jobStore{ids, c}
	if s.order = append(s.order, job); len(s.order) > maxJobStores {
		delete(s.byJob, s.order[0])
		s.order = s.order[1:]
	}
	return c, nil
}

// StoreCleaner passes a coordinator's orders on to each job's shards. Orders only free space. So it
// waits for a shard that is away no longer than Patience; what the shard then keeps too long is
// freed with the job.
type StoreCleaner struct {
	// Of returns a job's store. It returns nil if nothing of the job is left.
	Of func(job string) (store.Store, error)
	// Forget is called for jobs that are dropped completely. It may be nil.
	Forget func(ctx context.Context, job string) error
}

// Commit implements coordinator.Store.
func (k *StoreCleaner) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	st, err := k.Of(job)
	if err != nil || st == nil {
		return err
	}
	return st.Commit(ctx, job, step, attempts)
}

// Drop implements coordinator.Store.
func (k *StoreCleaner) Drop(ctx context.Context, job string, keep []uint32, before uint32) error {
	st, err := k.Of(job)
	if err != nil {
		return err
	}
	if st != nil {
		if _, err = st.Drop(ctx, store.DropSpec{Job: job, Keep: keep, Before: before}); err != nil {
			return err
		}
	}
	if k.Forget != nil && before == math.MaxUint32 && len(keep) == 0 {
		return k.Forget(ctx, job)
	}
	return nil
}
