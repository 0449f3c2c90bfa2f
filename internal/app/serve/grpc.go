package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/secure"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// streamWindow is the number of bytes of a message that may arrive before its call reads them.
// connWindow is the number for all calls of a connection together.
const (
	streamWindow = 64 << 10
	connWindow   = 1 << 20
)

// grpcServer returns a gRPC server for the same calls as the HTTP server.
func (s *Server) grpcServer(p *metrics.Process) (*grpc.Server, error) {
	options, err := s.o.Security.ServerOptions(secure.DefaultPolicy())
	if err != nil {
		return nil, err
	}
	options = append(options, p.GRPC()...)
	// Without stream workers each call starts a goroutine whose stack must grow every time.
	options = append(options, grpc.MaxRecvMsgSize(int(s.o.MaxBytes)), grpc.NumStreamWorkers(uint32(cap(s.slots))),
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connWindow))
	g := grpc.NewServer(options...)
	g.RegisterService(modelsService(), grpcModels{s: s, receiving: make(chan struct{},
		max(1, s.room.all/2/max(1, s.o.MaxBytes)))})
	secure.Register(g, taxonv1.Models_ServiceDesc.ServiceName)
	return g, nil
}

// modelsService describes taxon.v1.Models. The calls that take instances are streams of one message
// in each direction, which have the same wire format as unary calls. For unary calls, grpc would
// read the messages of all calls before it checks the limits.
func modelsService() *grpc.ServiceDesc {
	d := taxonv1.Models_ServiceDesc
	d.Methods = slices.DeleteFunc(slices.Clone(d.Methods),
		func(m grpc.MethodDesc) bool { return m.MethodName != "ListModels" })
	d.Streams = []grpc.StreamDesc{
		{StreamName: "Predict", ClientStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
			return srv.(grpcModels).predict(stream)
		}},
		{StreamName: "Explain", ClientStreams: true, Handler: func(srv any, stream grpc.ServerStream) error {
			return srv.(grpcModels).explain(stream)
		}},
	}
	return &d
}

// grpcModels implements the service taxon.v1.Models.
type grpcModels struct {
	taxonv1.UnimplementedModelsServer
	s *Server
	// receiving has one token per message that is being received. Each may have the largest size.
	receiving chan struct{}
}

// receiveTime bounds the time in which a message must arrive.
const receiveTime = 30 * time.Second

// receive reads the message of a call. The caller must call done when the answer is sent.
func (g grpcModels) receive(stream grpc.ServerStream, in proto.Message) (done func(), err error) {
	late := time.NewTimer(receiveTime)
	defer late.Stop()
	select {
	case g.receiving <- struct{}{}:
	case <-stream.Context().Done():
		return nil, status.FromContextError(stream.Context().Err()).Err()
	case <-late.C:
		return nil, refused(refuse(http.StatusTooManyRequests, "too many requests are arriving: try again in a second"))
	}
	got := make(chan error, 1)
	go func() { // ends with the call
		got <- stream.RecvMsg(in)
		<-g.receiving
	}()
	select {
	case err = <-got:
	case <-late.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "the message did not arrive within %s", receiveTime)
	}
	if err != nil {
		return nil, err
	}
	bytes := int64(proto.Size(in))
	if err := g.s.room.acquire(bytes); err != nil {
		return nil, refused(err)
	}
	return func() { g.s.room.release(bytes) }, nil
}

// ask is Server.ask with gRPC errors.
func (g grpcModels) ask(ctx context.Context, name, what string, q *question, k kind,
	emit func(*loaded, *answers) error) error {
	return refused(g.s.timed(name, what, func() error {
		m, err := g.s.find(name)
		if err == nil {
			err = g.s.enter()
		}
		if err != nil {
			return err
		}
		return g.s.ask(ctx, m, q, k, emit)
	}))
}

// refused returns the gRPC status of a call's error.
func refused(err error) error {
	if err == nil {
		return nil
	}
	why := option.Names(err.Error())
	switch codeOf(err) {
	case http.StatusNotFound:
		return status.Error(codes.NotFound, why)
	case http.StatusBadRequest:
		return status.Error(codes.InvalidArgument, why)
	case http.StatusServiceUnavailable:
		return status.Error(codes.Unavailable, why)
	case http.StatusTooManyRequests:
		busy := status.New(codes.ResourceExhausted, why)
		if with, failed := busy.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}); failed == nil {
			busy = with
		}
		return busy.Err()
	case statusGone:
		return status.Error(codes.Canceled, why)
	}
	return status.Error(codes.Internal, why)
}

