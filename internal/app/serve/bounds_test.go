package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
)

// running is the address of a whole server, which ends with the test.
func running(t *testing.T, o Options, models ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	addr, ended := make(chan string, 1), make(chan error, 1)
	o.Models, o.Listen, o.Reload, o.Drain, o.Log = models, "127.0.0.1:0", time.Hour, time.Minute, func(error) {}
	o.Ready = func(a, _ string) { addr <- a }
	go func() { ended <- Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	return <-addr
}

// A caller who sends a whole body that is too large, and only then reads, gets the answer that says so.
func TestTooLargeIsAnswered(t *testing.T) {
	addr := running(t, Options{MaxBytes: 1 << 16, MaxRows: 10, Queue: 10}, trained(t, texts, true, "bsvm"))
	body := strings.Repeat("x", 8<<20)
	for name, head := range map[string]string{
		"announced": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunked":   fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		conn, err := net.Dial("tcp", addr)
		must(t, err)
		if _, err = io.WriteString(conn, "POST /v1/models/m:predict HTTP/1.1\r\nHost: "+addr+"\r\n"+head); err != nil {
			t.Errorf("%s: the connection breaks while the body is sent: %v", name, err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: no answer: %v", name, err)
		}
		text, err := io.ReadAll(r.Body)
		if must(t, err); r.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text),
			"larger than 65536 bytes") {
			t.Errorf("%s: %d %s", name, r.StatusCode, text)
		}
		must(t, conn.Close())
	}
}

// Bodies that arrive at the same time share the memory that the server was given. It is whole again when
// their callers are gone.
func TestBodiesShareMemory(t *testing.T) {
	s, web := serving(t, Options{MaxBytes: 1 << 20, MaxRows: 10, Queue: 100, Memory: 4 << 20}, trained(t, texts, true,
		"bsvm"))
	var conns []net.Conn
	for range 20 { // each keeps its last byte back
		conn, err := net.Dial("tcp", web.Listener.Addr().String())
		must(t, err)
		conns = append(conns, conn)
		_, err = fmt.Fprintf(conn, "POST /v1/models/m:predict HTTP/1.1\r\nHost: "+
			"localhost\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat("x", 999999))
		must(t, err)
	}
	refused := make(chan int, len(conns))
	for _, conn := range conns {
		go func() {
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				refused <- 0
				return
			}
			refused <- r.StatusCode
		}()
	}
	for range 15 { // at most four of 1 MiB have room
		if code := <-refused; code != http.StatusTooManyRequests {
			t.Fatalf("refused with %d", code)
		}
	}
	for _, conn := range conns {
		must(t, conn.Close())
	}
	whole(t, s)
}

// whole waits until requests hold nothing any more.
func whole(t *testing.T, s *Server) {
	t.Helper()
	for end := time.Now().Add(time.Minute); s.room.left.Load() != s.room.all; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d bytes are free when no request is under way", s.room.left.Load(), s.room.all)
		}
	}
}

// Without memory left both ways refuse, and say when to try again.
func TestNoMemoryLeft(t *testing.T) {
	s, web := serving(t, Options{}, trained(t, texts, true, "bsvm"))
	rpc := client(t, s)
	one := &taxonv1.PredictRequest{Model: "m", Instances: []*taxonv1.Instance{textOf("a dog")}}
	must(t, s.room.acquire(s.room.all))
	if code, out := post(t, web, "m:predict", `{"instances": [{"text": "a"}]}`); code != http.StatusTooManyRequests {
		t.Errorf("over HTTP: %d %s", code, out["error"])
	}
	_, err := rpc.Predict(context.Background(), one)
	busy := status.Convert(err)
	if busy.Code() != codes.ResourceExhausted || len(busy.Details()) != 1 {
		t.Fatalf("over gRPC: %v", err)
	}
	if _, ok := busy.Details()[0].(*errdetails.RetryInfo); !ok {
		t.Errorf("over gRPC: %v says not when to try again", err)
	}
	s.room.release(s.room.all)
	if _, err := rpc.Predict(context.Background(), one); err != nil {
		t.Errorf("with memory again: %v", err)
	}
	whole(t, s)
}

// trainedMany is the folder of a model with so many classes.
func trainedMany(t *testing.T, classes int) string {
	t.Helper()
	var b strings.Builder
	for c := range classes {
		fmt.Fprintf(&b, "a-class-with-a-long-name-%04d %d:1\n", c, c+1)
	}
	return trainedOn(t, b.String(), "", false, "bsvm")
}

