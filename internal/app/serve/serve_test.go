package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"taxon/internal/app/train"
	"taxon/internal/cluster/metrics"
	"taxon/internal/fs"
	"taxon/internal/model/predict"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

const texts = "animal\tthe small dog barked\nanimal\ta cat and a dog\nanimal\ta cat sleeps\nplant\tan oak " +
	"tree\nplant\tthe pine tree\nplant\toak and pine\n"

// trained is the folder of a model.
func trained(t *testing.T, data string, text bool, method string) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	must(t, os.WriteFile(tree, []byte("life animal\nlife plant\n"), 0o600))
	return trainedOn(t, data, tree, text, method)
}

// trainedOn is trained with the path of a hierarchy; "": none.
func trainedOn(t *testing.T, data, tree string, text bool, method string) string {
	t.Helper()
	dir := t.TempDir()
	in := filepath.Join(dir, "train")
	must(t, os.WriteFile(in, []byte(data), 0o600))
	o := train.Options{Data: []string{in}, Text: text, Hierarchy: tree, DAG: "graph", Out: filepath.Join(dir, "m"),
		Stores: 1, Store: "memory", Cutoff: "auto",
		Pause: 10, Files: fs.Local{}, Job: &taxonv1.Options{Method: method}}
	_, err := train.Run(context.Background(), &o, progress.Discard{})
	must(t, err)
	return o.Out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serving is a server over models, with small limits.
func serving(t *testing.T, o Options, models ...string) (*Server, *httptest.Server) {
	t.Helper()
	o.Models, o.Log = models, func(error) {}
	if o.MaxBytes == 0 {
		o.MaxBytes, o.MaxRows, o.Queue = 1<<16, 10, 100
	}
	p := metrics.NewProcess("serve", "test")
	s, err := New(context.Background(), o, p)
	must(t, err)
	server, err := o.Security.HTTPServer("", s.handler(p), policy)
	must(t, err)
	web := httptest.NewServer(server.Handler)
	t.Cleanup(func() {
		web.Close()
		must(t, s.Close())
	})
	return s, web
}

// post calls and reads the answer.
func post(t *testing.T, web *httptest.Server, call, body string) (int, map[string]json.RawMessage) {
	t.Helper()
	r, err := http.Post(web.URL+"/v1/models/"+call, "application/json", strings.NewReader(body))
	must(t, err)
	defer r.Body.Close()
	out := map[string]json.RawMessage{}
	must(t, json.NewDecoder(r.Body).Decode(&out))
	if r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	return r.StatusCode, out
}

// The endpoint answers what `taxon predict` writes.
func TestAnswersAsPredict(t *testing.T) {
	dir := trained(t, texts, true, "rr-lr")
	_, web := serving(t, Options{}, "life="+dir)
	code, out := post(t, web, "life:predict",
		`{"instances": [{"text": "a dog"}, {"text": "a pine"}, {"text": ""}, {"txt": 1}], "top": 2}`)
	if code != http.StatusOK {
		t.Fatal(code, out)
	}
	var got []Prediction
	must(t, json.Unmarshal(out["predictions"], &got))

	file := filepath.Join(t.TempDir(), "new")
	must(t, os.WriteFile(file, []byte("\ta dog\n\ta pine\n\t\n"), 0o600))
	var want bytes.Buffer
	_, err := predict.Run(context.Background(), predict.Options{Model: dir, Input: predict.Input{Path: file, Text: true},
		Out: fs.Stdin, Stdout: &want, Top: 2, Scores: true}, progress.Discard{})
	must(t, err)
	for i, line := range strings.Split(strings.TrimSpace(want.String()), "\n") {
		for k, field := range strings.Split(line, ",") {
			name, number, _ := strings.Cut(field, ":")
			var score float64
			must(t, json.Unmarshal([]byte(number), &score))
			l := got[i].Labels[k]
			if l.Label != name || l.Path != "life > "+name || l.Score-score > 1e-12 || score-l.Score > 1e-12 {
				t.Errorf("row %d, place %d: %+v; predict says %s", i, k, l, field)
			}
		}
	}
	if got[3].Labels != nil || !strings.Contains(got[3].Error, "txt") {
		t.Errorf("a broken instance gives %+v", got[3])
	}
	if code, out = post(t, web, "life:explain",
		`{"instances": [{"text": "a dog"}], "label": "animal"}`); code != http.StatusOK ||
		!bytes.Contains(out["explanations"], []byte(`"dog"`)) {
		t.Errorf("explain: %d, %s", code, out["explanations"])
	}
}

func TestVectors(t *testing.T) {
	_, web := serving(t, Options{}, trained(t, "animal 1:1 3:0.5\nanimal 1:2\nplant 2:1\nplant 2:2 3:1\n", false,
		"rr-svm"))
	for body, want := range map[string]string{
		`{"features": {"1": 1}}`:             `"animal"`,
		`{"features": {"2": 3, "99": 1}}`:    `"plant"`,
		`{"features": {}}`:                   `"label"`,
		`{"features": {"0": 1}}`:             `feature 0: `,
		`{"features": {"x": 1}}`:             `feature \"x\"`,
		`{"features": {"1": 1e60}}`:          "float32",
		`{"features": {"1": 1, "01": 2}}`:    "twice",
		`{"text": "dog"}`:                    "vectors",
		`{"text": "dog", "features": {}}`:    "either",
		`{"features": {"1": 1}, "label": 1}`: "label",
		`7`:                                  "an instance is",
	} {
		if code, out := post(t, web, "m:predict", `{"instances": [`+body+`]}`); code != http.StatusOK ||
			!strings.Contains(string(out["predictions"]), want) {
			t.Errorf("%s: %d, %s; want %s", body, code, out["predictions"], want)
		}
	}
}

func TestLimits(t *testing.T) {
	s, web := serving(t, Options{MaxBytes: 200, MaxRows: 2, Queue: 1, Threads: 1}, trained(t, texts, true, "bsvm"))
	one := `{"instances": [{"text": "a"}]}`
	for body, want := range map[string]int{
		one: http.StatusOK,
		`{"instances": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}`:  http.StatusBadRequest,
		`{"instances": [{"text": "` + strings.Repeat("a", 300) + `"}]}`: http.StatusRequestEntityTooLarge,
		`{"instances": []}`:                         http.StatusBadRequest,
		`{"instances": [{"text": "a"}], "top": 0}`:  http.StatusBadRequest,
		`{"instances": [{"text": "a"}], "tip": 1}`:  http.StatusBadRequest,
		`{"instances": [{"text": "a"}]} {}`:         http.StatusBadRequest,
		`{"instances": [{"text": "a\ud800"}]}`:      http.StatusBadRequest, // half of a pair is no character
		`{"instances": [{"text": "\ud83d\ude00"}]}`: http.StatusOK,
		"{\"instances\": [{\"text\": \"\xff\"}]}":   http.StatusBadRequest,
		`{`: http.StatusBadRequest,
	} {
		if code, out := post(t, web, "m:predict", body); code != want {
			t.Errorf("%s: %d %s, want %d", body, code, out["error"], want)
		}
	}
	for call, want := range map[string]int{"x:predict": http.StatusNotFound, "m:delete": http.StatusNotFound,
		"m": http.StatusNotFound} {
		if code, _ := post(t, web, call, one); code != want {
			t.Errorf("%s: %d, want %d", call, code, want)
		}
	}
	// The one core is taken, one request waits, and the next is refused.
	s.slots <- struct{}{}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if code, _ := post(t, web, "m:predict", one); code != http.StatusOK {
			t.Errorf("the request that waited: %d", code)
		}
	})
	for s.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if code, _ := post(t, web, "m:predict", one); code != http.StatusTooManyRequests {
		t.Errorf("beyond the queue: %d", code)
	}
	<-s.slots
	waiting.Wait()

	_, web = serving(t, Options{Rate: 1e-6, MaxBytes: 200, MaxRows: 2, Queue: 1}, trained(t, texts, true, "bsvm"))
	first, _ := post(t, web, "m:predict", one)
	if second, _ := post(t, web, "m:predict", one); first != http.StatusOK || second != http.StatusTooManyRequests {
		t.Errorf("beyond the rate: %d, then %d", first, second)
	}
}

