package storerpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"taxon/internal/retry"
	"taxon/store"
)

const (
	// repairBytes and repairValues bound a batch of a repair, and thereby its memory: one batch, or
	// one value if that is larger.
	repairBytes  = 4 << 20
	repairValues = 1024
)

// RepairOptions configure Repair. The zero value repairs everything at full speed.
type RepairOptions struct {
	// Job is the job whose values are repaired. An empty id means every job.
	Job string

	// BytesPerSecond bounds the rate of copying. Zero means no bound.
	BytesPerSecond uint64

	// Progress is called after each batch. It may be nil.
	Progress func(RepairResult)
}

// RepairResult counts what a repair did.
type RepairResult struct {
	// Checked is the number of values that the shard should hold.
	Checked uint64
	// Copied is the number of values that were missing or wrong and have been copied.
	Copied uint64
	// Bytes is the size of the copied values, in bytes.
	Bytes uint64
	// Gone is the number of missing or wrong values of which no other shard has an intact copy any
	// more.
	Gone uint64
	// Differ is the number of values that the shard holds with other bytes than the other shards.
	// They stay, because their writer is not deterministic.
	Differ uint64
}

// Repair copies to a shard the values that it should hold and lacks, from their other copies. It
// compares lists by size and checksum, so it copies only what is needed, and may be interrupted and
// called again. It changes nothing else, and can run during the job. It takes the memory of a batch
// of 4 MiB, or of the largest value. With one replica there is nothing to copy from. Damage that
// does not show in the shard's list is repaired when the value is read.
func Repair(ctx context.Context, c *Client, name string, o RepairOptions) (RepairResult, error) {
	target := -1
	for i, s := range c.shards {
		if s.name == name {
			target = i
		}
	}
	if target < 0 {
		return RepairResult{}, fmt.Errorf("repair: %w: shard %q is none of %v", store.ErrInvalid, name, c.place.names)
	}
	misses := c.misses(name)
	r := repair{Client: c, target: target, options: o, start: time.Now()}
	if err := r.run(ctx); err != nil {
		return r.RepairResult, fmt.Errorf("repair of store shard %s: %w", name, err)
	}
	c.repaired(name, misses)
	return r.RepairResult, nil
}

// repair is the state of a Repair.
type repair struct {
	*Client
	RepairResult
	target  int
	options RepairOptions
	start   time.Time

	// keys are to be copied, and bytes is their size as listed.
	keys  []store.Key
	bytes uint64 // of them, as listed
}

// run merges the list of the shard into those of the others.
func (r *repair) run(ctx context.Context) error {
	if r.copies == 1 {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := &listHead{client: r.Client, shard: r.shards[r.target], job: r.options.Job}
	if err := own.next(ctx); err != nil {
		return err
	}
	var others []*listHead
	for i, s := range r.shards {
		if i != r.target {
			others = append(others, &listHead{client: r.Client, shard: s, job: r.options.Job})
		}
	}
	err := r.merge(ctx, others, r.copies-2, func(in store.Info) error {
		for !own.ended && own.info.Key.Compare(in.Key) < 0 {
			if err := own.next(ctx); err != nil {
				return err
			}
		}
		if !r.belongs(in.Key) {
			return nil
		}
		r.Checked++
		if !own.ended && own.info == in {
			return nil
		}
		return r.add(ctx, in)
	})
	if err != nil {
		return err
	}
	return r.flush(ctx)
}

// belongs reports whether the shard should hold the key.
func (r *repair) belongs(k store.Key) bool {
	ranks := r.place.rank(k, r.copies)
	return slices.ContainsFunc(ranks[:r.copies], func(s uint16) bool { return int(s) == r.target })
}

// add adds a value to the batch, and copies a full batch first.
func (r *repair) add(ctx context.Context, in store.Info) error {
	if len(r.keys) > 0 && r.bytes+in.Bytes > repairBytes || len(r.keys) == repairValues {
		if err := r.flush(ctx); err != nil {
			return err
		}
	}
	r.keys = append(r.keys, in.Key)
	r.bytes += in.Bytes
	return nil
}

// flush copies the batch.
func (r *repair) flush(ctx context.Context) error {
	keys := r.keys
	r.keys, r.bytes = nil, 0
	if len(keys) == 0 {
		return ctx.Err()
	}
	values, err := r.fetch(ctx, keys)
	if err != nil {
		return err
	}
	r.Gone += uint64(len(keys) - len(values))
	if err := r.store(ctx, values); err != nil {
		return err
	}
	if r.options.Progress != nil {
		r.options.Progress(r.RepairResult)
	}
	return r.throttle(ctx)
}

// fetch reads the values from the other shards. It leaves out those without an intact copy there:
// they were dropped meanwhile, or their reader will find the damage.
func (r *repair) fetch(ctx context.Context, keys []store.Key) ([]store.Checksummed, error) {
	for {
		call := r.newGet(keys)
		for i := range keys {
			for copy := range r.copies {
				if call.shardOf(int32(i), copy) == r.target {
					call.bad[i] |= 1 << copy
				}
			}
		}
		if err := call.run(ctx); err != nil {
			return nil, err
		}
		var lost *store.LostError
		if errors.As(call.lost(), &lost) {
			keys = without(keys, lost.Keys)
			continue
		}
		var out []store.Checksummed
		for i, k := range keys {
			if data := call.out[i]; data != nil {
				out = append(out, store.Sum(store.Value{Key: k, Data: data}))
			}
		}
		return out, nil
	}
}

// store writes the values to the shard, one by one if the shard holds other bytes under their keys.
func (r *repair) store(ctx context.Context, values []store.Checksummed) error {
	if len(values) == 0 {
		return nil
	}
	positions := make([]int32, len(values))
	for i := range values {
		positions[i] = int32(i)
	}
	err := r.insist(ctx, func() error { return r.shards[r.target].put(ctx, values, positions) })
	switch {
	case err == nil:
		r.Copied += uint64(len(values))
		for i := range values {
			r.Bytes += uint64(len(values[i].Data))
		}
		return nil
	case !errors.Is(err, store.ErrConflict):
		return err
	case len(values) == 1:
		r.Differ++
		return nil
	}
	for i := range values {
		if err := r.store(ctx, values[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// without returns the keys that are not in drop.
func without(keys, drop []store.Key) []store.Key {
	gone := make(map[store.Key]bool, len(drop))
	for _, k := range drop {
		gone[k] = true
	}
	var out []store.Key
	for _, k := range keys {
		if !gone[k] {
			out = append(out, k)
		}
	}
	return out
}

// throttle waits until the copied bytes are within the rate.
func (r *repair) throttle(ctx context.Context) error {
	if r.options.BytesPerSecond == 0 {
		return ctx.Err()
	}
	due := time.Duration(float64(r.Bytes) / float64(r.options.BytesPerSecond) * float64(time.Second))
	return retry.For(ctx, due-time.Since(r.start))
}
