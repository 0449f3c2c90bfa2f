package storerpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

func goodKey() *taxonv1.Key {
	return &taxonv1.Key{Job: "j", Step: 1, Task: 2, Attempt: 3, Name: "v"}
}

// TestServerRefusesBadStreams speaks the protocol by hand.
func TestServerRefusesBadStreams(t *testing.T) {
	shard := memory.New(memory.Options{Limits: store.Limits{ValueBytes: 1000, BatchBytes: 1500, BatchValues: 3}})
	client := taxonv1.NewStoreClient(serve(t, shard))
	data := []byte("some data")
	sum := store.Checksum(data)
	whole := func() *taxonv1.PutChunk {
		return &taxonv1.PutChunk{Key: goodKey(), Data: data, Last: true, Crc32C: sum, Size: uint64(len(data))}
	}
	with := func(f func(c *taxonv1.PutChunk)) *taxonv1.PutChunk {
		c := whole()
		f(c)
		return c
	}
	for _, c := range []struct {
		what   string
		chunks []*taxonv1.PutChunk
		code   codes.Code
	}{
		{"nothing", nil, codes.OK},
		{"no key", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Key = nil })}, codes.InvalidArgument},
		{"bad key", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Key.Name = "../x" })}, codes.InvalidArgument},
		{"empty key", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Key = &taxonv1.Key{} })}, codes.InvalidArgument},
		{"wrong checksum", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Crc32C++ })}, codes.DataLoss},
		{"no last chunk", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Last = false })}, codes.InvalidArgument},
		{"a value within a value", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Last = false }), whole()},
			codes.InvalidArgument},
		{"fewer bytes than announced", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Size++ })},
			codes.InvalidArgument},
		{"more bytes than announced", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Size-- })},
			codes.InvalidArgument},
		{"bytes after the value", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Last = false }),
			{Data: data, Last: true}}, codes.InvalidArgument},
		{"large value", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Size = 1001 })}, codes.OutOfRange},
		{"absurd size", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Size = 1 << 63 })}, codes.OutOfRange},
		{"large batch", []*taxonv1.PutChunk{
			{Key: goodKey(), Size: 1000, Data: make([]byte, 1000), Last: true, Crc32C: store.Checksum(make([]byte, 1000))},
			{Key: goodKey(), Size: 501}}, codes.OutOfRange},
		{"many values", []*taxonv1.PutChunk{whole(), whole(), whole(), whole()}, codes.OutOfRange},
		{"an empty chunk first", []*taxonv1.PutChunk{
			{Key: goodKey(), Size: uint64(len(data))}, {Data: data, Last: true, Crc32C: sum}}, codes.OK},
		{"good", []*taxonv1.PutChunk{whole()}, codes.OK},
		{"other bytes", []*taxonv1.PutChunk{with(func(c *taxonv1.PutChunk) { c.Data = []byte("same size"); c.Crc32C = store.Checksum(c.Data) })}, codes.AlreadyExists},
	} {
		stream, err := client.Put(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&taxonv1.PutChunks{Chunks: c.chunks}) // the answer tells
		_, err = stream.CloseAndRecv()
		if status.Code(err) != c.code {
			t.Errorf("%s: %v, must be %s", c.what, err, c.code)
		}
		if err != nil && strings.ContainsAny(status.Convert(err).Message(), "\n") {
			t.Errorf("%s: the message has several lines: %q", c.what, err)
		}
	}
}

// lyingStore answers Get with whatever chunks it is told to.
type lyingStore struct {
	taxonv1.UnimplementedStoreServer
	chunks []*taxonv1.GetChunk
}

func (l *lyingStore) Get(_ *taxonv1.GetRequest, s grpc.ServerStreamingServer[taxonv1.GetChunks]) error {
	return s.Send(&taxonv1.GetChunks{Chunks: l.chunks})
}

