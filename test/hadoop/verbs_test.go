package hadoop

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/internal/fs"
	"taxon/test/command"
)

// cli is the built command.
type cli string

func buildCommand(t *testing.T) cli {
	t.Helper()
	bin, err := command.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return cli(bin)
}

// run runs a verb that must end with the given status, and returns its output.
func (c cli) run(t *testing.T, status int, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(string(c), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Fatalf("taxon %s: exit status %d, want %d (%v): %s", strings.Join(args, " "), got, status, err, errs.String())
	}
	return out.String(), errs.String()
}

// figures runs a verb with --json.
func (c cli) figures(t *testing.T, args ...string) map[string]any {
	t.Helper()
	out, _ := c.run(t, 0, append(args, "--json")...)
	var doc map[string]any
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestVerbs takes a data set through every verb with hdfs:// paths and compares the results with
// local ones.
func TestVerbs(t *testing.T) {
	c := startCluster(t, Options{DataNodes: 1, Replication: 1})
	taxon := buildCommand(t)
	local, remote := t.TempDir(), c.URL("/data")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var sums, predicted, exported []string
	for _, root := range []string{local, remote} {
		at := func(name string) string { return fs.Join(root, name) }
		taxon.run(t, 0, "generate", "--like", "wordnet", "--scale", "0.01", "--out", at("gen"))
		taxon.run(t, 0, "ingest", "--data", at("gen/train.svm"), "--out", at("set"))
		hierarchy := []string{"--hierarchy", at("gen/hierarchy.txt")}
		text := taxon.figures(t, append([]string{"train", "--data", at("gen/train.svm"), "--test", at("gen/test.svm"),
			"--out", at("deep/model")}, hierarchy...)...)
		again := taxon.figures(t, append([]string{"train", "--data", at("set"), "--out", at("again")}, hierarchy...)...)
		// finished: nothing to do
		taxon.run(t, 0, append([]string{"train", "--data", at("set"), "--out", at("again")}, hierarchy...)...)
		if text["weights_sha256"] != again["weights_sha256"] {
			t.Errorf("%s: trained on the file %v, on the ingested set %v", root, text["weights_sha256"], again["weights_sha256"])
		}
		sums = append(sums, text["weights_sha256"].(string))
		taxon.run(t, 0, "predict", "--model", at("again"), "--data", at("gen/test.svm"), "--out", at("pred.txt"))
		predicted = append(predicted, string(get(t, at("pred.txt"))))
		taxon.figures(t, "eval", "--pred", at("pred.txt"), "--data", at("gen/test.svm"), "--hierarchy",
			at("gen/hierarchy.txt"))
		taxon.figures(t, "info", at("again"))
		taxon.figures(t, "info", at("set"))
		taxon.run(t, 0, "export", "--model", at("again"), "--out", at("weights")+"/")
		taxon.run(t, 0, "export", "--model", at("again"), "--out", at("weights.txt"))
		parts := get(t, at("weights"))
		if !bytes.Equal(parts, get(t, at("weights.txt"))) {
			t.Errorf("%s: the parts are not the file", root)
		}
		exported = append(exported, string(parts))
		taxon.run(t, 0, "export", "--model", at("again"), "--format", "npz", "--out", at("npz/w.npz")+"/")
		taxon.run(t, 0, "train", "--data", at("set"), "--out", at("again"), "--C", "2", "--force")
		bayes := taxon.figures(t, append([]string{"train", "--method", "hblr-m3", "--max-sweeps", "2", "--data", at("set"),
			"--out", at("bayes")}, hierarchy...)...)
		sums = append(sums, bayes["weights_sha256"].(string))
		taxon.run(t, 0, "export", "--model", at("bayes"), "--what", "precision", "--out", at("precisions.txt"))
		exported = append(exported, string(get(t, at("precisions.txt"))))
	}
	if !slices.Equal(sums[:2], sums[2:]) || predicted[0] != predicted[1] || !slices.Equal(exported[:2], exported[2:]) {
		t.Errorf("local and HDFS differ: weights %q", sums)
	}
	if leftover, err := c.Run(t.Context(), "org.apache.hadoop.fs.FsShell", "-ls", "-R", "/"); err != nil ||
		strings.Contains(leftover, ".part") || strings.Contains(leftover, ".train") {
		t.Errorf("left behind: %s (%v)", leftover, err)
	}
	t.Run("input", func(t *testing.T) { testVerbErrors(t, c, taxon) })
	t.Run("resume", func(t *testing.T) { testResume(t, c, taxon, sums[0]) })
}

// testVerbErrors checks that errors end with status 2 and one line.
func testVerbErrors(t *testing.T, c *Cluster, taxon cli) {
	file, set := c.URL("/data/gen/train.svm"), c.URL("/data/set")
	for _, args := range [][]string{
		{"train", "--data", "hdfs://127.0.0.1:1/x", "--out", t.TempDir() + "/m"},
		{"train", "--data", c.URL("/none"), "--out", t.TempDir() + "/m"},
		{"train", "--data", c.URL("/data"), "--out", t.TempDir() + "/m"},
		{"train", "--data", set, "--out", file},
		{"train", "--data", set, "--out", c.URL("/data/gen")},
		{"train", "--data", set, "--out", strings.Replace(c.URL("/m"), "hdfs://", "hdfs://alice@", 1)},
		{"ingest", "--data", file, "--out", set},
		{"ingest", "--data", file, "--out", "hdfs://127.0.0.1:1/x"},
		{"predict", "--model", c.URL("/none"), "--data", file, "--out", "-"},
		{"predict", "--model", c.URL("/data/again"), "--data", file, "--out", c.URL("/data/again/x")},
		{"export", "--model", c.URL("/data/again"), "--out", c.URL("/none/x")},
		{"export", "--model", c.URL("/data/again"), "--out", c.URL("/data/gen/")},
		{"eval", "--pred", c.URL("/none*"), "--data", file},
		{"info", "hdfs:///x"},
	} {
		_, errs := taxon.run(t, 2, args...)
		if strings.Count(strings.TrimSpace(errs), "\n") != 0 || !strings.HasPrefix(errs, "taxon: ") {
			t.Errorf("taxon %s: %q is not one line", strings.Join(args, " "), errs)
		}
	}
}

// testResume interrupts a training whose model goes to HDFS, and continues it with an empty cache,
// as on another machine.
func testResume(t *testing.T, c *Cluster, taxon cli, want string) {
	args := []string{"train", "--data", c.URL("/data/set"), "--hierarchy", c.URL("/data/gen/hierarchy.txt"), "--out",
		c.URL("/resumed"), "--x", "checkpoint-every=1", "--x", "checkpoint-seconds=0.001"}
	first := append(args, "--gap", "1e-6")
	cmd := exec.Command(string(taxon), first...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if fs.Exists(c.URL("/resumed.train/checkpoint/state")) || fs.Exists(c.URL("/resumed/manifest.json")) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if fs.Exists(c.URL("/resumed/manifest.json")) {
		t.Fatalf("it finished before it could be interrupted: %s", errs.String())
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, errs := taxon.run(t, 2, append(first, "--C", "3")...); !strings.Contains(errs, "holds the checkpoint of a "+
		"training with other options") {
		t.Errorf("other options: %s", errs)
	}
	out, _ := taxon.run(t, 0, append(first, "--json")...)
	straight := taxon.figures(t, "train", "--data", c.URL("/data/set"), "--hierarchy", c.URL("/data/gen/hierarchy.txt"),
		"--out", filepath.Join(t.TempDir(), "m"), "--gap", "1e-6")
	var report map[string]any
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report["weights_sha256"] != straight["weights_sha256"] || straight["weights_sha256"] == want {
		t.Errorf("resumed %v, straight %v", report["weights_sha256"], straight["weights_sha256"])
	}
	if fs.Exists(c.URL("/resumed.train")) {
		t.Error("the checkpoint was left behind")
	}
	if entries, err := os.ReadDir(os.Getenv("XDG_CACHE_HOME") + "/taxon"); err == nil && len(entries) > 0 {
		t.Errorf("the working folder was left behind: %v", entries)
	}
}
