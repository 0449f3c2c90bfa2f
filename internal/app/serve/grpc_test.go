package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/secure"
	taxonv1 "taxon/proto/taxon/v1"
)

// client calls a server over gRPC, by TCP.
func client(t *testing.T, s *Server) taxonv1.ModelsClient {
	t.Helper()
	g, err := s.grpcServer(metrics.NewProcess("serve", "test"))
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() {
		must(t, conn.Close())
		g.GracefulStop()
		must(t, <-served)
	})
	return taxonv1.NewModelsClient(conn)
}

func textOf(s string) *taxonv1.Instance {
	return &taxonv1.Instance{Input: &taxonv1.Instance_Text{Text: s}}
}

func featuresOf(index []uint32, value ...float64) *taxonv1.Instance {
	return &taxonv1.Instance{Input: &taxonv1.Instance_Features{Features: &taxonv1.Features{Index: index, Value: value}}}
}

// Both ways give the same answers.
func TestGRPCAnswersAsHTTP(t *testing.T) {
	dir := trained(t, texts, true, "rr-lr")
	s, web := serving(t, Options{}, "life="+dir)
	rpc := client(t, s)
	ctx := context.Background()
	body := `{"instances": [{"text": "a dog"}, {"text": "a pine"}, {"features": {"1": 1}}, {}], "top": 2}`
	instances := []*taxonv1.Instance{textOf("a dog"), textOf("a pine"), featuresOf([]uint32{1}, 1), {}}

	_, out := post(t, web, "life:predict", body)
	var want []Prediction
	must(t, json.Unmarshal(out["predictions"], &want))
	got, err := rpc.Predict(ctx, &taxonv1.PredictRequest{Model: "life", Instances: instances, Top: 2})
	must(t, err)
	if len(got.Predictions) != len(want) {
		t.Fatalf("%d predictions, want %d", len(got.Predictions), len(want))
	}
	for i, p := range got.Predictions {
		if p.Error != want[i].Error || len(p.Labels) != len(want[i].Labels) {
			t.Fatalf("instance %d: %v, over HTTP %+v", i, p, want[i])
		}
		for k, l := range p.Labels {
			if (Label{l.Label, l.Score, l.Path}) != want[i].Labels[k] {
				t.Errorf("instance %d, place %d: %v, over HTTP %+v", i, k, l, want[i].Labels[k])
			}
		}
	}

	explained, err := rpc.Explain(ctx, &taxonv1.ExplainRequest{Model: "life", Instances: instances[:1], Label: "animal"})
	must(t, err)
	text, err := explained.Explanations[0].Explanation.MarshalJSON()
	must(t, err)
	_, out = post(t, web, "life:explain", `{"instances": [{"text": "a dog"}], "label": "animal"}`)
	if a, b := normal(t, text), normal(t, out["explanations"][1:len(out["explanations"])-1]); a != b {
		t.Errorf("explained\n%s\nover HTTP\n%s", a, b)
	}

	list, err := rpc.ListModels(ctx, &taxonv1.ListModelsRequest{})
	must(t, err)
	if m := list.Models[0]; m.Name != "life" || m.Classes != 2 || !m.Text || !m.Probabilities || m.Method != "rr-lr" ||
		len(m.WeightsSha256) != 64 {
		t.Errorf("listed %v", m)
	}
}

// normal is JSON with its keys in order.
func normal(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	must(t, json.Unmarshal(text, &v))
	out, err := json.Marshal(v)
	must(t, err)
	return string(out)
}

