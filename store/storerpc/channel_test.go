package storerpc_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// scripted is a service whose methods the test writes.
type scripted struct {
	taxonv1.UnimplementedStoreServer
	commit func(context.Context, *taxonv1.CommitRequest) (*taxonv1.CommitResult, error)
	put    func(grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult]) error
	get    func(grpc.ServerStreamingServer[taxonv1.GetChunks]) error
}

func (s *scripted) Commit(ctx context.Context, r *taxonv1.CommitRequest) (*taxonv1.CommitResult, error) {
	return s.commit(ctx, r)
}

func (s *scripted) Put(st grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult]) error {
	return s.put(st)
}

func (s *scripted) Get(_ *taxonv1.GetRequest, st grpc.ServerStreamingServer[taxonv1.GetChunks]) error {
	return s.get(st)
}

// onBoth runs a test over the in-process channel and over gRPC itself: what holds of
// one must hold of the other.
func onBoth(t *testing.T, s *scripted, f func(t *testing.T, c taxonv1.StoreClient)) {
	t.Helper()
	t.Run("channel", func(t *testing.T) {
		channel := storerpc.NewChannel()
		taxonv1.RegisterStoreServer(channel, s)
		f(t, taxonv1.NewStoreClient(channel))
	})
	t.Run("grpc", func(t *testing.T) {
		f(t, taxonv1.NewStoreClient(serveService(t, func(r grpc.ServiceRegistrar) { taxonv1.RegisterStoreServer(r, s) })))
	})
}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("%v, must be %s", err, code)
	}
}

type valueKey struct{}

func TestChannelUnary(t *testing.T) {
	s := &scripted{}
	onBoth(t, s, func(t *testing.T, c taxonv1.StoreClient) {
		_, err := c.Drop(t.Context(), &taxonv1.DropRequest{})
		wantCode(t, err, codes.Unimplemented)

		for _, failure := range []struct {
			err  error
			code codes.Code
		}{
			{errors.New("plain"), codes.Unknown},
			{status.Error(codes.AlreadyExists, "there"), codes.AlreadyExists},
			{io.EOF, codes.Unknown},
			{context.Canceled, codes.Canceled},
		} {
			s.commit = func(context.Context, *taxonv1.CommitRequest) (*taxonv1.CommitResult, error) { return nil, failure.err }
			_, err = c.Commit(t.Context(), &taxonv1.CommitRequest{})
			wantCode(t, err, failure.code)
		}

		// The handler sees deadline and metadata, not values, and its own copy.
		request := &taxonv1.CommitRequest{Attempts: []uint32{1, 2}}
		s.commit = func(ctx context.Context, r *taxonv1.CommitRequest) (*taxonv1.CommitResult, error) {
			if _, ok := ctx.Deadline(); !ok || ctx.Value(valueKey{}) != nil {
				return nil, errors.New("deadline or values")
			}
			if md, _ := metadata.FromIncomingContext(ctx); len(md.Get("token")) != 1 || md.Get("token")[0] != "abc" {
				return nil, errors.New("metadata")
			}
			r.Attempts[0] = 99
			return &taxonv1.CommitResult{}, nil
		}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), valueKey{}, 1), time.Hour)
		defer cancel()
		_, err = c.Commit(metadata.AppendToOutgoingContext(ctx, "token", "abc"), request)
		wantCode(t, err, codes.OK)
		if request.Attempts[0] != 1 {
			t.Error("the handler writes into the caller's message")
		}
	})
}

func TestChannelCancelsUnary(t *testing.T) {
	s := &scripted{}
	onBoth(t, s, func(t *testing.T, c taxonv1.StoreClient) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		freed := make(chan error, 1)
		s.commit = func(ctx context.Context, _ *taxonv1.CommitRequest) (*taxonv1.CommitResult, error) {
			cancel()
			<-ctx.Done()
			freed <- ctx.Err()
			return nil, ctx.Err()
		}
		_, err := c.Commit(ctx, &taxonv1.CommitRequest{})
		wantCode(t, err, codes.Canceled)
		if err := <-freed; !errors.Is(err, context.Canceled) {
			t.Errorf("handler's context: %v", err)
		}
		_, err = c.Commit(ctx, &taxonv1.CommitRequest{})
		wantCode(t, err, codes.Canceled)
	})
}