// A folder that gets another model is served by it; requests meanwhile are answered by either, and a
// broken one changes nothing.
func TestReload(t *testing.T) {
	dir, other := trained(t, texts, true, "bsvm"), trained(t, texts, true, "rr-lr")
	s, web := serving(t, Options{}, dir)
	digest := func() string {
		r, err := http.Get(web.URL + "/v1/models")
		must(t, err)
		defer r.Body.Close()
		var out struct {
			Models []struct {
				Report struct {
					Method string `json:"method"`
				} `json:"report"`
			} `json:"models"`
		}
		must(t, json.NewDecoder(r.Body).Decode(&out))
		return out.Models[0].Report.Method
	}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if code, out := post(t, web, "m:predict", `{"instances": [{"text": "a dog"}]}`); code != http.StatusOK {
					t.Errorf("while a model is replaced: %d %s", code, out["error"])
				}
			}
		})
	}
	must(t, os.Rename(dir, dir+".old"))
	s.reload() // there is none for a moment
	must(t, os.Rename(other, dir))
	s.reload()
	if got := digest(); got != "rr-lr" {
		t.Errorf("after the change %s is served", got)
	}
	must(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"checksum": "x"}`), 0o600))
	s.reload()
	if got := digest(); got != "rr-lr" {
		t.Errorf("after a broken one %s is served", got)
	}
	close(stop)
	callers.Wait()
}

// What can't be opened is told once, and tried again when its folder changes: a model that is copied
// manifest first is served in the end.
func TestReloadHalfCopied(t *testing.T) {
	dir, other := trained(t, texts, true, "bsvm"), trained(t, texts, true, "rr-lr")
	s, _ := serving(t, Options{}, dir)
	var told []string
	s.o.Log = func(err error) { told = append(told, err.Error()) }
	look := func(n int, want string) {
		t.Helper()
		s.reload()
		s.reload() // nothing changed
		if len(told) != n || n > 0 && !strings.Contains(told[n-1], want) {
			t.Fatalf("told %q, want %d, the last with %q", told, n, want)
		}
	}
	look(0, "")
	entries, err := os.ReadDir(other)
	must(t, err)
	copied := func(name string) {
		b, err := os.ReadFile(filepath.Join(other, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	copied("manifest.json")
	s.reload()
	first := len(told)
	for _, e := range entries {
		if e.Name() != "manifest.json" {
			if e.IsDir() {
				continue
			}
			copied(e.Name())
			s.reload()
		}
	}
	if in := s.models["m"].acquire(); in.m.Options.Method != "rr-lr" || first != 1 || len(told) != 1 {
		t.Errorf("%s is served, and told %q", in.m.Options.Method, told)
	}
	s.models["m"].in.users.Done()
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "manifest.json"), nil, 0o600))
	look(2, "manifest.json")
	must(t, os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o600))
	look(2, "")
	must(t, os.WriteFile(filepath.Join(dir, "labels"), []byte("other"), 0o600))
	look(3, "labels")
	must(t, os.Rename(dir, dir+".old"))
	look(4, "m")
	must(t, os.Rename(other, dir))
	look(4, "")
}

func TestRefusesNames(t *testing.T) {
	dir := trained(t, texts, true, "bsvm")
	for _, models := range [][]string{nil, {dir, dir}, {"a:b=" + dir}, {filepath.Join(dir, "none")}} {
		if s, err := New(context.Background(), Options{Models: models}, metrics.NewProcess("serve", "test")); err == nil {
			t.Errorf("%v is served by %v", models, s.names())
		}
	}
}

// The whole process: it says where it is, answers, and ends with its context.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	addr := make(chan string, 1)
	ended := make(chan error, 1)
	dir := trained(t, texts, true, "bsvm")
	go func() {
		ended <- Run(ctx, Options{Models: []string{dir}, Listen: "127.0.0.1:0", MaxBytes: 1 << 16, MaxRows: 10, Queue: 10,
			Reload: time.Hour, Drain: time.Minute,
			Log: func(error) {}, Ready: func(a, _ string) { addr <- a }})
	}()
	base := "http://" + <-addr
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/openapi.json": 200, "/metrics": 200,
		"/v1/models": 200, "/other": 404, "/v1/models/m:predict": 405} {
		r, err := http.Get(base + path)
		must(t, err)
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, r.StatusCode, want)
		}
	}
	r, err := http.Post(base+"/v1/models/m:predict", "application/json",
		strings.NewReader(`{"instances": [{"text": "a dog"}]}`))
	must(t, err)
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("POST: %d", r.StatusCode)
	}
	cancel()
	must(t, <-ended)
}

// A model of a table takes numbers by the names of their columns, as the table has them, and a
// text beside them; over gRPC by their indices. Scores are those of predict.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	csv := "text,price,size,label\n" + strings.Repeat("small dog,1,7,a\ncat and dog,2.5,8,a\nsmall "+
		"cat,40,9,b\ndog and cat,42,10,b\n", 3)
	in, out := filepath.Join(dir, "x.csv"), filepath.Join(dir, "scores")
	must(t, os.WriteFile(in, []byte(csv), 0o600))
	o := train.Options{Data: []string{in}, Out: filepath.Join(dir, "m"), Stores: 1, Store: "memory", Cutoff: "auto",
		Pause: 10, Files: fs.Local{}, Job: &taxonv1.Options{Method: "rr-svm"}}
	o.Table.Text, o.Table.Features, o.Table.Label = []string{"text"}, []string{"price", "size"}, "label"
	_, err := train.Run(context.Background(), &o, progress.Discard{})
	must(t, err)
	s, web := serving(t, Options{}, o.Out)
	var got struct{ Predictions []Prediction }
	body := `{"instances":[{"text":"small dog","features":{"price":1,"size":7}},{"text":"small dog","features":{"1":42,"size":null}},{"features":{"price":"x"}},{"features":{"prize":1}}],"top":1}`
	r, err := http.Post(web.URL+"/v1/models/m:predict", "application/json", strings.NewReader(body))
	must(t, err)
	defer r.Body.Close()
	must(t, json.NewDecoder(r.Body).Decode(&got))
	must(t, os.WriteFile(in, []byte("text,price,size\nsmall dog,1,7\nsmall dog,42,\n"), 0o600))
	po := predict.Options{Model: o.Out, Out: out, Scores: true, Top: 1}
	po.Input.Path, po.Input.Files = in, fs.Local{}
	_, err = predict.Run(context.Background(), po, progress.Discard{})
	must(t, err)
	want, err := os.ReadFile(out)
	must(t, err)
	var text strings.Builder
	for _, p := range got.Predictions[:2] {
		score, _ := json.Marshal(p.Labels[0].Score)
		text.WriteString(p.Labels[0].Label + ":" + string(score) + "\n")
	}
	if text.String() != string(want) || !strings.HasPrefix(string(want), "a:") || !strings.Contains(string(want), "\nb:") {
		t.Errorf("served %q, predict says %q", text.String(), want)
	}
	if !strings.Contains(got.Predictions[3].Error, `one of "price", "size"`) || got.Predictions[2].Error == "" {
		t.Errorf("errors %q and %q", got.Predictions[2].Error, got.Predictions[3].Error)
	}
	l := s.models["m"].acquire()
	defer l.users.Done()
	var v vector
	rows := grpcRows{{Input: &taxonv1.Instance_Text{Text: "small dog"}, Numbers: &taxonv1.Features{Index: []uint32{1, 2},
		Value: []float64{1, 7}}}}
	must(t, rows.vector(l, 0, &v))
	if len(v.Index) != 4 {
		t.Errorf("over gRPC %v %v: want two words and two numbers", v.Index, v.Value)
	}
}
