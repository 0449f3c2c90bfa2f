package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker"
	"taxon/worker/program"
)

// Executor wraps a worker's executor and measures its tasks. slots is how many run at a time.
func (p *Process) Executor(e worker.Executor, slots int) worker.Executor {
	kinds := []string{"kind"}
	m := &executor{
		next: e,
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "taxon_worker_task_seconds", Help: "Wall time of tasks that were done, by kind.", Buckets: seconds,
		}, kinds),
		cpu: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "taxon_worker_task_cpu_seconds_total", Help: "CPU time of tasks that were done, by kind.",
		}, kinds),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "taxon_worker_tasks_total", Help: "Tasks that have ended, by how: done, failed (the error would come " +
				"again), retry, stopped.",
		}, []string{"result"}),
		read: prometheus.NewCounter(prometheus.CounterOpts{Name: "taxon_worker_read_bytes_total",
			Help: "Bytes of values read from the store."}),
		written: prometheus.NewCounter(prometheus.CounterOpts{Name: "taxon_worker_written_bytes_total",
			Help: "Bytes of values written to the store."}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{Name: "taxon_worker_running_tasks", Help: "Tasks under way."}),
	}
	for _, result := range results {
		m.ended.WithLabelValues(result) // at 0: an increase from nothing is none
	}
	total := prometheus.NewGauge(prometheus.GaugeOpts{Name: "taxon_worker_slots", Help: "Tasks that can run at a time."})
	total.Set(float64(slots))
	p.registry.MustRegister(m.seconds, m.cpu, m.ended, m.read, m.written, m.running, total)
	return m
}

// These values say how a task ended.
const (
	resultDone    = "done"
	resultFailed  = "failed" // the error would come again
	resultRetry   = "retry"
	resultStopped = "stopped"
)

var results = []string{resultDone, resultFailed, resultRetry, resultStopped}

// executor is a worker.Executor that counts.
type executor struct {
	next          worker.Executor
	seconds       *prometheus.HistogramVec
	cpu, ended    *prometheus.CounterVec
	read, written prometheus.Counter
	running       prometheus.Gauge
}

func (m *executor) Run(ctx context.Context, job *taxonv1.JobResult,
	lease *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	m.running.Inc()
	defer m.running.Dec()
	start := time.Now()
	sums, stats, err := m.next.Run(ctx, job, lease)
	kind := lease.GetOp()
	m.read.Add(float64(stats.BytesRead))
	m.written.Add(float64(stats.BytesWritten))
	result := resultDone
	switch {
	case err == nil:
		m.seconds.WithLabelValues(kind).Observe(time.Since(start).Seconds())
		m.cpu.WithLabelValues(kind).Add(stats.CPUSeconds)
	case ctx.Err() != nil:
		result = resultStopped
	case program.IsDeterministic(err):
		result = resultFailed
	default:
		result = resultRetry
	}
	m.ended.WithLabelValues(result).Inc()
	return sums, stats, err
}
