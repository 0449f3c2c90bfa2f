package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/data/dataset"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Collector drops uploaded data sets from the store when no job has referred to them for a while.
// Before a job is accepted, Submitting checks under a lock that its data are in the store. So a set
// that is being dropped is uploaded again, instead of being missed later.
type Collector struct {
	// Data is the store of the data sets.
	Data DataSets
	// Jobs lists the jobs.
	Jobs taxonv1.JobsClient
	// Keep is how long a data set stays in the store without a job that refers to it.
	Keep time.Duration
	// Dropped is called for each dropped set, with its id in the store. It may be nil.
	Dropped func(set string)
	// Failed is called with the error of each operation that failed and will be tried again.
	Failed func(error)

	// mu is held while a set is dropped and while a job is accepted.
	mu sync.Mutex
	// idle says for each set since when no job refers to it.
	idle map[string]time.Time
}

// DataSets is a store of data sets (see DataStore).
type DataSets interface {
	Reader
	List(ctx context.Context, job string, yield func(store.Info) error) error
	Drop(ctx context.Context, job string) error
	Refill(ctx context.Context, job string, copies int) (filled int, err error)
}

// minCollectPause and maxCollectPause bound the time between two passes over the store, each of
// which lists all values.
const (
	minCollectPause = 50 * time.Millisecond
	maxCollectPause = 3 * time.Hour
)

// Run collects until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	every := min(max(c.Keep/8, minCollectPause), maxCollectPause)
	for retry.For(ctx, every) == nil {
		if err := c.collect(ctx, time.Now()); err != nil && ctx.Err() == nil {
			c.Failed(fmt.Errorf("collect data sets: %w", err))
		}
	}
}

// refillEvery is how often copies of data sets are counted.
const refillEvery = time.Minute

// Refill restores, until ctx ends, the number of copies of data sets that their jobs ask for: a
// shard may have been lost, or may have been down when they were uploaded.
func (c *Collector) Refill(ctx context.Context) {
	for retry.For(ctx, refillEvery) == nil {
		if err := c.refill(ctx); err != nil && ctx.Err() == nil {
			c.Failed(fmt.Errorf("copies of data sets: %w", err))
		}
	}
}

// refill restores the copies once.
func (c *Collector) refill(ctx context.Context) error {
	c.mu.Lock()
	used, err := c.referred(ctx)
	c.mu.Unlock()
	for set, copies := range used {
		if copies > 1 && err == nil {
			_, err = c.Data.Refill(ctx, set, copies)
		}
	}
	return err
}

