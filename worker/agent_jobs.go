package worker

import (
	"context"
	"slices"
	"sync"

	taxonv1 "taxon/proto/taxon/v1"
)

// maxJobs is the number of jobs whose specification is kept: a coordinator runs few at a time.
const maxJobs = 8

// jobCache remembers the last used jobs; one fetch serves all slots that wait for it.
type jobCache struct {
	mu   sync.Mutex
	jobs []*cachedJob // last used last
}

// cachedJob is filled by the slot that holds its token.
type cachedJob struct {
	id     string
	token  chan struct{} // of capacity 1: held while fetching
	result *taxonv1.JobResult
}

func (c *jobCache) init() { c.jobs = nil }

// get returns a job, fetching it if it is not there.
func (c *jobCache) get(ctx context.Context, id string, fetch func(context.Context) (*taxonv1.JobResult, error)) (*taxonv1.JobResult, error) {
	j := c.entry(id)
	select {
	case j.token <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-j.token }()
	if j.result != nil {
		return j.result, nil
	}
	r, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	j.result = r
	return r, nil
}

// entry finds or makes the entry of a job and marks it as used last.
func (c *jobCache) entry(id string) *cachedJob {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.jobs, func(j *cachedJob) bool { return j.id == id })
	var j *cachedJob
	if at >= 0 {
		j = c.jobs[at]
		c.jobs = slices.Delete(c.jobs, at, at+1)
	} else {
		j = &cachedJob{id: id, token: make(chan struct{}, 1)}
	}
	c.jobs = append(c.jobs, j)
	if len(c.jobs) > maxJobs {
		c.jobs = slices.Delete(c.jobs, 0, 1)
	}
	return j
}

// signal wakes one waiter, now or later.
type signal chan struct{}

func (s signal) signal() {
	select {
	case s <- struct{}{}:
	default:
	}
}

func (s signal) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s:
		return nil
	}
}
