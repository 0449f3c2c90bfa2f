package main

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/yarn"
)

// noServices has no service, and counts what it is told to end.
type noServices struct {
	yarn.Services
	destroyed int
}

func (s *noServices) Status(context.Context, string) (*yarn.Service, error) {
	return &yarn.Service{}, nil
}

func (s *noServices) Destroy(context.Context, string) error {
	s.destroyed++
	return yarn.ErrNoService
}

// placedServices has one service, in a folder.
type placedServices struct {
	yarn.Services
	run string // the file that its processes are started with
	err error
}

func (s placedServices) Status(context.Context, string) (*yarn.Service, error) {
	return yarn.Definition(yarn.Spec{Name: "gw", Run: s.run}), s.err
}

// The folder is the one that was given, else the service's, else that of the name.
func TestFolderOfService(t *testing.T) {
	for _, c := range []struct {
		given, run string
		err        error
		want       string
	}{
		{"", "hdfs://nn:8020/x/gw/run.json", nil, "hdfs://nn:8020/x/gw"},
		{"hdfs://nn:8020/y", "hdfs://nn:8020/x/gw/run.json", nil, "hdfs://nn:8020/y"},
		{"", "elsewhere", nil, "hdfs:///user/alice/taxon/gw"},
		{"", "hdfs://nn:8020/x/gw/run.json", yarn.ErrNoService, "hdfs:///user/alice/taxon/gw"},
	} {
		t.Setenv("HADOOP_USER_NAME", "alice")
		t.Setenv("HADOOP_CONF_DIR", t.TempDir()) // there is no HDFS
		o := yarnOptions{verb: "scale", name: "gw", dir: c.given}
		if err := o.prepare(); err != nil {
			t.Fatal(err)
		}
		if _, err := o.status(t.Context(), placedServices{run: c.run, err: c.err}); !errors.Is(err, c.err) || o.dir != c.want {
			t.Errorf("%+v: %s (%v)", c, o.dir, err)
		}
	}
}

