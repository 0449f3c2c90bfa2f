package secure

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	taxonv1 "taxon/proto/taxon/v1"
)

func TestCheckRequest(t *testing.T) {
	long := strings.Repeat("a", 300)
	for _, c := range []struct {
		r    proto.Message
		want string // "": good
	}{
		{&taxonv1.SubmitRequest{}, ""},
		{&taxonv1.SubmitRequest{Job: "job-1.a_b", Name: "Größe 3"}, ""},
		{&taxonv1.SubmitRequest{Job: "../x"}, `job id "../x"`},
		{&taxonv1.SubmitRequest{Job: "-x"}, "first a letter"},
		{&taxonv1.SubmitRequest{Job: long}, "300 bytes"},
		{&taxonv1.SubmitRequest{Name: "a\x1b[2J"}, "printable"},
		{&taxonv1.SubmitRequest{Replicas: 1 << 31}, "replicas"},
		{&taxonv1.RegisterRequest{Name: "node-1", Slots: 8}, ""},
		{&taxonv1.RegisterRequest{Name: "node\n1"}, "printable"},
		{&taxonv1.RegisterRequest{Name: "node\u202e1"}, "printable"},
		{&taxonv1.RegisterRequest{Version: "v1.2.3-0.20260101000000-abcdefabcdef+dirty"}, ""},
		{&taxonv1.RegisterRequest{Version: "(devel)"}, ""},
		{&taxonv1.RegisterRequest{Version: "\x1b]0;owned\x07"}, "version"},
		{&taxonv1.RegisterRequest{Version: "1\u009b2J"}, "version"},
		{&taxonv1.RegisterRequest{Version: strings.Repeat("1", 65)}, "version"},
		{&taxonv1.JoinStoreRequest{Id: "a", Addr: "h:1", Version: "1 2"}, "version"},
		{&taxonv1.RegisterRequest{Name: long}, "300 bytes"},
		{&taxonv1.RegisterRequest{Slots: 1 << 20}, "slots"},
		{&taxonv1.DrainRequest{Worker: "a\u202eb"}, "printable"},
		{&taxonv1.LeaseRequest{Worker: "w1"}, ""},
		{&taxonv1.LeaseRequest{Worker: "w 1"}, "worker id"},
		{&taxonv1.LeaveRequest{Worker: long}, "300 bytes"},
		{&taxonv1.RenewRequest{Worker: "w1", Leases: make([]*taxonv1.LeaseId, 1<<17)}, "leases"},
		{&taxonv1.ReportRequest{Worker: "w1", Lease: &taxonv1.LeaseId{Job: "a/b"}}, "job id"},
		{&taxonv1.ReportRequest{Worker: "w1", More: []*taxonv1.ReportRequest{{Lease: &taxonv1.LeaseId{Job: "a"}}}}, ""},
		{&taxonv1.ReportRequest{Worker: "w1", More: []*taxonv1.ReportRequest{{Lease: &taxonv1.LeaseId{Job: "a/b"}}}},
			"job id"},
		{&taxonv1.ReportRequest{Worker: "w1", More: make([]*taxonv1.ReportRequest, 1<<11)}, "reports"},
		{&taxonv1.ReportRequest{Worker: "w1", Error: strings.Repeat("x", 2<<20)}, "bytes of error"},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "taxon-store-0.taxon-store:7071"}, ""},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "[::1]:1"}, ""},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "127.0.0.1:65536"}, "port"},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "127.0.0.1:0"}, "port"},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "0.0.0.0:7071"}, "‹advertise"},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "unix:///run/x"}, "port"},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "a/b:1"}, "neither a DNS name"},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: "*.a:1"}, "one host"},
		{&taxonv1.JoinStoreRequest{Id: "s0", Addr: ""}, "HOST:PORT"},
		{&taxonv1.LeaveStoreRequest{Id: "s/0"}, "shard id"},
		{&taxonv1.StatusRequest{Job: long}, "300 bytes"},
		{&taxonv1.JobRequest{Job: "a\x00"}, "printable"},
		{&taxonv1.ListJobsRequest{}, ""},
	} {
		err := CheckRequest(c.r)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			len(err.Error()) > 1000) {
			t.Errorf("%T: %v, want %q", c.r, err, c.want)
		}
	}
}

// TestInputsAreCheckedByEveryServer: the check comes with the server's options.
func TestInputsAreCheckedByEveryServer(t *testing.T) {
	conn := dial(t, Options{}, serve(t, Options{}))
	_, err := taxonv1.NewTasksClient(conn).Register(callContext(t), &taxonv1.RegisterRequest{Name: "\x1b[2J"})
	want(t, "an escape sequence as a name", err, codes.InvalidArgument)
}

func FuzzCheckAddr(f *testing.F) {
	for _, s := range []string{"a:1", "[::1]:2", "0.0.0.0:3", "dns:///x:1", "a%b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		if checkAddr(addr) == nil && (strings.ContainsAny(addr, "/ \x00\n*@?#") || len(addr) > maxNameBytes) {
			t.Errorf("%q is taken", addr)
		}
	})
}
