package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Serving holds the figures of a process that serves models.
type Serving struct {
	took  *prometheus.HistogramVec
	rows  *prometheus.CounterVec
	loads *prometheus.CounterVec
}

// Serving adds them.
func (p *Process) Serving() *Serving {
	s := &Serving{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "taxon_serve_seconds", Help: "Time that requests took, by model, call and HTTP status.",
			Buckets: []float64{0.0001, 0.0002, 0.0003, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 1}}, []string{"model", "call", "code"}),
		rows:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "taxon_serve_instances_total", Help: "Instances that were answered, by model."}, []string{"model"}),
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "taxon_serve_loads_total", Help: "Times a model was opened, by model and whether it could be."}, []string{"model", "ok"}),
	}
	p.registry.MustRegister(s.took, s.rows, s.loads)
	return s
}

// Took counts a request. Labels must not come from callers.
func (s *Serving) Took(model, call string, code int, d time.Duration) {
	s.took.WithLabelValues(model, call, strconv.Itoa(code)).Observe(d.Seconds())
}

// Answered counts instances.
func (s *Serving) Answered(model string, rows int) { s.rows.WithLabelValues(model).Add(float64(rows)) }

// Loaded counts a model that was opened, or could not be.
func (s *Serving) Loaded(model string, ok bool) {
	s.loads.WithLabelValues(model, strconv.FormatBool(ok)).Inc()
}