func TestGRPCVectors(t *testing.T) {
	s, _ := serving(t, Options{}, trained(t, "animal 1:1 3:0.5\nanimal 1:2\nplant 2:1\nplant 2:2 3:1\n", false, "rr-svm"))
	rpc := client(t, s)
	inf := math.Inf(1)
	for _, c := range []struct {
		in   *taxonv1.Instance
		want string
	}{
		{featuresOf([]uint32{1}, 1), `label:"animal"`},
		{featuresOf([]uint32{99, 2}, 1, 3), `label:"plant"`},
		{featuresOf(nil), "label:"},
		{featuresOf([]uint32{0}, 1), "feature 0: "},
		{featuresOf([]uint32{1 << 31}, 1), "feature 2147483648: "},
		{featuresOf([]uint32{1}, inf), "finite"},
		{featuresOf([]uint32{1, 1}, 1, 2), "twice"},
		{featuresOf([]uint32{1, 2}, 1), "2 indices and 1 values"},
		{textOf("dog"), "vectors"},
		{nil, "either"},
	} {
		got, err := rpc.Predict(context.Background(), &taxonv1.PredictRequest{Model: "m",
			Instances: []*taxonv1.Instance{c.in}})
		if err != nil || !strings.Contains(strings.ReplaceAll(fmt.Sprint(got), "  ", " "), c.want) {
			t.Errorf("%v: %v, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestGRPCLimits(t *testing.T) {
	dir := trained(t, texts, true, "bsvm")
	s, _ := serving(t, Options{MaxBytes: 200, MaxRows: 2, Queue: 0, Threads: 1}, dir)
	rpc := client(t, s)
	ask := func(model string, in ...*taxonv1.Instance) error {
		_, err := rpc.Predict(context.Background(), &taxonv1.PredictRequest{Model: model, Instances: in})
		return err
	}
	for _, c := range []struct {
		err  error
		want codes.Code
	}{
		{ask("m", textOf("a")), codes.OK},
		{ask("x", textOf("a")), codes.NotFound},
		{ask("m"), codes.InvalidArgument},
		{ask("m", textOf("a"), textOf("a"), textOf("a")), codes.InvalidArgument},
		{ask("m", textOf(strings.Repeat("a", 300))), codes.ResourceExhausted},
	} {
		if status.Code(c.err) != c.want {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
	s.slots <- struct{}{} // the one core is taken
	busy := status.Convert(ask("m", textOf("a")))
	<-s.slots
	if len(busy.Details()) != 1 || busy.Code() != codes.ResourceExhausted {
		t.Fatalf("beyond the queue: %v", busy)
	}
	if retry, ok := busy.Details()[0].(*errdetails.RetryInfo); !ok || retry.GetRetryDelay().AsDuration() <= 0 {
		t.Errorf("beyond the queue: %v says not when to try again", busy)
	}
	if code := codeOf(errOf(s)); code != statusGone {
		t.Errorf("a caller that left is counted under %d", code)
	}
}

// errOf is what becomes of a request whose caller leaves while it waits.
func errOf(s *Server) error {
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	s.o.Queue = 1
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	return s.admit(gone, false)
}

// The process answers both ways, and ends both.
func TestRunGRPC(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	type addrs struct{ web, rpc string }
	at, ended := make(chan addrs, 1), make(chan error, 1)
	o := Options{Models: []string{trained(t, texts, true, "bsvm")}, Listen: "127.0.0.1:0", GRPC: "127.0.0.1:0",
		MaxBytes: 1 << 16, MaxRows: 10, Queue: 10, Reload: 1 << 40, Drain: 1 << 40,
		Log: func(error) {}, Ready: func(web, rpc string) { at <- addrs{web, rpc} }}
	go func() { ended <- Run(ctx, o) }()
	a := <-at
	conn, err := grpc.NewClient(a.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	if _, err := taxonv1.NewModelsClient(conn).Predict(ctx, &taxonv1.PredictRequest{Model: "m",
		Instances: []*taxonv1.Instance{textOf("a dog")}}); err != nil {
		t.Error(err)
	}
	must(t, conn.Close())
	r, err := http.Get("http://" + a.web + "/metrics")
	must(t, err)
	must(t, r.Body.Close())
	cancel()
	must(t, <-ended)

	o.GRPC = "nowhere"
	if err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "‹grpc") {
		t.Errorf("an address that can't be listened on: %v", err)
	}
}

// Who may call is decided alike on both addresses; of what release a caller of models is does not count.
func TestGRPCIdentities(t *testing.T) {
	const reader, worker = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	tokens := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(tokens, []byte("read-only "+reader+"\nworker "+worker+"\n"), 0o600))
	s, _ := serving(t, Options{Security: secure.Options{TokenFile: tokens, RequireToken: true}}, trained(t, texts, true,
		"bsvm"))
	rpc := client(t, s)
	web, err := s.o.Security.HTTPServer("", s.handler(metrics.NewProcess("serve", "test")), policy)
	must(t, err)
	for token, want := range map[string]struct {
		rpc codes.Code
		web int
	}{"": {codes.Unauthenticated, http.StatusUnauthorized}, reader: {codes.OK, http.StatusOK},
		worker: {codes.PermissionDenied, http.StatusForbidden}} {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "taxon-release", "another v0")
		r := httptest.NewRequest(http.MethodPost, "/v1/models/m:predict",
			strings.NewReader(`{"instances": [{"text": "a dog"}]}`))
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if _, err := rpc.Predict(ctx, &taxonv1.PredictRequest{Model: "m",
			Instances: []*taxonv1.Instance{textOf("a dog")}}); status.Code(err) != want.rpc {
			t.Errorf("token %q over gRPC: %v, want %v", token, err, want.rpc)
		}
		w := httptest.NewRecorder()
		if web.Handler.ServeHTTP(w, r); w.Code != want.web {
			t.Errorf("token %q over HTTP: %d, want %d", token, w.Code, want.web)
		}
	}
}
