package yarn

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const gib = 1 << 30

func example() Spec {
	return Spec{Name: "wiki", User: "alice", Queue: "research", Program: "hdfs:///u/taxon", Run: "hdfs:///u/run.json",
		Sizes: map[string]Size{Coordinator: {1, 1, gib}, Store: {2, 1, 2 * gib}, Worker: {3, 8, 16*gib + 1}},
		Files: map[string]map[string]string{"": {"ca.crt": "hdfs:///u/ca.crt"},
			Worker: {"worker.key": "hdfs:///u/worker.key"}}}
}

func TestDefinition(t *testing.T) {
	s := Definition(example())
	if s.Queue != "research" || len(s.Components) != 3 || s.Principal != nil || s.Lifetime != 0 {
		t.Errorf("%+v", s)
	}
	w := s.Component(Worker)
	if w.Number != 3 || w.Resource.CPUs != 8 || w.Resource.Memory != "16385" || w.RestartPolicy != "ALWAYS" {
		t.Errorf("%+v %+v", w, w.Resource)
	}
	if w.Command != "./taxon yarn run worker --instance ${COMPONENT_INSTANCE_NAME} --file run.json" {
		t.Error(w.Command)
	}
	var names []string
	for _, f := range w.Configuration.Files {
		names = append(names, f.Dest+"="+f.Src)
	}
	if got := strings.Join(names, " "); got != "taxon=hdfs:///u/taxon run.json=hdfs:///u/run.json "+
		"ca.crt=hdfs:///u/ca.crt worker.key=hdfs:///u/worker.key" {
		t.Error(got)
	}
	if e := w.Configuration.Env; e["HADOOP_USER_NAME"] != "alice" || e["GOMEMLIMIT"] != "13927MiB" {
		t.Error(e)
	}
	for _, f := range s.Component(Store).Configuration.Files {
		if f.Dest == "worker.key" {
			t.Error("a store gets the workers' key")
		}
	}
	k := example()
	k.Principal, k.Keytab = "taxon@R", "hdfs:///u/k"
	if d := Definition(k); d.Principal.Keytab != "hdfs:///u/k" ||
		d.Components[0].Configuration.Env["HADOOP_USER_NAME"] != "" {
		t.Errorf("%+v", d.Principal)
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{"wiki": true, "a-1": true, "": false, "Wiki": false, "1a": false, "a_b": false,
		"a-": false, strings.Repeat("a", 41): false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCheck(t *testing.T) {
	k := Cluster{Nodes: 4, MaxMiB: 20 << 10, MaxCores: 8, AllMiB: 60 << 10, Queues: []string{"default", "root.x.research"}}
	if err := k.Check(example()); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Spec){
		`queue "none" does not exist: there are default, root.x.research`: func(s *Spec) { s.Queue = "none" },
		"its largest node has 20480 MiB": func(s *Spec) {
			s.Sizes[Store] = Size{1, 1,
				21 * gib}
		},
		"its largest node has 8": func(s *Spec) {
			s.Sizes[Worker] = Size{1, 9,
				gib}
		},
		"its 4 nodes have 61440 MiB": func(s *Spec) {
			s.Sizes[Worker] = Size{4, 8,
				16 * gib}
		},
		"ask for at most ‹workers=3›, or less memory for each": func(s *Spec) {
			s.Sizes[Worker] = Size{9, 8,
				16 * gib}
		},
		"‹worker-memory› (now 20480 MiB), ‹store-memory› (20480)": func(s *Spec) {
			s.Sizes[Worker],
				s.Sizes[Store] = Size{1, 8, 20 * gib}, Size{3, 1, 20 * gib}
		},
	} {
		s := example()
		change(&s)
		if err := k.Check(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (&Cluster{}).Check(example()); err == nil || !strings.Contains(err.Error(), "no node manager") {
		t.Error(err)
	}
	k.Queues = nil // a scheduler that does not tell
	s := example()
	s.Queue = "none"
	if err := k.Check(s); err != nil {
		t.Error(err)
	}
}

// TestCheckMore asks a resource manager with two nodes, one of them half used, for more
// containers than there are.
func TestCheckMore(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/ws/v1/cluster/nodes" {
			_, _ = w.Write([]byte(`{"nodes":{"node":[
				{"state":"RUNNING","usedMemoryMB":10240,"availMemoryMB":15360,"usedVirtualCores":6,"availableVirtualCores":2},
				{"state":"RUNNING","usedMemoryMB":0,"availMemoryMB":35840,"usedVirtualCores":0,"availableVirtualCores":8},
				{"state":"LOST","usedMemoryMB":0,"availMemoryMB":99999,"usedVirtualCores":0,"availableVirtualCores":9}]}}`))
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer s.Close()
	k, err := (&Client{URLs: []string{s.URL}}).Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	running := Component{Number: 1, Resource: &Resource{CPUs: 4, Memory: "10240"}, Containers: make([]Container, 1)}
	pending := Component{Number: 7, Resource: running.Resource, Containers: running.Containers}
	for _, c := range []struct {
		of         Component
		n          int
		wait, fail string
	}{
		{of: running, n: 1},
		{of: running, n: 5},
		{of: running, n: 6, fail: "6 containers of 10240 MiB and 4 vcores are too much for the cluster: its 2 nodes have " +
			"61440 MiB, which is room for 5 at most"},
		{of: Component{Number: 0, Resource: running.Resource}, n: 5, wait: "5 more containers of 10240 MiB and 4 vcores " +
			"are wanted; its 2 nodes have 51200 MiB and 10 vcores free, which is room for 4 now"},
		{of: pending, n: 6, wait: "5 more"}, // fewer than were asked for before
		{of: pending, n: 0},
		{of: Component{Number: 1}, n: 99},
	} {
		wait, err := k.CheckMore(c.of, c.n)
		if c.fail == "" && err != nil || c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) {
			t.Errorf("%d: %v, want %q", c.n, err, c.fail)
		}
		if c.wait == "" && wait != "" || !strings.Contains(wait, c.wait) {
			t.Errorf("%d waits: %q, want %q", c.n, wait, c.wait)
		}
	}
}

// TestFolder: a service's status tells where its cluster's folder is, as YARN gives back the
// definition.
func TestFolder(t *testing.T) {
	s := example()
	s.Run = "hdfs://nn:9000/elsewhere/wiki/run.json"
	data, err := json.Marshal(Definition(s))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		string(data): "hdfs://nn:9000/elsewhere/wiki",
		`{"components":[{"name":"x","configuration":{"files":[{"src_file":"/a/run.json","dest_file":"other"}]}},{"name":"y"}]}`: "",
	} {
		got, err := answering(t, 200, "application/json", text).Status(t.Context(), "wiki")
		if err != nil || got.Folder() != want {
			t.Errorf("%q, want %q (%v)", got.Folder(), want, err)
		}
	}
}

func TestLeafQueues(t *testing.T) {
	for text, want := range map[string]string{
		`{"scheduler":{"schedulerInfo":{"queueName":"root","queues":{"queue":[{"queueName":"a"},{"queueName":"b","queues":{"queue":[{"queueName":"c"}]}}]}}}}`: "a c",
		`{"scheduler":{"schedulerInfo":{"rootQueue":{"queueName":"root","childQueues":{"queue":[{"queueName":"root.x"}]}}}}}`:                                  "root.x",
		`{"scheduler":{"schedulerInfo":{"type":"fifoScheduler"}}}`:                                                                                             "",
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(leafQueues(v), " "); got != want {
			t.Errorf("%q, want %q of %s", got, want, text)
		}
	}
}

func TestConf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		`<property><name>yarn.resourcemanager.hostname</name><value>rm</value></property>`:                                                                            "http://rm:8088",
		`<property><name>h</name><value>x</value></property><property><name>yarn.resourcemanager.webapp.address</name><value> ${h}:1 </value></property>`:             "http://x:1",
		`<property><name>yarn.http.policy</name><value>HTTPS_ONLY</value></property><property><name>yarn.resourcemanager.hostname</name><value>rm</value></property>`: "https://rm:8090",
		`<property><name>yarn.resourcemanager.ha.enabled</name><value>true</value></property><property><name>yarn.resourcemanager.ha.rm-ids</name><value>a, b</value></property>
		 <property><name>yarn.resourcemanager.hostname.a</name><value>one</value></property><property><name>yarn.resourcemanager.webapp.address.b</name><value>two:2</value></property>`: "http://one:8088 http://two:2",
		``: "",
	} {
		write("yarn-site.xml", "<configuration>"+text+"</configuration>")
		c, err := ReadConf(dir)
		if err != nil {
			t.Fatal(err)
		}
		urls, err := c.ResourceManagers()
		if got := strings.Join(urls, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	write("yarn-site.xml", "<configuration>")
	if _, err := ReadConf(dir); err == nil || !strings.Contains(err.Error(), "yarn-site.xml") {
		t.Error(err)
	}
}

func TestRunCommand(t *testing.T) {
	root := t.TempDir()
	first, second := filepath.Join(root, "1"), filepath.Join(root, "2")
	env := map[string]string{"NM_HOST": "node-7", "LOCAL_DIRS": first + "," + second}
	r := Run{Name: "wiki", Args: map[string][]string{Store: {"--dir", "{local}", "--listen", "{host}:0", "--name",
		"{instance}"}}}
	want := func(instance, dir string) {
		t.Helper()
		args, temp, err := r.Command(Store, instance, func(k string) string { return env[k] })
		if err != nil || strings.Join(args, " ") != "--dir "+dir+" --listen node-7:0 --name "+instance ||
			filepath.Dir(temp) != dir {
			t.Errorf("%q %s %v", args, temp, err)
		}
	}
	want("store-0", first+"/taxon-wiki-store-0")
	want("store-1", second+"/taxon-wiki-store-1")
	env["LOCAL_DIRS"] = second + "," + first
	want("store-0", first+"/taxon-wiki-store-0") // where it was
	r.Local = filepath.Join(root, "given")
	want("store-1", r.Local+"/taxon-wiki-store-1")
	if _, _, err := r.Command("reducer", "x-0", func(k string) string { return env[k] }); err == nil {
		t.Error("a role that is none")
	}
	if _, _, err := r.Command(Store, "x-0", func(string) string { return "" }); err == nil {
		t.Error("outside of YARN")
	}
}

func TestReadRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.json")
	data, err := Run{Name: "wiki"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{string(data): true, "{": false, `{"version":9}`: false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRun(file); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzConf(f *testing.F) {
	f.Add([]byte("<configuration><property><name>a</name><value>${a}</value></property></configuration>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Conf{}
		if c.Parse(data) == nil {
			_, _ = c.ResourceManagers()
			for k := range c {
				_ = c.Get(k)
			}
		}
	})
}

// answering is a server that answers with a status and a text.
func answering(t *testing.T, status int, kind, text string) *Client {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("user.name") != "alice" {
			t.Errorf("called as %q", r.URL.RawQuery)
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return &Client{URLs: []string{s.URL}, User: "alice"}
}

// TestAnswers holds what is made of a resource manager's answers, as 3.4.2 gave them.
func TestAnswers(t *testing.T) {
	const js, html = "application/json;charset=utf-8", "text/html"
	for _, c := range []struct {
		status     int
		kind, text string
		is         error
		says       string
	}{
		{404, js, `{"diagnostics":"Service gw not found","code":404004}`, ErrNoService, "gw"},
		{404, js, `{"servlet":"API-Service","message":"Not Found","url":"/app/v1/services/gw","status":"404"}`, ErrClosed,
			"ask its admin"},
		{404, js, `{"RemoteException":{"exception":"NotFoundException","message":"java.lang.Exception"}}`, ErrClosed,
			"yarn.webapp.api-service.enable"},
		{500, js, `{"diagnostics":"submitted by user root to unknown queue: nosuch\nmore"}`, nil, "unknown queue: nosuch"},
		{403, html, `<html>`, nil, "refuses this user: 403"},
		{200, html, `<html>`, ErrUnreachable, "is no resource manager"},
		{200, js, `{"components":7}`, nil, "cannot unmarshal"},
	} {
		_, err := answering(t, c.status, c.kind, c.text).Status(t.Context(), "gw")
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%d %s: %v, want %q", c.status, c.text, err, c.says)
		}
	}
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Content-Type", js)
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"servlet":"API-Service","message":"Server Error","status":"500"}`))
			return
		}
		_, _ = w.Write([]byte(`{"state":"STABLE"}`))
	}))
	defer s.Close()
	if got, err := (&Client{URLs: []string{s.URL}}).Status(t.Context(), "gw"); err != nil || got.State != "STABLE" {
		t.Errorf("just started: %+v %v", got, err)
	}
	up := answering(t, 200, js, `{"name":"gw","id":"application_1","lifetime":-1,"state":"STABLE","components":[{"name":"worker","containers":[{"state":"READY"},{"state":"INIT"}]}]}`)
	up.URLs = append([]string{"http://127.0.0.1:1"}, up.URLs...) // a standby that is down
	got, err := up.Status(t.Context(), "gw")
	if err != nil || len(got.Component(Worker).Containers) != 2 || got.Component("x") != nil {
		t.Errorf("%+v %v", got, err)
	}
}
