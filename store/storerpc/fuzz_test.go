package storerpc_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// fuzzLimits are small, so that inputs reach them.
var fuzzLimits = store.Limits{ValueBytes: 4096, BatchBytes: 8192, BatchValues: 16}

// wireStream feeds a handler messages and takes in its answers.
type wireStream[In, Out any] struct {
	grpc.ServerStream
	ctx context.Context
	in  []*In
	out []*Out
}

func (s *wireStream[In, Out]) Context() context.Context     { return s.ctx }
func (s *wireStream[In, Out]) SetTrailer(metadata.MD)       {}
func (s *wireStream[In, Out]) SendAndClose(m *Out) error    { return s.Send(m) }
func (s *wireStream[In, Out]) SendHeader(metadata.MD) error { return nil }

func (s *wireStream[In, Out]) Send(m *Out) error {
	s.out = append(s.out, m)
	return nil
}

func (s *wireStream[In, Out]) Recv() (*In, error) {
	if len(s.in) == 0 {
		return nil, io.EOF
	}
	m := s.in[0]
	s.in = s.in[1:]
	return m, nil
}

// wantStatus: a handler's error has a code that says something, and one line.
func wantStatus(t *testing.T, err error) {
	t.Helper()
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.AlreadyExists, codes.DataLoss, codes.OutOfRange, codes.ResourceExhausted,
		codes.NotFound:
	default:
		t.Errorf("%v", err)
	}
}

func encoded(f *testing.F, m proto.Message) []byte {
	f.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// FuzzPut sends any two messages: what is then in the shard is whole and has good keys.
func FuzzPut(f *testing.F) {
	data := []byte("some data")
	whole := &taxonv1.PutChunk{Key: goodKey(), Data: data, Last: true, Crc32C: store.Checksum(data),
		Size: uint64(len(data))}
	f.Add(encoded(f, &taxonv1.PutChunks{Chunks: []*taxonv1.PutChunk{whole}}), []byte{})
	f.Add(encoded(f, &taxonv1.PutChunks{Chunks: []*taxonv1.PutChunk{{Key: goodKey(), Size: 9}}}),
		encoded(f, &taxonv1.PutChunks{Chunks: []*taxonv1.PutChunk{{Data: data, Last: true, Crc32C: store.Checksum(data)}}}))
	f.Add(encoded(f, &taxonv1.PutChunks{Chunks: []*taxonv1.PutChunk{{Key: goodKey(), Size: 1 << 62}}}), []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		shard := memory.New(memory.Options{MaxBytes: 64 << 10, Limits: fuzzLimits})
		s := &wireStream[taxonv1.PutChunks, taxonv1.PutResult]{ctx: t.Context()}
		for _, raw := range [][]byte{a, b} {
			m := &taxonv1.PutChunks{}
			if proto.Unmarshal(raw, m) != nil {
				return
			}
			s.in = append(s.in, m)
		}
		err := storerpc.NewServer(shard).Put(s)
		wantStatus(t, err)
		values := uint64(0)
		listed := shard.List(t.Context(), "", func(in store.Info) error {
			values++
			got, err := shard.Get(t.Context(), []store.Key{in.Key})
			return errors.Join(err, in.Key.Validate(), sameSum(got[0], in.CRC32C))
		})
		if listed != nil {
			t.Error(listed)
		}
		if err == nil && (len(s.out) != 1 || s.out[0].Values < values) {
			t.Errorf("%d values are stored, %v acknowledged", values, s.out)
		}
	})
}

func sameSum(data []byte, sum uint32) error {
	if store.Checksum(data) != sum {
		return store.ErrCorrupt
	}
	return nil
}

// FuzzRequests sends any message to the other calls.
func FuzzRequests(f *testing.F) {
	f.Add(encoded(f, &taxonv1.GetRequest{Keys: []*taxonv1.Key{goodKey(), {}, goodKey()}}))
	f.Add(encoded(f, &taxonv1.CommitRequest{Job: "j", Step: 1, Attempts: []uint32{0, 1, 1 << 31}}))
	f.Add(encoded(f, &taxonv1.DropRequest{Job: "j", KeepSteps: []uint32{1}, Before: 9, All: true}))
	f.Add(encoded(f, &taxonv1.ListRequest{Job: "a b"}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		shard := memory.New(memory.Options{Limits: fuzzLimits})
		value := store.Value{Key: store.Key{Job: "j", Step: 1, Task: 2, Attempt: 3, Name: "v"}, Data: []byte("x")}
		if err := shard.Put(t.Context(), []store.Value{value}); err != nil {
			t.Fatal(err)
		}
		server := storerpc.NewServer(shard)
		if get := new(taxonv1.GetRequest); proto.Unmarshal(raw, get) == nil {
			s := &wireStream[taxonv1.GetRequest, taxonv1.GetChunks]{ctx: t.Context()}
			err := server.Get(get, s)
			wantStatus(t, err)
			answers := 0
			for _, m := range s.out {
				answers += len(m.Chunks)
			}
			if err == nil && answers != len(get.Keys) {
				t.Errorf("%d answers to %d keys", answers, len(get.Keys))
			}
		}
		if list := new(taxonv1.ListRequest); proto.Unmarshal(raw, list) == nil {
			wantStatus(t, server.List(list, &wireStream[taxonv1.ListRequest, taxonv1.KeyInfos]{ctx: t.Context()}))
		}
		if commit := new(taxonv1.CommitRequest); proto.Unmarshal(raw, commit) == nil {
			_, err := server.Commit(t.Context(), commit)
			wantStatus(t, err)
		}
		if drop := new(taxonv1.DropRequest); proto.Unmarshal(raw, drop) == nil {
			_, err := server.Drop(t.Context(), drop)
			wantStatus(t, err)
		}
	})
}

// TestRandomBytesAtThePort: a shard's port outlives whatever is thrown at it.
func TestRandomBytesAtThePort(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(storerpc.BulkServerOptions()...)
	storerpc.NewServer(memory.New(memory.Options{})).Register(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	defer func() {
		srv.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it began is well
			t.Error(err)
		}
	}()
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for i := range 60 {
		noise := make([]byte, 1+i*i*10)
		r := rand.NewChaCha8(sha256.Sum256([]byte{byte(i)}))
		_, _ = r.Read(noise) // never fails
		if i%2 == 0 {
			noise = append([]byte(preface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"), noise...)
		}
		throw(t, lis.Addr().String(), noise)
	}
	c, err := storerpc.NewClient([]storerpc.Endpoint{{Name: "s", Conn: dial(t, lis.Addr().String())}}, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	k := store.Key{Job: "j", Attempt: 1, Name: "v"}
	if err := c.Put(t.Context(), []store.Value{{Key: k, Data: []byte("x")}}); err != nil {
		t.Error(err)
	}
	if got, err := c.Get(t.Context(), []store.Key{k}); err != nil || string(got[0]) != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

// throw sends bytes and reads whatever comes back.
func throw(t *testing.T, addr string, b []byte) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = conn.Write(b) // the server may hang up first
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, conn)
}
