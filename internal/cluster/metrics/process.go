package metrics

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Process holds the figures of one process. Its methods add families of figures; each may be
// called once.
type Process struct {
	registry *prometheus.Registry
	refused  *prometheus.CounterVec
}

// NewProcess starts with the figures that all processes have: build, memory, CPU,
// goroutines, open files, refused calls.
func NewProcess(role, version string) *Process {
	p := &Process{
		registry: prometheus.NewRegistry(),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "taxon_grpc_refused_total", Help: "Calls refused, by gRPC code: no identity, not for the " +
				"caller, beyond a limit.",
		}, []string{"code"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "taxon_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"role": role, "version": version, "go": runtime.Version()},
	})
	build.Set(1)
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.ResourceExhausted} {
		p.refused.WithLabelValues(code.String()) // at 0: an increase from nothing is none
	}
	p.registry.MustRegister(build, p.refused, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return p
}

// Gauge adds a figure that is read at each scrape.
func (p *Process) Gauge(name, help string, read func() float64) {
	p.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Certificate adds the time at which the process's own certificate expires. expires is called at
// each scrape, and returns zero if that is not known.
func (p *Process) Certificate(expires func() time.Time) {
	p.Gauge("taxon_certificate_expiry_timestamp_seconds", "When the process's own certificate expires, in Unix "+
		"time; 0: not known.", func() float64 {
		if at := expires(); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	})
}

// seconds are the buckets for all durations here, from a call within a machine to a task or sync
// that has gone wrong.
var seconds = []float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300}

// GRPC returns options for grpc.NewServer that measure a server's calls. Method labels come from
// the registered services, so callers can't invent label values.
func (p *Process) GRPC() []grpc.ServerOption {
	labels := []string{"method", "code"}
	handled := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "taxon_grpc_handling_seconds", Help: "Time that unary calls took, by method and code.", Buckets: seconds,
	}, labels)
	streams := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "taxon_grpc_streams_total", Help: "Streaming calls that have ended, by method and code.",
	}, labels)
	open := prometheus.NewGauge(prometheus.GaugeOpts{Name: "taxon_grpc_open_calls", Help: "Calls under way."})
	p.registry.MustRegister(handled, streams, open)
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		open.Inc()
		defer open.Dec()
		start := time.Now()
		reply, err := handle(ctx, req)
		handled.WithLabelValues(info.FullMethod, status.Code(err).String()).Observe(time.Since(start).Seconds())
		return reply, err
	}
	stream := func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		open.Inc()
		defer open.Dec()
		err := handle(srv, s)
		streams.WithLabelValues(info.FullMethod, status.Code(err).String()).Inc()
		return err
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}

// Serving holds the figures of a process that serves models.
type Serving struct {
	took  *prometheus.HistogramVec
	rows  *prometheus.CounterVec
	loads *prometheus.CounterVec
}

// Serving adds the figures of a process that serves models.
func (p *Process) Serving() *Serving {
	s := &Serving{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "taxon_serve_seconds",
			Help:    "Time that requests took, by model, call and HTTP status.",
			Buckets: []float64{0.0001, 0.0002, 0.0003, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 1}},
			[]string{"model", "call", "code"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "taxon_serve_instances_total",
			Help: "Instances that were answered, by model."}, []string{"model"}),
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "taxon_serve_loads_total",
			Help: "Times a model was opened, by model and whether it could be."}, []string{"model", "ok"}),
	}
	p.registry.MustRegister(s.took, s.rows, s.loads)
	return s
}

// Took counts a request. Labels must not come from callers.
func (s *Serving) Took(model, call string, code int, d time.Duration) {
	s.took.WithLabelValues(model, call, strconv.Itoa(code)).Observe(d.Seconds())
}

// Answered counts the instances for which the process returned predictions.
func (s *Serving) Answered(model string, rows int) { s.rows.WithLabelValues(model).Add(float64(rows)) }

// Loaded counts a model that was opened, or one that could not be opened.
func (s *Serving) Loaded(model string, ok bool) {
	s.loads.WithLabelValues(model, strconv.FormatBool(ok)).Inc()
	s.loads.WithLabelValues(model, strconv.FormatBool(!ok))
	for _, call := range []string{"predict", "explain"} {
		for _, code := range []int{http.StatusOK, http.StatusTooManyRequests} {
			s.took.WithLabelValues(model, call, strconv.Itoa(code)) // at 0
		}
	}
}