// reply is an answer. Its size is limited like the size of requests, because it is sent as one
// message.
type reply struct {
	bytes, most int64
	room        *memoryBudget
}

// add adds the size of a part to the size of the answer.
func (r *reply) add(bytes int) error {
	if r.bytes+int64(bytes) > r.most {
		return refuse(http.StatusBadRequest, "the answer is larger than %d bytes: ask for fewer labels or send fewer "+
			"instances at a time", r.most)
	}
	err := r.room.acquire(int64(bytes))
	if err == nil {
		r.bytes += int64(bytes)
	}
	return err
}

// end releases the memory of the answer.
func (r *reply) end() { r.room.release(r.bytes) }

// These are the bytes of the messages of a label, without its texts, and of an instance.
const (
	labelBytes    = 16
	instanceBytes = 8
)

// predict implements the call Predict.
func (g grpcModels) predict(stream grpc.ServerStream) error {
	in := new(taxonv1.PredictRequest)
	done, err := g.receive(stream, in)
	if err != nil {
		return err
	}
	defer done()
	out := new(taxonv1.PredictResult)
	size := reply{most: g.s.o.MaxBytes, room: g.s.room}
	defer size.end()
	q := &question{rows: grpcRows(in.Instances), top: optional(in.Top)}
	if err := g.ask(stream.Context(), in.Model, "predict", q, predicting, func(l *loaded, a *answers) error {
		if err := size.add(labelBytes * len(a.labels)); err != nil {
			return err
		}
		// The labels share two allocations.
		scored, at := make([]taxonv1.ScoredLabel, len(a.labels)), make([]*taxonv1.ScoredLabel, len(a.labels))
		return a.each(func(wrong string, labels []label) error {
			p := &taxonv1.Prediction{Error: wrong}
			p.Labels, at = at[:len(labels):len(labels)], at[len(labels):]
			bytes := instanceBytes + len(wrong)
			for k, n := range labels {
				given, m := l.named(n), &scored[k]
				m.Label, m.Score, m.Path = given.Label, given.Score, given.Path
				p.Labels[k] = m
				bytes += len(m.Label) + len(m.Path)
			}
			scored = scored[len(labels):]
			out.Predictions = append(out.Predictions, p)
			return size.add(bytes)
		})
	}); err != nil {
		return err
	}
	return stream.SendMsg(out)
}

// explain implements the call Explain.
func (g grpcModels) explain(stream grpc.ServerStream) error {
	in := new(taxonv1.ExplainRequest)
	done, err := g.receive(stream, in)
	if err != nil {
		return err
	}
	defer done()
	out := new(taxonv1.ExplainResult)
	size := reply{most: g.s.o.MaxBytes, room: g.s.room}
	defer size.end()
	q := &question{rows: grpcRows(in.Instances), top: optional(in.Top), label: in.Label}
	if in.Words != nil {
		words := int(in.GetWords())
		q.words = &words
	}
	if err := g.ask(stream.Context(), in.Model, "explain", q, explaining, func(_ *loaded, a *answers) error {
		for _, e := range a.explained {
			explained := &taxonv1.Explained{Error: e.Error}
			out.Explanations = append(out.Explanations, explained)
			if e.Explanation == nil {
				continue
			}
			text, err := json.Marshal(e.Explanation)
			if err == nil {
				err = size.add(len(text))
			}
			if err != nil {
				return err
			}
			explained.Explanation = &structpb.Struct{}
			if err := explained.Explanation.UnmarshalJSON(text); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return stream.SendMsg(out)
}

// ListModels implements the call ListModels, the counterpart of GET /v1/models.
func (g grpcModels) ListModels(context.Context, *taxonv1.ListModelsRequest) (*taxonv1.ListModelsResult, error) {
	out := &taxonv1.ListModelsResult{}
	g.s.each(func(m modelInfo) {
		out.Models = append(out.Models, &taxonv1.ServedModel{Name: m.Name, Classes: uint32(m.Classes),
			Features: uint32(m.Features), Text: m.Text,
			Probabilities: m.Scores == "probabilities", Method: m.Report.Method, WeightsSha256: m.Report.WeightsSHA256})
	})
	return out, nil
}

// optional returns a pointer to n, or nil if the message has no such field.
func optional(n uint32) *int {
	if n == 0 {
		return nil
	}
	k := int(n)
	return &k
}

// grpcRows are the instances of a message.
type grpcRows []*taxonv1.Instance

func (r grpcRows) len() int { return len(r) }

// vector implements rows.
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
	v.features = v.features[:0]
	for k, n := range index {
		v.features = append(v.features, feature{n, value[k]})
	}
	return l.vector(text, f != nil, v)
}
