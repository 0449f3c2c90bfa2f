package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/storerpc"
)

// JobStores makes the store of each job: its values lie on the shards that were pinned
// when it was submitted, in that order, wherever these run now.
type JobStores struct {
	Shards   *Shards
	Patience time.Duration // with shards that are away; 0: the client's own

	mu    sync.Mutex
	byJob map[string]*jobStore // by job
	order []string             // used last last
}

type jobStore struct {
	ids    []string
	client *storerpc.Client
}

// maxJobStores bounds the clients that are kept. They own no connections.
const maxJobStores = 64

// Of is the store of a job on so many pinned shards and copies.
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