// collect drops the sets that have been idle for Keep.
func (c *Collector) collect(ctx context.Context, now time.Time) error {
	sets := map[string]bool{}
	err := c.Data.List(ctx, "", func(i store.Info) error {
		if strings.HasPrefix(i.Key.Job, dataPrefix) {
			sets[i.Key.Job] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	var old []string
	for set := range sets { // sorted below
		if c.idleFor(set, now) >= c.Keep {
			old = append(old, set)
		}
	}
	slices.Sort(old)
	var errs []error
	for _, set := range old {
		errs = append(errs, c.drop(ctx, set, now))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for set := range c.idle {
		if !sets[set] {
			delete(c.idle, set)
		}
	}
	return errors.Join(errs...)
}

// idleFor returns how long a set is known to be idle. Jobs are asked only when its time is up.
func (c *Collector) idleFor(set string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.idle[set]
	if !ok {
		if c.idle == nil {
			c.idle = map[string]time.Time{}
		}
		since, c.idle[set] = now, now
	}
	return now.Sub(since)
}

// drop drops a set, unless a job refers to it.
func (c *Collector) drop(ctx context.Context, set string, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, err := c.referred(ctx)
	if err != nil {
		return err
	}
	if used[set] > 0 {
		c.idle[set] = now
		return nil
	}
	if err := c.Data.Drop(ctx, set); err != nil {
		return err
	}
	delete(c.idle, set)
	if c.Dropped != nil {
		c.Dropped(set)
	}
	return nil
}

// referred returns the data sets of jobs that run, wait or can be resumed, or whose result can be
// fetched. Each comes with the largest number of copies that one of the jobs asks for.
func (c *Collector) referred(ctx context.Context) (map[string]int, error) {
	list, err := c.Jobs.ListJobs(ctx, &taxonv1.ListJobsRequest{})
	if err != nil {
		return nil, err
	}
	used := map[string]int{}
	for _, j := range list.GetJobs() {
		ended := j.GetEndedUnixMs() != 0
		if ended && !j.GetResumable() && !j.GetExportable() {
			continue
		}
		d, err := c.Jobs.Describe(ctx, &taxonv1.JobRequest{Job: j.GetJob()})
		if status.Code(err) == codes.NotFound { // forgotten meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		set := dataJob(d.GetSpec().GetData().GetFingerprint())
		used[set] = max(used[set], int(d.GetReplicas()), 1)
	}
	return used, nil
}

// Strays lists the jobs that have values in the store and that the coordinator does not know or has
// dropped, and drops those named. If one of the named jobs is not such a job, it drops nothing.
func (c *Collector) Strays(ctx context.Context, drop []string) ([]*taxonv1.Stray, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*taxonv1.Stray{}
	err := c.Data.List(ctx, "", func(i store.Info) error {
		if strings.HasPrefix(i.Key.Job, dataPrefix) {
			return nil
		}
		s := found[i.Key.Job]
		if s == nil {
			s = &taxonv1.Stray{Job: i.Key.Job}
			found[i.Key.Job] = s
		}
		s.Values, s.Bytes = s.Values+1, s.Bytes+i.Bytes
		return nil
	})
	if err != nil {
		return nil, err
	}
	list, err := c.Jobs.ListJobs(ctx, &taxonv1.ListJobsRequest{}) // after the values, so that no new job's are strays
	if err != nil {
		return nil, err
	}
	for _, j := range list.GetJobs() {
		if !j.GetKept().GetDropped() {
			delete(found, j.GetJob())
		}
	}
	for _, job := range drop {
		if found[job] == nil {
			return nil, status.Errorf(codes.FailedPrecondition, "job %.64q has no values that nobody refers to: "+
				"nothing was dropped", job)
		}
	}
	for _, job := range drop {
		if err := c.Data.Drop(ctx, job); err != nil {
			return nil, err
		}
		found[job].Dropped = true
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b *taxonv1.Stray) int { return strings.Compare(a.Job, b.Job) })
	return out, nil
}

// Submitting accepts a job by calling take if all of its data are in the store, and blocks the
// collector meanwhile. Data on a shard that is away count as present.
func (c *Collector) Submitting(ctx context.Context, d *taxonv1.Data, take func() error) error {
	_, held, namesOnly := savedData(d)
	if held == nil {
		return status.Error(codes.InvalidArgument, "the names of the job's data must be in the store, also if workers read "+
			"the data in place: `taxon submit` puts them there")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err := complete(ctx, c.Data, held, namesOnly, d); {
	case errors.Is(err, errMadeUp):
		return status.Error(codes.InvalidArgument, err.Error())
	case err != nil && !(Away(err) && !errors.Is(err, ErrNotThere)):
		return status.Error(codes.Aborted, err.Error())
	}
	if err := take(); err != nil {
		return err
	}
	delete(c.idle, dataJob(d.GetFingerprint()))
	return nil
}

// complete returns an error if a data set in the store is incomplete, or if the job describes it
// wrongly. A list leaves out shards that are away, so values that it lacks are read, which tells
// missing from away.
func complete(ctx context.Context, st DataSets, d *taxonv1.Data, namesOnly bool, described *taxonv1.Data) error {
	l, err := listing(ctx, st, d)
	if err != nil {
		return err
	}
	if err := checkDescription(described, l); err != nil {
		return err
	}
	have := map[store.Key]uint64{}
	err = st.List(ctx, dataJob(l.Fingerprint), func(i store.Info) error {
		have[i.Key] = i.Bytes
		return nil
	})
	if err != nil {
		return err
	}
	for n, f := range l.Files {
		if namesOnly && !dataset.HoldsNames(f.Name) {
			continue
		}
		sums := l.parts[f.Name]
		if len(sums) != parts(f.Bytes) {
			return fmt.Errorf("%s of data %.12s %w", f.Name, l.Fingerprint, ErrNotThere)
		}
		for k, sum := range sums {
			key, want := partKey(l.Fingerprint, n, sum), uint64(min(partBytes, f.Bytes-int64(k)*partBytes))
			if have[key] == want {
				continue
			}
			value, err := st.Get(ctx, []store.Key{key})
			if err != nil {
				return err
			}
			if uint64(len(value[0])) != want {
				return fmt.Errorf("%s of data %.12s %w", f.Name, l.Fingerprint, ErrNotThere)
			}
		}
	}
	return nil
}

// errMadeUp is wrapped by the refusal of a job whose description of its data is wrong.
var errMadeUp = errors.New("the job describes other data than it names")

// checkDescription compares what a job says about its data with the data's manifest. The
// coordinator plans by what the job says, and keeps it, so nobody should make it keep more than
// they have uploaded.
func checkDescription(d *taxonv1.Data, l *held) error {
	names := int64(0)
	for _, label := range d.GetLabels() {
		names += int64(len(label)) + 1
	}
	file := int64(0)
	for _, f := range l.Files {
		if f.Name == dataset.LabelsName {
			file = f.Bytes
		}
	}
	stats := l.Stats
	for _, c := range []struct {
		what      string
		said, has int64
	}{
		{"labels", int64(len(d.GetLabels())), stats.Labels},
		{"bytes of labels' names", names, file},
		{"counts of labels", int64(len(d.GetLabelInstances())), stats.Labels},
		{"counts of terms", int64(len(d.GetLabelTerms())), stats.Labels},
		{"terms", int64(min(d.GetTerms(), math.MaxInt64)), stats.Terms},
		{"instances", int64(min(d.GetInstances(), math.MaxInt64)), stats.Rows},
		{"features", int64(min(d.GetFeatures(), math.MaxInt64)), stats.Columns},
		{"nonzeros", int64(min(d.GetNonzeros(), math.MaxInt64)), stats.Nonzeros},
		{"bytes of a set of rows", int64(len(d.GetRows())), (stats.Rows + 7) / 8},
		{"counts of features", int64(len(d.GetFeatureCountsLog())), maxFeatureCounts},
	} {
		if c.said > c.has {
			return fmt.Errorf("%w: it has %d %s, data %.12s have %d", errMadeUp, c.said, c.what, l.Fingerprint, c.has)
		}
	}
	return nil
}

// maxFeatureCounts bounds the counts of features in a description.
const maxFeatureCounts = 4096