func TestChannelStreams(t *testing.T) {
	s := &scripted{}
	onBoth(t, s, func(t *testing.T, c taxonv1.StoreClient) {
		// All messages arrive in order, then the end.
		s.get = func(st grpc.ServerStreamingServer[taxonv1.GetChunks]) error {
			for i := range uint32(50) {
				if err := st.Send(&taxonv1.GetChunks{Chunks: []*taxonv1.GetChunk{{Index: i}}}); err != nil {
					return err
				}
			}
			return status.Error(codes.DataLoss, "after fifty")
		}
		get, err := c.Get(t.Context(), &taxonv1.GetRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint32(50) {
			m, err := get.Recv()
			if err != nil || m.Chunks[0].Index != i {
				t.Fatalf("message %d: %v, %v", i, m, err)
			}
		}
		_, err = get.Recv()
		wantCode(t, err, codes.DataLoss)

		// A handler that refuses early ends the sender: at once over a connection.
		s.put = func(grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult]) error {
			return status.Error(codes.OutOfRange, "no")
		}
		put, err := c.Put(t.Context())
		for n := 0; err == nil && (n < 3 || t.Name() == "TestChannelStreams/grpc"); n++ {
			err = put.Send(&taxonv1.PutChunks{Chunks: []*taxonv1.PutChunk{{Data: make([]byte, 1000)}}})
		}
		if err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("sender ends with %v", err)
		}
		_, err = put.CloseAndRecv()
		wantCode(t, err, codes.OutOfRange)

		// The status behind a single answer counts.
		s.put = func(st grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult]) error {
			if _, err := st.Recv(); !errors.Is(err, io.EOF) {
				return err
			}
			if err := st.SendAndClose(&taxonv1.PutResult{Values: 3}); err != nil {
				return err
			}
			return status.Error(codes.Aborted, "late")
		}
		if put, err = c.Put(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = put.CloseAndRecv()
		wantCode(t, err, codes.Aborted)
	})
}

// TestChannelFreesHandlers: a reader that gives up frees a handler that sends.
func TestChannelFreesHandlers(t *testing.T) {
	s := &scripted{}
	onBoth(t, s, func(t *testing.T, c taxonv1.StoreClient) {
		ended := make(chan error, 1)
		s.get = func(st grpc.ServerStreamingServer[taxonv1.GetChunks]) error {
			for {
				if err := st.Send(&taxonv1.GetChunks{Chunks: []*taxonv1.GetChunk{{Data: make([]byte, 1000)}}}); err != nil {
					ended <- err
					return err
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		get, err := c.Get(ctx, &taxonv1.GetRequest{})
		if err == nil {
			_, err = get.Recv()
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("the handler sends for ever")
		}
		for err == nil {
			_, err = get.Recv()
		}
		wantCode(t, err, codes.Canceled)
	})
}

func TestChannelUnknown(t *testing.T) {
	channel := storerpc.NewChannel()
	c := taxonv1.NewStoreClient(channel)
	_, err := c.Commit(t.Context(), &taxonv1.CommitRequest{})
	wantCode(t, err, codes.Unimplemented)
	_, err = c.Put(t.Context())
	wantCode(t, err, codes.Unimplemented)
	storerpc.NewServer(memory.New(memory.Options{})).Register(channel)
	wantCode(t, channel.Invoke(t.Context(), "/taxon.v1.Store/No", nil, nil), codes.Unimplemented)
	_, err = channel.NewStream(t.Context(), &grpc.StreamDesc{}, "/taxon.v1.Store/No")
	wantCode(t, err, codes.Unimplemented)
	wantCode(t, channel.Invoke(t.Context(), "/taxon.v1.Store/Commit", "text", nil), codes.Internal)
	wantCode(t, channel.Invoke(t.Context(), "/taxon.v1.Store/Commit", &taxonv1.CommitResult{}, &taxonv1.CommitResult{}),
		codes.Internal)
}
