package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"taxon/internal/metrics"
	"taxon/internal/secure"
	taxonv1 "taxon/proto/taxon/v1"
)

// grpcServer answers the same calls over gRPC.
func (s *Server) grpcServer(p *metrics.Process) (*grpc.Server, error) {
	options, err := s.o.Security.ServerOptions(secure.DefaultPolicy())
	if err != nil {
		return nil, err
	}
	options = append(options, p.GRPC()...)
	// Without a worker each call starts a goroutine, whose stack must grow each time.
	options = append(options, grpc.MaxRecvMsgSize(int(s.o.MaxBytes)), grpc.NumStreamWorkers(uint32(cap(s.slots))))
	g := grpc.NewServer(options...)
	taxonv1.RegisterModelsServer(g, grpcModels{s: s})
	secure.Register(g, taxonv1.Models_ServiceDesc.ServiceName)
	return g, nil
}

// grpcModels is the service taxon.v1.Models.
type grpcModels struct {
	taxonv1.UnimplementedModelsServer
	s *Server
}

// ask is Server.ask with gRPC errors.
func (g grpcModels) ask(ctx context.Context, name, what string, q *question, answer func(*loaded, *question) error) error {
	err := g.s.timed(name, what, func() error {
		m, err := g.s.find(name)
		if err != nil {
			return err
		}
		return g.s.ask(ctx, m, q, answer)
	})
	if err == nil {
		return nil
	}
	switch codeOf(err) {
	case http.StatusNotFound:
		return status.Error(codes.NotFound, err.Error())
	case http.StatusBadRequest:
		return status.Error(codes.InvalidArgument, err.Error())
	case http.StatusTooManyRequests:
		busy := status.New(codes.ResourceExhausted, err.Error())
		if with, failed := busy.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}); failed == nil {
			busy = with
		}
		return busy.Err()
	case statusGone:
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// Predict is :predict.
func (g grpcModels) Predict(ctx context.Context, r *taxonv1.PredictRequest) (*taxonv1.PredictResult, error) {
	q := &question{rows: grpcRows(r.Instances), top: given(r.Top)}
	if err := g.ask(ctx, r.Model, "predict", q, (*loaded).predict); err != nil {
		return nil, err
	}
	labels := 0
	for _, p := range q.predictions {
		labels += len(p.Labels)
	}
	// All messages share two pieces of memory.
	out, each, scored, at := make([]*taxonv1.Prediction, len(q.predictions)), make([]taxonv1.Prediction, len(q.predictions)), make([]taxonv1.ScoredLabel, labels), make([]*taxonv1.ScoredLabel, labels)
	for i, p := range q.predictions {
		out[i] = &each[i]
		out[i].Error = p.Error
		out[i].Labels, at = at[:len(p.Labels):len(p.Labels)], at[len(p.Labels):]
		for k, l := range p.Labels {
			m := &scored[k]
			m.Label, m.Score, m.Path = l.Label, l.Score, l.Path
			out[i].Labels[k] = m
		}
		scored = scored[len(p.Labels):]
	}
	return &taxonv1.PredictResult{Predictions: out}, nil
}

// Explain is :explain.
func (g grpcModels) Explain(ctx context.Context, r *taxonv1.ExplainRequest) (*taxonv1.ExplainResult, error) {
	q := &question{rows: grpcRows(r.Instances), top: given(r.Top), label: r.Label}
	if r.Words != nil {
		words := int(r.GetWords())
		q.words = &words
	}
	if err := g.ask(ctx, r.Model, "explain", q, (*loaded).explain); err != nil {
		return nil, err
	}
	out := make([]*taxonv1.Explained, len(q.explanations))
	for i, e := range q.explanations {
		out[i] = &taxonv1.Explained{Error: e.Error}
		if e.Explanation == nil {
			continue
		}
		text, err := json.Marshal(e.Explanation)
		if err != nil {
			return nil, err
		}
		out[i].Explanation = &structpb.Struct{}
		if err := out[i].Explanation.UnmarshalJSON(text); err != nil {
			return nil, err
		}
	}
	return &taxonv1.ExplainResult{Explanations: out}, nil
}

// ListModels is GET /v1/models.
func (g grpcModels) ListModels(context.Context, *taxonv1.ListModelsRequest) (*taxonv1.ListModelsResult, error) {
	out := &taxonv1.ListModelsResult{}
	g.s.each(func(m modelInfo) {
		out.Models = append(out.Models, &taxonv1.ServedModel{Name: m.Name, Classes: uint32(m.Classes), Features: uint32(m.Features), Text: m.Text,
			Probabilities: m.Scores == "probabilities", Method: m.Report.Method, WeightsSha256: m.Report.WeightsSHA256})
	})
	return out, nil
}

// given is nil for what a message leaves out.
func given(n uint32) *int {
	if n == 0 {
		return nil
	}
	k := int(n)
	return &k
}

// grpcRows are instances of a message.
type grpcRows []*taxonv1.Instance

func (r grpcRows) len() int { return len(r) }

func (r grpcRows) vector(l *loaded, i int, v *vector) error {
	in := r[i]
	f, text := in.GetFeatures(), (*string)(nil)
	if t, ok := in.GetInput().(*taxonv1.Instance_Text); ok {
		text, f = &t.Text, in.GetNumbers()
	}
	index, value := f.GetIndex(), f.GetValue()
	if len(index) != len(value) {
		return refuse(http.StatusBadRequest, "%d indices and %d values: one of each a feature", len(index), len(value))
	}
	v.given = v.given[:0]
	for k, n := range index {
		v.given = append(v.given, feature{n, value[k]})
	}
	return l.vector(text, f != nil, v)
}
