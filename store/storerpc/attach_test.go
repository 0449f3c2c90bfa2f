//go:build unix

package storerpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/badger"
	"taxon/store/memory"
	"taxon/store/storerpc"
	"taxon/store/storetest"
)

// counted counts the streams that carry values.
type counted struct {
	grpc.ClientConnInterface
	streams atomic.Int64
}

func (c *counted) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	o ...grpc.CallOption) (grpc.ClientStream, error) {
	c.streams.Add(1)
	return c.ClientConnInterface.NewStream(ctx, desc, method, o...)
}

// near is a client of durable shards that show it their files.
type near struct {
	*storerpc.Client
	shards []*badger.Store
	conns  []*counted
}

func newNear(t testing.TB, n int) *near {
	t.Helper()
	c := &near{}
	var ends []storerpc.Endpoint
	for i := range n {
		shard, err := badger.Open(badger.Options{Dir: t.TempDir(), Memory: 160 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shard.Close() }) // again, for some
		conn := &counted{ClientConnInterface: serveService(t, storerpc.NewServerWith(shard,
			storerpc.ServerOptions{ShortCircuit: true}).Register)}
		c.shards, c.conns = append(c.shards, shard), append(c.conns, conn)
		ends = append(ends, storerpc.Endpoint{Name: fmt.Sprintf("shard-%d", i), Conn: conn})
	}
	var err error
	if c.Client, err = storerpc.NewClient(ends, store.Limits{}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *near) inbox() string { return filepath.Join(c.shards[0].Folder(), "inbox") }

// path is the segment of a value and where it lies there.
func (c *near) path(t testing.TB, k store.Key) (string, store.Location) {
	t.Helper()
	for _, s := range c.shards {
		at, err := s.Locate(t.Context(), []store.Key{k})
		if err != nil {
			t.Fatal(err)
		}
		if at[0].File != "" {
			return filepath.Join(s.Folder(), at[0].File), at[0]
		}
	}
	t.Fatalf("%v lies in no segment", k)
	return "", store.Location{}
}

func (c *near) flip(t testing.TB, k store.Key) {
	t.Helper()
	path, at := c.path(t, k)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], int64(at.Offset)); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 4
	if _, err := f.WriteAt(b[:], int64(at.Offset)); err != nil {
		t.Fatal(err)
	}
}

func TestConformanceShortCircuit(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d shards", n), func(t *testing.T) {
			storetest.Run(t, storetest.Harness{
				New:       func(t *testing.T) store.Store { return newNear(t, n) },
				Corrupt:   func(t *testing.T, s store.Store, k store.Key) { s.(*near).flip(t, k) },
				BigBytes:  4<<20 - 5,
				StaysOpen: true,
			})
		})
	}
}

// large is a value worth a file.
func large(step, task uint32) store.Value {
	data := bytes.Repeat([]byte{byte(step), byte(task), 3, 5, 7}, 8000)
	return store.Value{Key: store.Key{Job: "j", Step: step, Task: task, Attempt: 1, Name: "v"}, Data: data}
}

func (c *near) put(t testing.TB, values ...store.Value) {
	t.Helper()
	if err := c.Put(t.Context(), values); err != nil {
		t.Fatal(err)
	}
}

func (c *near) mustGet(t testing.TB, values ...store.Value) {
	t.Helper()
	var keys []store.Key
	for _, v := range values {
		keys = append(keys, v.Key)
	}
	got, err := c.Get(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if !bytes.Equal(got[i], v.Data) {
			t.Errorf("%v: %d bytes, want %d", v.Key, len(got[i]), len(v.Data))
		}
	}
}

// TestShortCircuit: values come and go without a stream, by way of one file.
func TestShortCircuit(t *testing.T) {
	c := newNear(t, 1)
	c.put(t, large(1, 1), large(1, 2))
	c.put(t, large(1, 4)) // shorter than what the file held before
	c.mustGet(t, large(1, 2), large(1, 4), large(1, 1))
	if n := c.conns[0].streams.Load(); n != 0 {
		t.Errorf("%d streams", n)
	}
	files, err := os.ReadDir(c.inbox())
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v: the proof and one file are to be there", files, err)
	}
	if info, err := os.Stat(c.inbox()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter the inbox: %v, %v", info.Mode(), err)
	}
	other := large(1, 1)
	other.Data = bytes.Clone(other.Data)
	other.Data[9]++
	if err := c.Put(t.Context(), []store.Value{other}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("other bytes under a key: %v", err)
	}
	missing := large(1, 3).Key
	if got, err := c.Get(t.Context(), []store.Key{large(1, 1).Key, missing}); err != nil || got[0] == nil ||
		got[1] != nil {
		t.Errorf("%v", err)
	}
}

