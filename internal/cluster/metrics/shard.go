package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taxon/store"
)

// Shard wraps a store's shard and measures what it does.
func (p *Process) Shard(s store.Shard) store.Shard {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		p.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds})
		p.registry.MustRegister(h)
		return h
	}
	m := &shard{
		Shard:      s,
		putValues:  counter("taxon_store_put_values_total", "Values stored."),
		putBytes:   counter("taxon_store_put_bytes_total", "Bytes of the values stored."),
		putSeconds: histogram("taxon_store_put_seconds", "Time to make a batch of values durable, sync included."),
		getValues:  counter("taxon_store_get_values_total", "Values read and found."),
		getMissing: counter("taxon_store_get_missing_total", "Values asked for that are not here."),
		getBytes:   counter("taxon_store_get_bytes_total", "Bytes of the values read."),
		commits:    counter("taxon_store_commits_total", "Steps committed."),
		dropped:    counter("taxon_store_dropped_values_total", "Values deleted with their steps."),
		corrupt:    counter("taxon_store_corrupt_total", "Values whose bytes did not match their checksum."),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "taxon_store_errors_total", Help: "Requests that failed, by what was asked; ends of the caller's " +
				"patience are not counted.",
		}, []string{"op"}),
	}
	for _, op := range []string{"put", "get", "commit", "drop"} {
		m.errors.WithLabelValues(op) // at 0: an increase from nothing is none
	}
	p.registry.MustRegister(m.errors)
	return m
}

// Room adds figures about a shard's room, in bytes; read is called at each scrape.
func (p *Process) Room(read func() (free, reserve uint64)) {
	p.Gauge("taxon_store_free_bytes", "Bytes that are free on the shard's disk, or of its memory.", func() float64 {
		free, _ := read()
		return float64(free)
	})
	p.Gauge("taxon_store_reserve_bytes", "The shard refuses writes while fewer bytes are free.", func() float64 {
		_, reserve := read()
		return float64(reserve)
	})
}

// shard is a store.Shard that counts.
type shard struct {
	store.Shard
	putValues, putBytes             prometheus.Counter
	getValues, getMissing, getBytes prometheus.Counter
	commits, dropped, corrupt       prometheus.Counter
	putSeconds                      prometheus.Histogram
	errors                          *prometheus.CounterVec
}

// failed counts an error and returns it.
func (s *shard) failed(op string, err error) error {
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		s.errors.WithLabelValues(op).Inc()
		if errors.Is(err, store.ErrCorrupt) {
			s.corrupt.Inc()
		}
	}
	return err
}

// put counts n values of size bytes that were stored since start.
func (s *shard) put(start time.Time, n int, size uint64, err error) error {
	if err != nil {
		return s.failed("put", err)
	}
	s.putSeconds.Observe(time.Since(start).Seconds())
	s.putValues.Add(float64(n))
	s.putBytes.Add(float64(size))
	return nil
}

func (s *shard) Put(ctx context.Context, values []store.Value) error {
	var size uint64
	for i := range values {
		size += uint64(len(values[i].Data))
	}
	start := time.Now()
	return s.put(start, len(values), size, s.Shard.Put(ctx, values))
}

func (s *shard) PutChecksummed(ctx context.Context, values []store.Checksummed) error {
	var size uint64
	for i := range values {
		size += uint64(len(values[i].Data))
	}
	start := time.Now()
	return s.put(start, len(values), size, s.Shard.PutChecksummed(ctx, values))
}

// got counts a value that was read. A nil value was missing.
func (s *shard) got(data []byte) {
	if data == nil {
		s.getMissing.Inc()
		return
	}
	s.getValues.Inc()
	s.getBytes.Add(float64(len(data)))
}

func (s *shard) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	out, err := s.Shard.Get(ctx, keys)
	for _, data := range out {
		s.got(data)
	}
	return out, s.failed("get", err)
}

func (s *shard) Read(ctx context.Context, keys []store.Key, yield func(int, store.Checksummed) error) error {
	var own error // an error of the caller's yield, not of the shard
	err := s.Shard.Read(ctx, keys, func(i int, v store.Checksummed) error {
		s.got(v.Data)
		own = yield(i, v)
		return own
	})
	if own != nil {
		return err
	}
	return s.failed("get", err)
}

func (s *shard) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	err := s.Shard.Commit(ctx, job, step, attempts)
	if err == nil {
		s.commits.Inc()
	}
	return s.failed("commit", err)
}

func (s *shard) Drop(ctx context.Context, what store.DropSpec) (uint64, error) {
	n, err := s.Shard.Drop(ctx, what)
	s.dropped.Add(float64(n))
	return n, s.failed("drop", err)
}
