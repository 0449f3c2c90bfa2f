package yarn

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"taxon/internal/fs"
	"taxon/internal/ui/progress"
)

// noServices has no service, and counts what it is told to end.
type noServices struct {
	Services
	destroyed int
}

func (s *noServices) Status(context.Context, string) (*Service, error) {
	return &Service{}, nil
}

func (s *noServices) Destroy(context.Context, string) error {
	s.destroyed++
	return ErrNoService
}

// placedServices has one service, in a folder.
type placedServices struct {
	Services
	run string // the file that its processes are started with
	err error
}

func (s placedServices) Status(context.Context, string) (*Service, error) {
	return Definition(Spec{Name: "gw", Run: s.run}), s.err
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
		{"", "hdfs://nn:8020/x/gw/run.json", ErrNoService, "hdfs:///user/alice/taxon/gw"},
	} {
		t.Setenv("HADOOP_USER_NAME", "alice")
		t.Setenv("HADOOP_CONF_DIR", t.TempDir()) // there is no HDFS
		d, err := newDeployment(Options{Name: "gw", Dir: c.given})
		if err != nil {
			t.Fatal(err)
		}
		d.services = placedServices{run: c.run, err: c.err}
		if _, err := d.status(t.Context()); !errors.Is(err, c.err) || d.Dir != c.want {
			t.Errorf("%+v: %s (%v)", c, d.Dir, err)
		}
	}
}

// quiet is told, and says nothing.
type quiet struct{ progress.Reporter }

func (quiet) Note(string, ...any) {}

// gauge notes how far a progress has come.
type gauge struct {
	progress.Reporter
	progress.Progress
	total, done int64
}

func (g *gauge) StartBytes(_ string, total int64) progress.Progress { g.total = total; return g }
func (g *gauge) Set(done int64, _ ...string)                        { g.done = done }
func (g *gauge) Done()                                              {}

