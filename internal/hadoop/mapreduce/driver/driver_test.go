package driver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"taxon/internal/app/train"
	"taxon/internal/data/dataset"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/hadoop/mapreduce/driver"
	"taxon/internal/model"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestMain is the tests' entry, the task program's, and that of a driver: the runner starts this
// binary with the arguments of mapreduce.TaskCommand, driver.Start with those of TestStart.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case "mapreduce-task":
		err = runTask(os.Args[2], os.Args[3:])
	case "accepted":
		d := &driver.Driver{Dir: os.Args[2], Job: "train", Out: "model"}
		if err = d.Listen(func(grpc.ServiceRegistrar) {}); err == nil {
			d.Accepted()
		}
	case "refused":
		fmt.Fprintln(os.Stderr, "taxon: no such queue")
		os.Exit(2)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runTask(kind string, flags []string) error {
	given := map[string]string{}
	for i := 0; i+1 < len(flags); i += 2 {
		given[flags[i]] = flags[i+1]
	}
	t := mapreduce.Task{State: given["--state"], Run: given["--run"], Cores: 1, Attempt: mapreduce.AttemptName(),
		Open:  func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return dataset.Open(given["--data"]) },
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if kind == "map" {
		return t.Map(context.Background())
	}
	return t.Reduce(context.Background())
}

// TestTraining: another program trains by MapReduce, to the weights of a training in its own
// process, and the driver's folder says how it ended.
func TestTraining(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(7, 11))
	var rows strings.Builder
	for range 200 {
		c := r.IntN(4)
		fmt.Fprintf(&rows, "c%d %d:%.3f %d:%.3f\n", c, 1+c, r.Float64(), 10+r.IntN(8), r.Float64())
	}
	data := filepath.Join(dir, "train.svm")
	if err := os.WriteFile(data, []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, name := range []string{"here", "mapreduce"} {
		o := &train.Options{Job: &taxonv1.Options{Method: "rr-svm"}, Data: []string{data}, DAG: "graph",
			Out: filepath.Join(dir, name), Cutoff: "none",
			Threads: 1, Stores: 1, Store: "memory", Pause: 10}
		folder := t.TempDir()
		if name == "mapreduce" {
			o.Remote = &driver.Training{Options: mapreduce.Options{Runner: mapreduce.RunnerProcesses, Cores: 1},
				UI:     progress.Discard{},
				Driver: driver.Driver{Dir: folder, Job: "train", Out: o.Out}}
		}
		report, err := train.Run(t.Context(), o, progress.Discard{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sums[name] = report.WeightsSHA256
		if name == "mapreduce" {
			ended, err := os.ReadFile(filepath.Join(folder, "ended.json"))
			if err != nil || !strings.Contains(string(ended), `"state": "done"`) || !strings.Contains(string(ended),
				report.WeightsSHA256) {
				t.Errorf("%v: %s", err, ended)
			}
		}
	}
	if sums["here"] != sums["mapreduce"] || sums["here"] == "" {
		t.Errorf("weights %v", sums)
	}
}

// TestGone: who asks a driver that has ended learns how, by its address.
func TestGone(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, c := range []struct {
		name string
		end  func(d *driver.Driver)
		says string
	}{
		{"done", func(d *driver.Driver) { d.End(driver.EndedDocument(&model.Report{}, nil)) },
			"the job is done, its model is "},
		{"failed", func(d *driver.Driver) { d.End(driver.EndedDocument(nil, errors.New("no room\nat all"))) },
			"the job failed: no room"},
		{"cancelled", func(d *driver.Driver) { d.End(driver.EndedDocument(nil, context.Canceled)) }, "the job was cancelled"},
	} {
		d := &driver.Driver{Dir: t.TempDir(), Job: "submitted", Out: "model"}
		if err := d.Listen(func(grpc.ServiceRegistrar) {}); err != nil {
			t.Fatal(err)
		}
		d.Accepted()
		d.Rename("train")
		addr := addressOf(t, d.Dir)
		if e, err := driver.Gone(t.Context(), addr); e != nil || err != nil {
			t.Errorf("%s: it lives: %v, %v", c.name, e, err)
		}
		d.Saw(&taxonv1.JobStatus{Job: "submitted", Sweep: 3})
		c.end(d)
		e, err := driver.Gone(t.Context(), addr)
		if err != nil || e == nil {
			t.Fatalf("%s: %v, %v", c.name, e, err)
		}
		if e.State != c.name || !strings.Contains(e.Error(), c.says) || !strings.Contains(string(e.Document), `"sweep": 3`) ||
			!strings.Contains(string(e.Document), `"job": "train"`) {
			t.Errorf("%s: %s, %v: %s", c.name, e.State, e, e.Document)
		}
		if err := os.Remove(filepath.Join(d.Dir, "ended.json")); err != nil {
			t.Fatal(err)
		}
		if e, err := driver.Gone(t.Context(), addr); err != nil || e == nil || e.State != "" || !strings.Contains(e.Error(),
			"has been killed") {
			t.Errorf("%s: without a last word: %v, %v", c.name, e, err)
		}
	}
	if e, err := driver.Gone(t.Context(), "127.0.0.1:1"); e != nil || err != nil {
		t.Errorf("nobody's address: %v, %v", e, err)
	}
}

func addressOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "driver.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), `"coordinator": "`)
	addr, _, _ := strings.Cut(rest, `"`)
	return addr
}

// TestStart: a driver has started when it says so; one that ends before says why.
func TestStart(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "m.driver")
	info, err := driver.Start(t.Context(), dir, []string{"accepted", dir})
	if err != nil || info.Job != "train" || info.PID == os.Getpid() || info.Coordinator == "" ||
		!filepath.IsAbs(info.Out) {
		t.Fatalf("%+v, %v", info, err)
	}
	_, err = driver.Start(t.Context(), dir, []string{"refused"})
	var early *driver.EarlyEnd
	if !errors.As(err, &early) || early.Status != 2 || early.Line != "no such queue" {
		t.Errorf("%v, %+v", err, early)
	}
}