// TestShortCircuitFails: whatever is wrong with the files, values come and go all the same.
func TestShortCircuitFails(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, c *near){
		"segments that can't be opened": func(t *testing.T, c *near) {
			path, _ := c.path(t, large(1, 1).Key)
			if err := os.Rename(path, path+".elsewhere"); err != nil { // the shard has it open
				t.Fatal(err)
			}
		},
		"another segment's bytes": func(t *testing.T, c *near) {
			path, _ := c.path(t, large(1, 1).Key)
			if err := os.Rename(path, path+".elsewhere"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"no inbox": func(t *testing.T, c *near) {
			if err := os.RemoveAll(c.inbox()); err != nil {
				t.Fatal(err)
			}
		},
		"another folder at its place": func(t *testing.T, c *near) { // as where the shard has moved to another host
			if err := errors.Join(os.Rename(c.inbox(), c.inbox()+".its"), os.Mkdir(c.inbox(), 0o700)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newNear(t, 1)
			c.put(t, large(1, 1), large(1, 2))
			harm(t, c)
			c.mustGet(t, large(1, 2), large(1, 1))
			c.put(t, large(2, 1), large(2, 2))
			c.mustGet(t, large(2, 2), large(2, 1))
		})
	}
}

// TestShortCircuitRefused: shards without files, and those that do not show them.
func TestShortCircuitRefused(t *testing.T) {
	shard, err := badger.Open(badger.Options{Dir: t.TempDir(), Memory: 160 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer shard.Close()
	for name, s := range map[string]*storerpc.Server{
		"memory":    storerpc.NewServerWith(memory.New(memory.Options{}), storerpc.ServerOptions{ShortCircuit: true}),
		"not shown": storerpc.NewServer(shard),
	} {
		stub := taxonv1.NewStoreClient(serveService(t, s.Register))
		_, attach := stub.Attach(t.Context(), &taxonv1.AttachRequest{})
		_, locate := stub.Locate(t.Context(), &taxonv1.GetRequest{})
		_, adopt := stub.Adopt(t.Context(), &taxonv1.AdoptRequest{})
		for _, err := range []error{attach, locate, adopt} {
			if status.Code(err) != codes.Unimplemented {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestAdoptRefuses: what is no file of the inbox, or not what the request says of it.
func TestAdoptRefuses(t *testing.T) {
	c := newNear(t, 1)
	c.put(t, large(1, 1))
	stub := taxonv1.NewStoreClient(c.conns[0])
	place := func(n int) string { return filepath.Join(c.inbox(), strings.Repeat(fmt.Sprintf("%02x", n), 16)) }
	secret := filepath.Join(t.TempDir(), "secret")
	data := []byte("what the shard may read, and a client may not")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(secret, data, 0o600))
	must(os.WriteFile(place(1), data, 0o600))
	must(os.Symlink(secret, place(2)))
	must(syscall.Mkfifo(place(3), 0o600))
	must(os.Mkdir(place(4), 0o700))
	key := &taxonv1.Key{Job: "j", Step: 3, Task: 1, Attempt: 1, Name: "v"}
	n, sum := uint64(len(data)), store.Checksum(data)
	good := &taxonv1.AdoptRequest{File: filepath.Base(place(1)), Keys: []*taxonv1.Key{key}, Bytes: []uint64{n},
		Crc32C: []uint32{sum}}
	for name, change := range map[string]func(r *taxonv1.AdoptRequest){
		"link":         func(r *taxonv1.AdoptRequest) { r.File = filepath.Base(place(2)) },
		"pipe":         func(r *taxonv1.AdoptRequest) { r.File = filepath.Base(place(3)) },
		"folder":       func(r *taxonv1.AdoptRequest) { r.File = filepath.Base(place(4)) },
		"nothing":      func(r *taxonv1.AdoptRequest) { r.File = filepath.Base(place(5)) },
		"path":         func(r *taxonv1.AdoptRequest) { r.File = "../shard.id" },
		"absolute":     func(r *taxonv1.AdoptRequest) { r.File = secret },
		"short":        func(r *taxonv1.AdoptRequest) { r.Bytes = []uint64{n - 1} },
		"long":         func(r *taxonv1.AdoptRequest) { r.Bytes = []uint64{n + 1} },
		"far too long": func(r *taxonv1.AdoptRequest) { r.Bytes = []uint64{1 << 63} },
		"sum wraps": func(r *taxonv1.AdoptRequest) {
			r.Keys, r.Bytes, r.Crc32C = append(r.Keys, key), []uint64{n + 1, 1<<64 - 1}, append(r.Crc32C, 0)
		},
		"checksum":    func(r *taxonv1.AdoptRequest) { r.Crc32C = []uint32{sum + 1} },
		"fewer sizes": func(r *taxonv1.AdoptRequest) { r.Bytes = nil },
		"no key":      func(r *taxonv1.AdoptRequest) { r.Keys = []*taxonv1.Key{nil} },
		"bad key":     func(r *taxonv1.AdoptRequest) { r.Keys = []*taxonv1.Key{{Job: "../j", Name: "v", Attempt: 1}} },
	} {
		r := &taxonv1.AdoptRequest{File: good.File, Keys: good.Keys, Bytes: good.Bytes, Crc32C: good.Crc32C}
		change(r)
		if _, err := stub.Adopt(t.Context(), r); err == nil || status.Code(err) == codes.Internal ||
			strings.Contains(err.Error(), string(data)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := stub.Adopt(t.Context(), good); err != nil {
		t.Error(err)
	}
	if got, err := c.Get(t.Context(), []store.Key{{Job: "j", Step: 3, Task: 1, Attempt: 1, Name: "v"}}); err != nil ||
		!bytes.Equal(got[0], data) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestInboxOfBefore: what clients of an earlier life have left goes, and those of today go on.
func TestInboxOfBefore(t *testing.T) {
	c := newNear(t, 1)
	c.put(t, large(1, 1))
	left := filepath.Join(c.inbox(), strings.Repeat("b", 32))
	if err := os.WriteFile(left, []byte{1}, 0o600); err != nil {
		t.Fatal(err)
	}
	next := serveService(t, storerpc.NewServerWith(c.shards[0], storerpc.ServerOptions{ShortCircuit: true}).Register)
	if _, err := taxonv1.NewStoreClient(next).Attach(t.Context(), &taxonv1.AttachRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("a file of an earlier life stays: %v", err)
	}
	c.put(t, large(1, 2)) // its folder is not the one that it was shown
	c.mustGet(t, large(1, 1), large(1, 2))
}