// An answer that is much larger than the memory of requests is written as it is made, and is the same as
// that of each instance alone. Over gRPC, where it would be one message, it is refused.
func TestLargeAnswersAreStreamed(t *testing.T) {
	const rows, classes = 300, 200
	s, web := serving(t, Options{MaxBytes: 64 << 10, MaxRows: rows, Queue: 10, Memory: 128 << 10}, trainedMany(t, classes))
	one := `{"features": {"7": 1}}`
	_, out := post(t, web, "m:predict", `{"instances": [`+one+`], "top": 200}`)
	alone := strings.TrimSuffix(strings.TrimPrefix(string(out["predictions"]), "["), "]")
	r, err := http.Post(web.URL+"/v1/models/m:predict", "", strings.NewReader(`{"instances": [`+strings.Repeat(one+",",
		rows-1)+one+`], "top": 200}`))
	must(t, err)
	defer r.Body.Close()
	var got struct{ Predictions []json.RawMessage }
	must(t, json.NewDecoder(r.Body).Decode(&got))
	if r.ContentLength != -1 || len(got.Predictions) != rows {
		t.Fatalf("%d predictions, with a length of %d", len(got.Predictions), r.ContentLength)
	}
	for i, p := range got.Predictions {
		if string(p) != alone {
			t.Fatalf("instance %d: %s\nalone: %s", i, p, alone)
		}
	}
	in := make([]*taxonv1.Instance, rows)
	for i := range in {
		in[i] = featuresOf([]uint32{7}, 1)
	}
	_, err = client(t, s).Predict(context.Background(), &taxonv1.PredictRequest{Model: "m", Instances: in, Top: classes})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "answer is larger than 65536 bytes") {
		t.Errorf("over gRPC: %v", err)
	}
	whole(t, s)
	if q := requests.Get().(*request); cap(q.body)+cap(q.out) > 4*keptBytes {
		t.Errorf("a buffer of %d bytes is kept", cap(q.body)+cap(q.out))
	}
}

// Labels beyond the memory of requests are refused before any is written.
func TestAnswerBeyondMemory(t *testing.T) {
	s, web := serving(t, Options{MaxBytes: 1 << 10, MaxRows: 10, Queue: 10, Memory: 6 << 10}, trainedMany(t, 500))
	if code, out := post(t, web, "m:predict",
		`{"instances": [{"features": {"7": 1}}], "top": 500}`); code != http.StatusBadRequest ||
		!strings.Contains(string(out["error"]), "fewer labels") {
		t.Errorf("%d %s", code, out["error"])
	}
	if code, _ := post(t, web, "m:predict", `{"instances": [{"features": {"7": 1}}], "top": 5}`); code != http.StatusOK {
		t.Errorf("5 labels: %d", code)
	}
	whole(t, s)
}

// A model whose weights are cut short in place is an error of its own requests, over both ways, until it is
// whole again. The process and its other models go on.
// A few bytes lacking within a page would be read as zeros, without a fault.
func TestCutShortInPlace(t *testing.T) {
	for _, lacking := range []int64{math.MaxInt64, 4} {
		t.Run(fmt.Sprint(lacking), func(t *testing.T) { cutShort(t, lacking) })
	}
}

// cutShort takes so many bytes from the ends of a model's weights while it is served.
func cutShort(t *testing.T, lacking int64) {
	dir, other := trained(t, texts, true, "rr-lr"), trained(t, texts, true, "bsvm")
	s, web := serving(t, Options{}, "cut="+dir, "other="+other)
	rpc := client(t, s)
	shards, err := filepath.Glob(filepath.Join(dir, "weights-*"))
	must(t, err)
	kept := map[string][]byte{}
	for _, name := range shards {
		kept[name], err = os.ReadFile(name)
		must(t, err)
		must(t, os.Truncate(name, max(0, int64(len(kept[name]))-lacking)))
	}
	if len(kept) == 0 {
		t.Fatal("no weights in the model's folder")
	}
	body := `{"instances": [{"text": "a dog"}]}`
	for _, call := range []string{"cut:explain", "cut:explain", "cut:predict"} {
		if code, out := post(t, web, call, body); code != http.StatusServiceUnavailable ||
			!strings.Contains(string(out["error"]), "weights") {
			t.Errorf("%s: %d %s", call, code, out["error"])
		}
	}
	_, err = rpc.Explain(context.Background(), &taxonv1.ExplainRequest{Model: "cut",
		Instances: []*taxonv1.Instance{textOf("a dog")}})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("over gRPC: %v", err)
	}
	if code, _ := post(t, web, "other:explain", body); code != http.StatusOK {
		t.Errorf("the other model: %d", code)
	}
	s.reload()
	for name, b := range kept {
		must(t, os.WriteFile(name, b, 0o600))
	}
	s.reload()
	if code, out := post(t, web, "cut:explain", body); code != http.StatusOK {
		t.Errorf("whole again: %d %s", code, out["error"])
	}
}