// TestClientRefusesBadAnswers: whatever a shard sends, the client returns the right
// bytes or an error.
func TestClientRefusesBadAnswers(t *testing.T) {
	data := []byte("some data")
	good := &taxonv1.GetChunk{Data: data, Last: true, Crc32C: store.Checksum(data), Size: uint64(len(data))}
	for _, c := range []struct {
		what   string
		chunks []*taxonv1.GetChunk
		err    error
	}{
		{"good", []*taxonv1.GetChunk{good}, nil},
		{"nothing", nil, store.ErrCorrupt},
		{"another index", []*taxonv1.GetChunk{{Index: 1, Last: true, Missing: true}}, store.ErrCorrupt},
		{"wrong checksum", []*taxonv1.GetChunk{{Data: data, Last: true, Crc32C: 1, Size: uint64(len(data))}},
			store.ErrCorrupt},
		{"wrong size", []*taxonv1.GetChunk{{Data: data, Last: true, Crc32C: store.Checksum(data), Size: 5}},
			store.ErrCorrupt},
		{"no end", []*taxonv1.GetChunk{{Data: data, Size: 100}}, store.ErrCorrupt},
		{"more values", []*taxonv1.GetChunk{good, good}, store.ErrCorrupt},
		{"absurd size", []*taxonv1.GetChunk{{Data: data, Size: 1 << 62}}, store.ErrTooLarge},
	} {
		channel := storerpc.NewChannel()
		taxonv1.RegisterStoreServer(channel, &lyingStore{chunks: c.chunks})
		client, err := storerpc.NewClient([]storerpc.Endpoint{{Name: "liar", Conn: channel}}, store.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Get(t.Context(), []store.Key{{Job: "j", Attempt: 1, Name: "v"}})
		if c.err == nil {
			if err != nil || !bytes.Equal(got[0], data) {
				t.Errorf("%s: %q, %v", c.what, got, err)
			}
			continue
		}
		if !errors.Is(err, c.err) || got != nil {
			t.Errorf("%s: %q, %v; must be %v", c.what, got, err, c.err)
		}
	}
}

// failingShard fails every call with its error.
type failingShard struct {
	store.Shard
	err error
}

func (f failingShard) Commit(context.Context, string, uint32, []uint32) error { return f.err }

// TestErrorsKeepTheirMeaning over both transports.
func TestErrorsKeepTheirMeaning(t *testing.T) {
	key := store.Key{Job: "j", Step: 1, Task: 2, Attempt: 3, Name: "v"}
	for _, sentinel := range []error{store.ErrInvalid, store.ErrConflict, store.ErrCorrupt, store.ErrTooLarge,
		store.ErrFull,
		store.ErrClosed, store.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
		shard := failingShard{memory.New(memory.Options{}), fmt.Errorf("around: %w", &store.KeyError{Op: "commit", Key: key,
			Err: sentinel})}
		embedded, err := storerpc.Embedded([]store.Shard{shard}, store.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		remote, err := storerpc.NewClient([]storerpc.Endpoint{{Name: "s", Conn: serve(t, shard)}}, store.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]*storerpc.Client{"embedded": embedded, "remote": remote} {
			err := c.Commit(t.Context(), "j", 1, nil)
			var ke *store.KeyError
			if !errors.Is(err, sentinel) || !errors.As(err, &ke) || ke.Key != key {
				t.Errorf("%s: %v comes out as %v", what, sentinel, err)
			}
		}
	}
	shard := failingShard{memory.New(memory.Options{}), store.ErrClosed}
	c, err := storerpc.Embedded([]store.Shard{shard}, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), "j", 1, nil); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a shard that closes: %v", err)
	}
	shard = failingShard{memory.New(memory.Options{}), errors.New("disk on fire")}
	c, err = storerpc.Embedded([]store.Shard{shard}, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), "j", 1, nil); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("unknown error comes out as %v", err)
	}
}

func TestUnreachableShard(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, err := storerpc.NewClient([]storerpc.Endpoint{{Name: "gone", Conn: conn}}, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Commit(t.Context(), "j", 1, nil)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("%v", err)
	}
}

func TestNewClientRefuses(t *testing.T) {
	conn := storerpc.NewChannel()
	for what, ends := range map[string][]storerpc.Endpoint{
		"no shard":  nil,
		"two alike": {{Name: "a", Conn: conn}, {Name: "b", Conn: conn}, {Name: "a", Conn: conn}},
		"bad name":  {{Name: "a b", Conn: conn}},
	} {
		if _, err := storerpc.NewClient(ends, store.Limits{}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestShardsFillUp: the shards' own limits and budgets come through.
func TestShardsFillUp(t *testing.T) {
	shard := memory.New(memory.Options{MaxBytes: 1000, Limits: store.Limits{ValueBytes: 2000}})
	c, err := storerpc.NewClient([]storerpc.Endpoint{{Name: "s", Conn: serve(t, shard)}}, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int) error {
		k := store.Key{Job: "j", Step: uint32(n), Attempt: 1, Name: "v"}
		return c.Put(t.Context(), []store.Value{{Key: k, Data: make([]byte, n)}})
	}
	if err := put(900); !errors.Is(err, store.ErrFull) {
		t.Errorf("over the budget: %v", err)
	}
	if err := put(2001); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("over the shard's limit: %v", err)
	}
	if err := put(5 << 20); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("far over the shard's limit: %v", err)
	}
	if err := put(500); err != nil {
		t.Errorf("within the budget: %v", err)
	}
}

// blockedShard reads until its caller gives up.
type blockedShard struct {
	store.Shard
	entered chan struct{}
}

func (b blockedShard) Read(ctx context.Context, _ []store.Key, _ func(int, store.Checksummed) error) error {
	close(b.entered)
	<-ctx.Done()
	return ctx.Err()
}

// TestCancelReachesTheShard: a caller that gives up frees the server's side too
// (goleak would find it).
func TestCancelReachesTheShard(t *testing.T) {
	for _, transport := range []string{"embedded", "bufconn"} {
		shard := blockedShard{memory.New(memory.Options{}), make(chan struct{})}
		c, err := storerpc.Embedded([]store.Shard{shard}, store.Limits{})
		if transport == "bufconn" {
			c, err = storerpc.NewClient([]storerpc.Endpoint{{Name: "s", Conn: serve(t, shard)}}, store.Limits{})
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-shard.entered
			cancel()
		}()
		if _, err := c.Get(ctx, []store.Key{{Job: "j", Attempt: 1, Name: "v"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", transport, err)
		}
		cancel()
	}
}
