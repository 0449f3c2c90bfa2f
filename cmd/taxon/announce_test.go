package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taxon/internal/cluster"
	"taxon/internal/hadoop/yarn"
	"taxon/internal/ui/console"
)

// TestTakeOver: a coordinator that is started elsewhere on the same journal says where it
// is, and the one before ends as soon as it has something to decide.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "coordinator")
	start := func(name string) *member {
		m := run(t, "coordinator", "--dir", filepath.Join(dir, name), "--listen", "127.0.0.1:0", "--journal",
			filepath.Join(dir, "journal"), "--announce", file)
		m.ready(t, "ready on")
		return m
	}
	place := func() cluster.Place {
		p, err := cluster.ReadPlace(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	old := start("one")
	first := place()
	start("two")
	if second := place(); first.Epoch != 1 || second.Epoch != 2 || second.Coordinator == first.Coordinator {
		t.Errorf("%+v, then %+v", first, second)
	}
	// A store that still calls the old one makes it write to its journal.
	run(t, "store", "--dir", filepath.Join(dir, "store"), "--coordinator", first.Coordinator)
	select {
	case code := <-old.ended:
		old.ended <- code
		if code != exitFailed || !strings.Contains(old.err.String(), "another coordinator") {
			t.Errorf("status %d: %s", code, old.err.String())
		}
	case <-time.After(20 * time.Second):
		t.Error("the old coordinator goes on")
	}
	run(t, "store", "--dir", filepath.Join(dir, "other"), "--coordinator", place().Coordinator).ready(t, "ready on")
}

// TestYarnRunArguments: a container's process knows the flags that it is started with.
func TestYarnRunArguments(t *testing.T) {
	o := yarn.UpOptions{Options: yarn.Options{Name: "c"}, Lease: time.Second, SnapshotPause: time.Second, Slots: 2,
		WorkerMemory: 1 << 30, Cache: 1 << 30, DataRoots: []string{"/data"}}
	for _, insecure := range []bool{true, false} {
		o.Insecure = insecure
		for role, args := range o.Run("hdfs://nn/c", yarn.Roles()).Args {
			cmd := map[string]verb{"coordinator": newCoordinatorCmd, "store": newStoreCmd,
				"worker": newWorkerCmd}[role](&app{ui: console.New(&strings.Builder{})})
			if err := cmd.ParseFlags(args); err != nil {
				t.Errorf("%s: %v", role, err)
			}
			if err := checkRequired(cmd); err != nil {
				t.Errorf("%s: %v", role, err)
			}
		}
	}
}

// TestYarnRefuses: what is wrong with a command line alone is said before anything is asked.
func TestYarnRefuses(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", t.TempDir())
	t.Setenv("HADOOP_USER_NAME", "alice")
	for want, args := range map[string]string{
		"--name":                              "up --name A",
		"must be a folder in HDFS":            "up --dir /tmp",
		"--hierarchy goes with --data":        "up --hierarchy t",
		"--principal and --keytab":            "up --principal a",
		"--lifetime 1s":                       "up --lifetime 1s",
		"--lease 1ms":                         "up --lease 1ms",
		"contradict":                          "up --insecure --certs c",
		"--worker-memory":                     "up --worker-memory 1MiB",
		"or an absolute path":                 "up --data-root sets",
		"no resource manager is configured":   "status",
		"expected http://host:8088":           "scale --workers 1 --resource-manager rm",
		"--workers is required":               "scale",
		"no resource manager answers at 127.": "down --resource-manager http://127.0.0.1:1",
	} {
		status, _, errs := runWith(t, "", append([]string{"yarn"}, strings.Fields(args)...)...)
		if status != exitUsage || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("yarn %s: status %d, %q, want %q", args, status, errs, want)
		}
	}
}

// TestYarnRunFails: a container's process leaves why it has failed in the cluster's folder.
func TestYarnRunFails(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "run.json")
	data, err := yarn.Run{Name: "gw", Dir: dir, Local: "/proc/nope", Args: map[string][]string{yarn.Worker: {}}}.Encode()
	for _, file := range []string{file, filepath.Join(dir, "run.json")} {
		if err = errors.Join(err, os.WriteFile(file, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NM_HOST", "node-7")
	t.Setenv("LOCAL_DIRS", t.TempDir())
	for range 2 {
		if code, _, stderr := runTaxon(t, "", "yarn run worker --instance worker-0 --file $RUN",
			map[string]string{"RUN": file}); code != exitUsage {
			t.Fatalf("status %d: %s", code, stderr)
		}
	}
	var f yarn.ContainerFailure
	data, err = os.ReadFile(filepath.Join(dir, "failures", "worker-0"))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil || f.Instance != "worker-0" || f.Host != "node-7" || f.Times != 2 || !f.Permanent ||
		!strings.Contains(f.Error, "/proc/nope") {
		t.Errorf("%+v, %v", f, err)
	}
}
