package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// maxJobSeries bounds the running jobs that have figures of their own.
const maxJobSeries = 100

// ClusterState is a coordinator's state for its metrics.
type ClusterState struct {
	// Jobs counts jobs by state: queued, running, waiting, done, failed, cancelled.
	Jobs map[string]int
	// Tasks counts the tasks of the present steps by state: waiting, running, done.
	Tasks map[string]int

	// Workers is the number of registered workers, and Slots is the number of slots that they have
	// together.
	Workers int
	Slots   int
	// Shards is the number of store shards that answer.
	Shards int
	// ShortOfCopies is the number of jobs with values on a shard that does not answer.
	ShortOfCopies int

	// Retried counts attempts of tasks after the first. Like the counts below, it begins when this
	// process starts.
	Retried uint64
	// Lost counts lost workers.
	Lost uint64
	// Speculated counts second attempts at slow tasks.
	Speculated uint64
	Rollbacks  uint64
	// Sweeps counts committed sweeps.
	Sweeps uint64
	// Ended counts ended jobs by state: done, failed, cancelled.
	Ended map[string]uint64

	// BytesRead and BytesWritten count the bytes that tasks read from the store and wrote to it.
	BytesRead, BytesWritten uint64
	JournalBytes            int64

	Running []RunningJob
}

// RunningJob is a job that runs.
type RunningJob struct {
	Job   string
	Sweep uint32
	// Gap is the relative gap. It is 1 if no gap is known yet.
	Gap float64
	// ETASeconds is zero if it is not known.
	ETASeconds float64

	// Progress is when a task of the job last ended, and Saved when its last snapshot was taken, in
	// Unix seconds. Saved is zero if there are no snapshots.
	Progress, Saved float64
}

// Cluster adds a coordinator's figures. read is called at each scrape.
func (p *Process) Cluster(read func() ClusterState) { p.registry.MustRegister(newCluster(read)) }

// cluster collects a coordinator's figures.
type cluster struct {
	read func() ClusterState
	all  []*prometheus.Desc

	jobs, tasks, workers, slots, shards          *prometheus.Desc
	retried, lost, speculated, rollbacks, sweeps *prometheus.Desc
	bytes, journal, sweep, gap, eta              *prometheus.Desc
	copies, ended, progress, saved               *prometheus.Desc
}

func newCluster(read func() ClusterState) *cluster {
	c := &cluster{read: read}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc(name, help, labels, nil)
		c.all = append(c.all, d)
		return d
	}
	c.jobs = desc("taxon_jobs", "Jobs, by state.", "state")
	c.tasks = desc("taxon_tasks", "Tasks of the steps under way, by state.", "state")
	c.workers = desc("taxon_workers", "Workers that are registered.")
	c.slots = desc("taxon_slots", "Tasks that the registered workers can run at a time.")
	c.shards = desc("taxon_store_shards", "Shards of the store that answer.")
	c.retried = desc("taxon_tasks_retried_total", "Attempts of tasks after the first one.")
	c.lost = desc("taxon_workers_lost_total", "Workers that fell silent.")
	c.speculated = desc("taxon_tasks_speculated_total", "Second copies of tasks that took too long.")
	c.rollbacks = desc("taxon_rollbacks_total", "Times that a job went back to an earlier sweep.")
	c.sweeps = desc("taxon_sweeps_total", "Sweeps committed, of all jobs.")
	c.bytes = desc("taxon_task_bytes_total", "Bytes that tasks moved, by direction: read from the store, written to it.",
		"direction")
	c.journal = desc("taxon_journal_bytes", "Size of the journal.")
	c.sweep = desc("taxon_job_sweep", "Highest committed sweep of a running job.", "job")
	c.gap = desc("taxon_job_gap", "Relative certified gap of a running job.", "job")
	c.eta = desc("taxon_job_eta_seconds", "Time that a running job will take yet; 0: not known.", "job")
	c.copies = desc("taxon_jobs_short_of_copies", "Jobs some of whose values lie on a shard that does not answer.")
	c.ended = desc("taxon_jobs_ended_total", "Jobs that have ended, by how.", "state")
	c.progress = desc("taxon_job_progress_timestamp_seconds", "When a task of a running job ended last, in Unix time.",
		"job")
	c.saved = desc("taxon_job_snapshot_timestamp_seconds", "When the last snapshot of a running job was taken, or the "+
		"job was started, in Unix time.", "job")
	return c
}

func (c *cluster) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.all {
		out <- d
	}
}

func (c *cluster) Collect(out chan<- prometheus.Metric) {
	s := c.read()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for _, state := range slices.Sorted(maps.Keys(s.Jobs)) {
		gauge(c.jobs, float64(s.Jobs[state]), state)
	}
	for _, state := range slices.Sorted(maps.Keys(s.Tasks)) {
		gauge(c.tasks, float64(s.Tasks[state]), state)
	}
	gauge(c.workers, float64(s.Workers))
	gauge(c.slots, float64(s.Slots))
	gauge(c.shards, float64(s.Shards))
	gauge(c.copies, float64(s.ShortOfCopies))
	gauge(c.journal, float64(s.JournalBytes))
	count(c.retried, s.Retried)
	count(c.lost, s.Lost)
	count(c.speculated, s.Speculated)
	count(c.rollbacks, s.Rollbacks)
	count(c.sweeps, s.Sweeps)
	for _, state := range slices.Sorted(maps.Keys(s.Ended)) {
		count(c.ended, s.Ended[state], state)
	}
	count(c.bytes, s.BytesRead, "read")
	count(c.bytes, s.BytesWritten, "written")
	for _, j := range s.Running[:min(len(s.Running), maxJobSeries)] {
		gauge(c.sweep, float64(j.Sweep), j.Job)
		gauge(c.gap, j.Gap, j.Job)
		gauge(c.eta, j.ETASeconds, j.Job)
		gauge(c.progress, j.Progress, j.Job)
		if j.Saved > 0 {
			gauge(c.saved, j.Saved, j.Job)
		}
	}
}
