package node

import (
	"context"
	"maps"
	"sync"
	"time"

	"taxon/coordinator"
	"taxon/internal/cluster/jobs"
	"taxon/internal/cluster/metrics"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/storerpc"
)

// figuresTimeout bounds what a scrape may cost a busy coordinator.
const figuresTimeout = 5 * time.Second

// clusterFigures reads a coordinator's figures for a scrape, through the calls that users make.
// Counters over the life of the process are kept here, as the coordinator forgets jobs that ended
// long ago.
type clusterFigures struct {
	jobs    taxonv1.JobsClient
	journal func() int64
	// saved returns when the last snapshot of a job was taken, or zero if there is none. It is nil
	// if no snapshots are taken.
	saved func(job string) time.Time

	mu    sync.Mutex
	total jobCounts
	seen  map[string]jobCounts // by job: its part of total
	ended map[string]int64     // jobs whose final counts are in total: when they ended
	ends  map[string]uint64    // jobs that have ended, by state
	lost  map[string]bool      // workers
}

// jobCounts holds the figures of a job that never fall.
type jobCounts struct{ sweeps, retried, speculated, rollbacks, read, written uint64 }

func (c *jobCounts) add(now, before jobCounts) {
	// A job that was rolled back temporarily has fewer sweeps.
	c.sweeps += now.sweeps - min(before.sweeps, now.sweeps)
	c.retried += now.retried - min(before.retried, now.retried)
	c.speculated += now.speculated - min(before.speculated, now.speculated)
	c.rollbacks += now.rollbacks - min(before.rollbacks, now.rollbacks)
	c.read += now.read - min(before.read, now.read)
	c.written += now.written - min(before.written, now.written)
}

// newClusterFigures returns figures that start from what the coordinator knows about earlier
// processes.
func newClusterFigures(s *coordinator.Server, journal func() int64, saved func(job string) time.Time) *clusterFigures {
	channel := storerpc.NewChannel()
	s.Register(channel)
	c := &clusterFigures{jobs: taxonv1.NewJobsClient(channel), journal: journal, saved: saved,
		seen: map[string]jobCounts{}, ended: map[string]int64{}, lost: map[string]bool{}, ends: map[string]uint64{}}
	c.read()
	c.total, c.ends = jobCounts{}, map[string]uint64{}
	return c
}

// read returns the present figures. It leaves out figures that are unavailable.
func (c *clusterFigures) read() metrics.ClusterState {
	ctx, cancel := context.WithTimeout(context.Background(), figuresTimeout)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := metrics.ClusterState{Jobs: map[string]int{}, Tasks: map[string]int{"waiting": 0, "running": 0, "done": 0},
		JournalBytes: c.journal()}
	for _, state := range jobs.States() {
		s.Jobs[state] = 0
	}
	s.Ended = map[string]uint64{}
	for _, state := range []taxonv1.JobState{taxonv1.JobState_JOB_STATE_DONE, taxonv1.JobState_JOB_STATE_FAILED,
		taxonv1.JobState_JOB_STATE_CANCELLED} {
		s.Ended[jobs.StateName(state)] = 0
	}
	if list, err := c.jobs.ListJobs(ctx, &taxonv1.ListJobsRequest{}); err == nil {
		c.readJobs(ctx, list.Jobs, &s)
	}
	if list, err := c.jobs.Workers(ctx, &taxonv1.WorkersRequest{}); err == nil {
		c.readWorkers(list.Workers, &s)
	}
	short := map[string]bool{}
	if list, err := c.jobs.Stores(ctx, &taxonv1.StoresRequest{}); err == nil {
		for _, shard := range list.Shards {
			if shard.State == taxonv1.MemberState_MEMBER_STATE_UP {
				s.Shards++
				continue
			}
			for _, job := range shard.Jobs {
				short[job] = true
			}
		}
	}
	s.ShortOfCopies = len(short)
	maps.Copy(s.Ended, c.ends)
	s.Sweeps, s.Retried, s.Speculated, s.Rollbacks = c.total.sweeps, c.total.retried, c.total.speculated, c.total.rollbacks
	s.BytesRead, s.BytesWritten = c.total.read, c.total.written
	return s
}

func (c *clusterFigures) readJobs(ctx context.Context, list []*taxonv1.JobInfo, s *metrics.ClusterState) {
	kept := map[string]bool{}
	for _, j := range list {
		kept[j.Job] = true
		s.Jobs[jobs.StateOf(j.State, j.Kept, j.Waits)]++
		over := j.State.Ended()
		if over && c.ended[j.Job] == j.EndedUnixMs {
			continue
		}
		if over {
			c.ends[jobs.StateName(j.State)]++
		}
		st, err := c.jobs.Status(ctx, &taxonv1.StatusRequest{Job: j.Job})
		if err != nil {
			continue
		}
		now := jobCounts{uint64(st.Sweep), uint64(st.Tasks.GetRetried()), uint64(st.Speculated), uint64(st.Rollbacks),
			st.BytesRead, st.BytesWritten}
		c.total.add(now, c.seen[j.Job])
		c.seen[j.Job], c.ended[j.Job] = now, j.EndedUnixMs // if the job is resumed, counting continues
		if j.State != taxonv1.JobState_JOB_STATE_RUNNING {
			continue
		}
		s.Tasks["waiting"] += int(st.Tasks.GetWaiting())
		s.Tasks["running"] += int(st.Tasks.GetRunning())
		s.Tasks["done"] += int(st.Tasks.GetDone())
		gap := 1.0
		if st.Certificate != nil && !st.Certificate.PrimalOnly {
			gap = st.Certificate.Gap
		}
		r := metrics.RunningJob{Job: j.Job, Sweep: st.Sweep, Gap: gap, ETASeconds: st.EtaSeconds,
			Progress: float64(st.ProgressUnixMs) / 1000}
		if c.saved != nil {
			r.Saved = float64(st.StartedUnixMs) / 1000
			if at := c.saved(j.Job); !at.IsZero() {
				r.Saved = float64(at.UnixMilli()) / 1000
			}
		}
		s.Running = append(s.Running, r)
	}
	for job := range c.seen {
		if !kept[job] {
			delete(c.seen, job)
			delete(c.ended, job)
		}
	}
}

func (c *clusterFigures) readWorkers(workers []*taxonv1.WorkerInfo, s *metrics.ClusterState) {
	for _, w := range workers {
		switch w.State {
		case taxonv1.MemberState_MEMBER_STATE_UP, taxonv1.MemberState_MEMBER_STATE_DRAINING:
			s.Workers++
			s.Slots += int(w.Slots)
		case taxonv1.MemberState_MEMBER_STATE_LOST:
			c.lost[w.Worker] = true
		}
	}
	s.Lost = uint64(len(c.lost))
}