// fill makes files in a new folder.
func fill(t *testing.T, files ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dir")
	for _, f := range append(files, "") {
		path := filepath.Join(dir, f)
		if f == "" {
			path = filepath.Join(dir, "x")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if f == "" {
			continue
		}
		text := "precious"
		if f == "run.json" {
			text = `{"version":1,"name":"gw","stores":1,"args":{}}`
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestYarnFolder: up takes an empty folder or a cluster's, and --purge removes of it what a
// cluster has made, and no other folder. What is refused is refused before the service ends.
func TestYarnFolder(t *testing.T) {
	for _, c := range []struct {
		name          string
		files         []string
		refused       bool   // by up
		purgeRefused  string // by down --purge
		left          []string
		serviceEnding int
	}{
		{name: "empty", serviceEnding: 1},
		{name: "data", files: []string{"thesis/a", "part-0"}, refused: true, purgeRefused: "is no cluster's folder", left: []string{"part-0", "thesis"}},
		{name: "names alike", files: []string{"bin/a", "conf/b"}, refused: true, purgeRefused: "is no cluster's folder", left: []string{"bin", "conf"}},
		{name: "cluster", files: []string{"run.json", "bin/taxon-1", "journal/epoch-1/1", ".coordinator.12.part"}, serviceEnding: 1},
		{name: "cluster and data", files: []string{"run.json", "model/weights", "secrets/a.key"}, left: []string{"model"}, serviceEnding: 1},
		{name: "killed up", files: []string{clusterMark, "secrets/a.key"}, serviceEnding: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := yarnUpOptions{yarnOptions: yarnOptions{verb: "up", name: "gw", dir: fill(t, c.files...)}}
			before, err := fs.ReadDirNames(o.dir)
			if err != nil {
				t.Fatal(err)
			}
			s := &shipment{o: &o}
			if err := s.makeFolder(t.Context()); (err != nil) != c.refused {
				t.Errorf("up: %v", err)
			}
			if c.name == "empty" {
				if err := s.undo(); err != nil || fs.Exists(o.dir) {
					t.Errorf("undone: %v", err)
				}
				o.dir = fill(t, clusterMark)
			} else if got, err := fs.ReadDirNames(o.dir); err != nil || !slices.Equal(got, before) {
				t.Errorf("up made %v of %v", got, before)
			}
			services := &noServices{}
			err = o.end(t.Context(), &app{ui: newUI(&strings.Builder{})}, nil, services, true)
			if c.purgeRefused == "" && err != nil || c.purgeRefused != "" && (err == nil || !strings.Contains(err.Error(), c.purgeRefused)) {
				t.Errorf("purge: %v", err)
			}
			if services.destroyed != c.serviceEnding {
				t.Errorf("the service was ended %d times", services.destroyed)
			}
			got, err := fs.ReadDirNames(o.dir)
			if err != nil && !errors.Is(err, iofs.ErrNotExist) || !slices.Equal(got, c.left) {
				t.Errorf("left %v, want %v (%v)", got, c.left, err)
			}
		})
	}
}

// TestYarnOtherCluster: a cluster's folder is that of one name.
func TestYarnOtherCluster(t *testing.T) {
	o := yarnUpOptions{yarnOptions: yarnOptions{verb: "up", name: "other", dir: fill(t, "run.json")}}
	if err := (&shipment{o: &o}).checkBefore(t.Context()); err == nil || !strings.Contains(err.Error(), "is the folder of cluster gw") {
		t.Errorf("up: %v", err)
	}
	services := &noServices{}
	for dir, want := range map[string]string{o.dir: "is the folder of cluster gw", filepath.Join(o.dir, "nosuch"): "is not there, so nothing was ended"} {
		o.dir = dir
		if err := o.end(t.Context(), nil, nil, services, true); err == nil || !strings.Contains(err.Error(), want) || services.destroyed > 0 {
			t.Errorf("purge: %v, %d services ended", err, services.destroyed)
		}
	}
}

// TestYarnFailures: what a container's process fails with reaches who waits for it, and ends
// the waiting when it lasts.
func TestYarnFailures(t *testing.T) {
	o := yarnOptions{verb: "up", dir: fill(t, "run.json")}
	run := filepath.Join(t.TempDir(), "run.json")
	data, err := yarn.Run{Name: "gw", Dir: o.dir, Local: "/proc/nope", Args: map[string][]string{yarn.Worker: {}}}.Encode()
	if err == nil {
		err = os.WriteFile(run, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NM_HOST", "node-7")
	t.Setenv("LOCAL_DIRS", t.TempDir())
	fail := func() {
		t.Helper()
		if code, _, stderr := runTaxon(t, "", "yarn run worker --instance worker-0 --file $RUN", map[string]string{"RUN": run}); code != exitUsage {
			t.Fatalf("status %d: %s", code, stderr)
		}
	}
	fail()
	failed := o.failures(t.Context())
	if why, err := failed(t.Context()); why != "" || err != nil {
		t.Errorf("before: %q, %v", why, err)
	}
	for range lastingFailures - 1 {
		fail()
	}
	if why, err := failed(t.Context()); err != nil || !strings.Contains(why, "worker-0 failed 2 times on host node-7") || !strings.Contains(why, "/proc/nope") {
		t.Errorf("%q, %v", why, err)
	}
	fail()
	_, err = failed(t.Context())
	purged := filepath.Join(t.TempDir(), "purged")
	if (containerFailure{Instance: "worker-0"}).tell(t.Context(), purged) == nil || fs.Exists(purged) {
		t.Error("a purged folder has come back")
	}
	var status *statusError
	if !errors.As(err, &status) || status.Code != exitUsage || !strings.Contains(err.Error(), "worker-0 does not start on host node-7") || !strings.Contains(err.Error(), "/proc/nope") {
		t.Errorf("%v", err)
	}
}

// TestYarnDataIsThere: sizes that are given do not make up for data that are not there.
func TestYarnDataIsThere(t *testing.T) {
	there := fill(t, "part-0")
	for path, want := range map[string]bool{"": true, there: true, filepath.Join(there, "part-*"): true, filepath.Join(there, "none"): false, filepath.Join(there, "x-*"): false} {
		o := yarnUpOptions{data: path, workerMem: 1 << 30, storeMem: 1 << 30}
		if err := o.size(t.Context(), nil); (err == nil) != want || err != nil && !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestMapReduceFlagsRefused: what means nothing to the engine is refused, not ignored.
func TestMapReduceFlagsRefused(t *testing.T) {
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "OUT": filepath.Join(t.TempDir(), "m")}
	for _, flag := range []string{"--runner processes", "--state x", "--mapred mapred", "--queue q", "--hadoop-property a=b", "--task-memory 1GiB", "--task-cores 2", "--map-tasks 2", "--reduce-tasks 2"} {
		for _, line := range []string{"train --out $OUT ", "submit --coordinator 127.0.0.1:1 "} {
			code, _, stderr := runTaxon(t, "", line+"--data $DATA "+flag, vars)
			if want := strings.Fields(flag)[0] + ": is for --engine mapreduce"; code != exitUsage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s%s: status %d: %q", line, flag, code, stderr)
			}
		}
	}
	code, _, stderr := runTaxon(t, "", "train --engine mapreduce --runner processes --store badger --data $DATA --out $OUT", vars)
	if code != exitUsage || !strings.Contains(stderr, "--store badger: leave it out") {
		t.Errorf("status %d: %q", code, stderr)
	}
}