// TestShipBinary: the program arrives whole, under a name of its version, and is told of; who
// is interrupted leaves nothing.
func TestShipBinary(t *testing.T) {
	from := filepath.Join(t.TempDir(), "program")
	program := bytes.Repeat([]byte("taxon"), 1<<19)
	if err := os.WriteFile(from, program, 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gauge{}
	s := &shipment{UpOptions: &UpOptions{Options: Options{UI: g}, Binary: from}, dir: t.TempDir()}
	over, end := context.WithCancel(t.Context())
	end()
	if err := s.shipBinary(over); !errors.Is(err, context.Canceled) || fs.Exists(s.spec.Program) {
		t.Errorf("interrupted: %v", err)
	}
	if err := s.shipBinary(t.Context()); err != nil || g.total != int64(len(program)) || g.done != g.total {
		t.Errorf("told %d of %d: %v", g.done, g.total, err)
	}
	if got, err := os.ReadFile(s.spec.Program); err != nil || !bytes.Equal(got, program) {
		t.Errorf("%d bytes arrived: %v", len(got), err)
	}
	g.done = 0
	if err := s.shipBinary(t.Context()); err != nil || g.done != 0 {
		t.Errorf("it was copied again: %v", err)
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
		if f == runName {
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
		{name: "data", files: []string{"thesis/a", "part-0"}, refused: true, purgeRefused: "is no cluster's folder",
			left: []string{"part-0", "thesis"}},
		{name: "names alike", files: []string{"bin/a", "conf/b"}, refused: true, purgeRefused: "is no cluster's folder",
			left: []string{"bin", "conf"}},
		{name: "cluster", files: []string{clusterMark, runName, "bin/taxon-1", "journal/epoch-1/1", ".coordinator.12.part"},
			serviceEnding: 1},
		{name: "cluster and data", files: []string{clusterMark, runName, "model/weights", "secrets/a.key"},
			left: []string{"model"}, serviceEnding: 1},
		{name: "killed up", files: []string{clusterMark, "secrets/a.key"}, serviceEnding: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			services := &noServices{}
			d := &Deployment{Options: Options{Name: "gw", Dir: fill(t, c.files...), UI: quiet{}}, services: services}
			before, err := fs.ReadDirNames(d.Dir)
			if err != nil {
				t.Fatal(err)
			}
			s := &shipment{dir: d.Dir}
			if err := s.makeFolder(); (err != nil) != c.refused {
				t.Errorf("up: %v", err)
			}
			if c.name == "empty" {
				if err := s.undo(); err != nil || fs.Exists(d.Dir) {
					t.Errorf("undone: %v", err)
				}
				d.Dir = fill(t, clusterMark)
			} else if got, err := fs.ReadDirNames(d.Dir); err != nil || !slices.Equal(got, before) {
				t.Errorf("up made %v of %v", got, before)
			}
			err = d.Down(t.Context(), true)
			if c.purgeRefused == "" && err != nil || c.purgeRefused != "" && (err == nil || !strings.Contains(err.Error(),
				c.purgeRefused)) {
				t.Errorf("purge: %v", err)
			}
			if services.destroyed != c.serviceEnding {
				t.Errorf("the service was ended %d times", services.destroyed)
			}
			got, err := fs.ReadDirNames(d.Dir)
			if err != nil && !errors.Is(err, iofs.ErrNotExist) || !slices.Equal(got, c.left) {
				t.Errorf("left %v, want %v (%v)", got, c.left, err)
			}
		})
	}
}

// TestYarnOtherCluster: a cluster's folder is that of one name.
func TestYarnOtherCluster(t *testing.T) {
	dir := fill(t, clusterMark, runName)
	s := &shipment{UpOptions: &UpOptions{Options: Options{Name: "other"}}, dir: dir}
	if err := s.checkBefore(t.Context()); err == nil || !strings.Contains(err.Error(), "is the folder of cluster gw") {
		t.Errorf("up: %v", err)
	}
	services := &noServices{}
	for dir, want := range map[string]string{dir: "is the folder of cluster gw",
		filepath.Join(dir, "nosuch"): "is not there, so nothing was ended"} {
		d := &Deployment{Options: Options{Name: "other", Dir: dir}, services: services}
		if err := d.Down(t.Context(), true); err == nil || !strings.Contains(err.Error(), want) || services.destroyed > 0 {
			t.Errorf("purge: %v, %d services ended", err, services.destroyed)
		}
	}
}

// TestYarnFailures: what a container's process fails with reaches who waits for it, and ends
// the waiting when it lasts.
func TestYarnFailures(t *testing.T) {
	d := &Deployment{Options: Options{Dir: fill(t, runName)}}
	f := ContainerFailure{Instance: "worker-0", Host: "node-7", Error: "/nosuch: no\nroom", Permanent: true}
	fail := func() {
		t.Helper()
		if err := f.Leave(t.Context(), d.Dir); err != nil {
			t.Fatal(err)
		}
	}
	fail()
	failed := d.failures(t.Context())
	if why, err := failed(t.Context()); why != "" || err != nil {
		t.Errorf("before: %q, %v", why, err)
	}
	for range permanentFailures - 1 {
		fail()
	}
	if why, err := failed(t.Context()); err != nil || why != "worker-0 failed 2 times on host node-7, the last time "+
		"with: /nosuch: no; room" {
		t.Errorf("%q, %v", why, err)
	}
	fail()
	_, err := failed(t.Context())
	var problem *Problem
	if !errors.As(err, &problem) || !problem.Usage || err.Error() != "worker-0 does not start on host "+
		"node-7: /nosuch: no; room" {
		t.Errorf("%v", err)
	}
	purged := filepath.Join(t.TempDir(), "purged")
	if f.Leave(t.Context(), purged) == nil || fs.Exists(purged) {
		t.Error("a purged folder has come back")
	}
}

// TestYarnDataIsThere: sizes that are given do not make up for data that are not there.
func TestYarnDataIsThere(t *testing.T) {
	there := fill(t, "part-0")
	for path, want := range map[string]bool{"": true, there: true, filepath.Join(there, "part-*"): true,
		filepath.Join(there, "none"): false, filepath.Join(there, "x-*"): false} {
		o := UpOptions{Data: path, WorkerMemory: 1 << 30, StoreMemory: 1 << 30}
		if err := o.size(t.Context()); (err == nil) != want || err != nil && !errors.Is(err, iofs.ErrNotExist) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestUpOptionsRefused: all that is wrong is said at once, as the user's to fix.
func TestUpOptionsRefused(t *testing.T) {
	o := UpOptions{Hierarchy: "t", Principal: "p", Lifetime: time.Second, Lease: time.Millisecond, Insecure: true,
		Certs: "c", Local: "a,b",
		DataRoots: []string{"x y"}, WorkerMemory: 1, StoreMemory: 1, CoordinatorMemory: 1}
	err := o.Check()
	var problem *Problem
	if !errors.As(err, &problem) || !problem.Usage {
		t.Fatal(err)
	}
	for _, want := range []string{"‹hierarchy", "‹keytab", "‹lifetime=1s›", "‹lease=1ms›", "‹snapshot-pause=0s›",
		"contradict", "‹local", `‹data-root="x y"›`,
		"‹worker-memory=1B›", "‹store-memory", "‹coordinator-memory"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %q", want, err)
		}
	}
	if err := (&UpOptions{Lease: time.Second, SnapshotPause: time.Second}).Check(); err != nil {
		t.Error(err)
	}
}

// TestAwait: what is missing when the time is over is said; that is no fault of the options.
func TestAwait(t *testing.T) {
	d := &Deployment{Options: Options{Name: "gw"}}
	err := d.await(t.Context(), func(context.Context) (bool, string, error) { return false, "a thing", nil })
	var problem *Problem
	if !errors.As(err, &problem) || problem.Usage || !strings.Contains(err.Error(), "a thing") {
		t.Error(err)
	}
}
