package cluster

import (
	"context"
	"math"

	"taxon/store"
)

// Keeper carries a coordinator's orders to the shards of each job. Orders only free
// space, so a shard that is away is not waited for longer than Patience: what it keeps
// too long goes with the job.
type Keeper struct {
	// Of gives the store of a job; nil: nothing of it is left anywhere.
	Of func(job string) (store.Store, error)
	// Forget is told of jobs that are dropped whole; nil: nobody.
	Forget func(ctx context.Context, job string) error
}

// Commit implements coordinator.Store.
func (k *Keeper) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	st, err := k.Of(job)
	if err != nil || st == nil {
		return err
	}
	return st.Commit(ctx, job, step, attempts)
}

// Drop implements coordinator.Store.
func (k *Keeper) Drop(ctx context.Context, job string, keep []uint32, before uint32) error {
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
