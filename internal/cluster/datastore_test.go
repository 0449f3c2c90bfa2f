package cluster

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// serve runs a gRPC server on loopback until the test ends, and gives its address.
func serve(t *testing.T, s *grpc.Server) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

// goneShards is a cluster of one store shard that works and several that are gone: they count
// the calls that would wait for them, and refuse them.
func goneShards(t *testing.T, state taxonv1.MemberState) (*DataStore, *atomic.Int64) {
	t.Helper()
	works := grpc.NewServer(storerpc.BulkServerOptions()...)
	storerpc.NewServer(memory.New(memory.Options{})).Register(works)
	calls := &atomic.Int64{}
	gone := grpc.NewServer(append(storerpc.BulkServerOptions(),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			calls.Add(1)
			return status.Error(codes.Unavailable, "gone")
		}))...)
	all := []*taxonv1.Shard{{Id: "works", Addr: serve(t, works), State: taxonv1.MemberState_MEMBER_STATE_UP}}
	addr := serve(t, gone)
	for n := range 8 {
		all = append(all, &taxonv1.Shard{Id: "gone-" + strconv.Itoa(n), Addr: addr, State: state})
	}
	dialer := &Dialer{Patience: time.Minute} // with the coordinator, not with shards
	t.Cleanup(func() { _ = dialer.Close() })
	return &DataStore{Patience: -1, Shards: &Shards{Dialer: dialer, List: func(context.Context) (*taxonv1.StoresResult,
		error) {
		return &taxonv1.StoresResult{Shards: slices.Clone(all)}, nil
	}}}, calls
}

// A store that is gone is not waited for by who finds what he looks for elsewhere: not once
// where the coordinator knows of it, and once where it does not yet.
func TestGoneShardIsNotWaitedFor(t *testing.T) {
	dir := ingested(t, 500)
	for _, test := range []struct {
		name  string
		state taxonv1.MemberState
		// calls: each of the 8 shards once, and once for each list of what is there
		most int64
	}{
		{"known to be down", taxonv1.MemberState_MEMBER_STATE_DOWN, 0},
		{"not missed yet", taxonv1.MemberState_MEMBER_STATE_UP, 8 * 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			st, calls := goneShards(t, test.state)
			path, err := Upload(t.Context(), st, 1, dir, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)}
			for range 5 {
				if err := FetchNames(t.Context(), st, d, t.TempDir()); err != nil {
					t.Fatal(err)
				}
			}
			if got := calls.Load(); got > test.most {
				t.Errorf("%d calls to shards that are gone, %d at most are due", got, test.most)
			}
			if err := complete(t.Context(), st, d, false, d); err != nil {
				t.Error(err)
			}
			if err := st.Drop(t.Context(), dataJob(d.Fingerprint)); err != nil {
				t.Error(err)
			}
			if got := calls.Load(); test.most == 0 && got > 0 {
				t.Errorf("%d calls to shards that are down, to list and to drop", got)
			}
		})
	}
}

// With copies of each value a reader passes over the shard that is gone.
func TestGoneCopyIsNotWaitedFor(t *testing.T) {
	data, calls := goneShards(t, taxonv1.MemberState_MEMBER_STATE_DOWN)
	known, err := data.Shards.Known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stores := &JobStores{Shards: data.Shards, Patience: -1}
	pair, err := stores.Of("j", known[:2], 2)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := stores.Of("k", known[:1], 1)
	if err != nil {
		t.Fatal(err)
	}
	var keys []store.Key
	var values []store.Value
	for n := range 20 {
		keys = append(keys, store.Key{Job: "j", Step: 1, Task: uint32(n), Attempt: 1, Name: "v"})
		values = append(values, store.Value{Key: keys[n], Data: []byte{byte(n)}})
	}
	if err := alone.Put(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	got, err := pair.Get(t.Context(), keys)
	if err != nil || slices.ContainsFunc(got, func(b []byte) bool { return b == nil }) {
		t.Fatalf("%q, %v", got, err)
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("%d calls to the shard that is down", n)
	}
}

// A shard that was forgotten is not asked any more, also where a job names it yet.
func TestForgottenShardIsNotKnown(t *testing.T) {
	all := []*taxonv1.Shard{{Id: "a", Addr: "h:1"}, {Id: "b", Addr: "h:2"}}
	s := &Shards{List: func(context.Context) (*taxonv1.StoresResult, error) {
		return &taxonv1.StoresResult{Shards: all},
			nil
	}}
	names := func() (out []string) {
		known, err := s.Known(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range known {
			out = append(out, k.GetId())
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("known are %q", got)
	}
	all, s.asked = all[1:], time.Time{}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Learn([]*taxonv1.Shard{{Id: "a", State: taxonv1.MemberState_MEMBER_STATE_DOWN}, {Id: "b", Addr: "h:3"},
		{Id: "c", Addr: "h:4"}})
	if got := names(); !slices.Equal(got, []string{"b", "c"}) || s.addr("b") != "h:3" {
		t.Errorf("known are %q, b at %s", got, s.addr("b"))
	}
}

// Data that were uploaded with one copy get the copies that a later job asks for, and the copies
// of a lost shard are made again on those that are left.
func TestCopiesAreRaisedAndRefilled(t *testing.T) {
	var shards []*memory.Store
	var all []*taxonv1.Shard
	for n := range 3 {
		s := grpc.NewServer(storerpc.BulkServerOptions()...)
		shards = append(shards, memory.New(memory.Options{}))
		storerpc.NewServer(shards[n]).Register(s)
		all = append(all, &taxonv1.Shard{Id: strconv.Itoa(n), Addr: serve(t, s), State: taxonv1.MemberState_MEMBER_STATE_UP})
	}
	dialer := &Dialer{}
	t.Cleanup(func() { _ = dialer.Close() })
	st := &DataStore{Patience: -1, Shards: &Shards{Dialer: dialer, List: func(context.Context) (*taxonv1.StoresResult,
		error) {
		return &taxonv1.StoresResult{Shards: slices.Clone(all)}, nil
	}}}
	least := func() int {
		have := map[store.Key]int{}
		for _, s := range shards {
			_ = s.List(t.Context(), "", func(i store.Info) error { have[i.Key]++; return nil })
		}
		n := len(shards)
		for _, c := range have {
			n = min(n, c)
		}
		return n
	}
	dir := ingested(t, 500)
	path, err := Upload(t.Context(), st, 1, dir, false, nil)
	if err != nil || least() != 1 {
		t.Fatalf("%d copies, %v", least(), err)
	}
	two := &DataStore{Patience: -1, Shards: st.Shards, Copies: 2}
	if again, err := Upload(t.Context(), two, 2, dir, false, nil); err != nil || again != path || least() != 2 {
		t.Fatalf("%d copies after a job that asks for two, %v", least(), err)
	}
	job := dataJob(fingerprint(t, dir))
	if _, err := shards[1].Drop(t.Context(), store.DropSpec{Job: job, All: true}); err != nil {
		t.Fatal(err)
	}
	jobs := &jobList{replicas: 2}
	jobs.submit("j", &taxonv1.Data{Fingerprint: fingerprint(t, dir)}, &taxonv1.JobInfo{})
	if err := (&Collector{Data: st, Jobs: jobs}).refill(t.Context()); err != nil || least() != 2 {
		t.Errorf("%d copies after a refill, %v", least(), err)
	}
	if filled, err := st.Refill(t.Context(), job, 2); err != nil || filled != 0 {
		t.Errorf("again: %d values, %v", filled, err)
	}
}
