package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// GRPC measures the calls of a server: pass the options to grpc.NewServer. Methods come
// from the services that are registered, so that no caller can invent label values.
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
