package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/estimate"
)

func TestInfoPlan(t *testing.T) {
	code, stdout, stderr := runWith(t, "", "info", "--plan", "--like", "lwiki", "--scale", "0.001", "--memory", "1MiB")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "325 terminals in 21 blocks") || !strings.Contains(stdout,
		"does not fit") || !strings.Contains(stdout, " 512: ") ||
		!strings.Contains(stdout, "short trainings are overestimated") {
		t.Errorf("exit status %d, %s%s", code, stdout, stderr)
	}
	dir := t.TempDir()
	data, tree := filepath.Join(dir, "data"), filepath.Join(dir, "tree")
	if err := os.WriteFile(data, []byte("a 1:1 2:1\nb 2:1\nc 3:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tree, []byte("r a\nr b\nr c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = runWith(t, "", "info", "--plan", "--data", data, "--hierarchy", tree, "--json")
	var i struct{ Plan *estimate.Info }
	if err := json.Unmarshal([]byte(stdout), &i); code != 0 || err != nil || i.Plan == nil || i.Plan.Terminals != 3 ||
		i.Plan.Fits != nil || len(i.Plan.Speedup) != 4 {
		t.Errorf("exit status %d, %v, %s%s", code, err, stdout, stderr)
	}
}

func TestInfoPlanRefused(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"info --plan", "name a model"},
		{"info --data x", "go with --plan"},
		{"info --like lwiki", "go with --plan"},
		{"info y --like lwiki", "go with --plan"},
		{"info --plan --like lwiki y", "leave PATH out"},
		{"info --plan --data x y", "give one of them"},
		{"info --plan --like wiki", "lwiki"},
	} {
		code, _, stderr := runWith(t, "", strings.Fields(c.args)...)
		if code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d, %q", c.args, code, stderr)
		}
	}
}

// TestInfoTakesOptions: the method's options reach the plan, and are checked as those of train.
func TestInfoTakesOptions(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"d": filepath.Join(dir, "data"), "h": filepath.Join(dir, "tree")}
	for path, text := range map[string]string{vars["d"]: "a 1:1 2:1\nb 2:1\nc 3:1\na 3:1\nb 1:1 3:2\nc 4:1\n",
		vars["h"]: "r a\nr b\nr c\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]string{}
	for _, options := range []string{"", "--inference variational", "--inference variational --covariance diagonal",
		"--likelihood softmax",
		"--prior blr", "--prior blr --prior-inverse full"} {
		code, out, stderr := runTaxon(t, "", "info $d --hierarchy $h --plan --json --method hblr-m2 "+options, vars)
		var i struct{ Memory, Plan json.RawMessage }
		if err := json.Unmarshal([]byte(out), &i); code != 0 || err != nil || len(i.Memory) == 0 {
			t.Fatalf("%s: exit status %d, %v, %s%s", options, code, err, out, stderr)
		}
		what := string(i.Memory) + string(i.Plan)
		if other, ok := seen[what]; ok {
			t.Errorf("%q and %q take the same: %s", options, other, what)
		}
		seen[what] = options
	}
	for options, want := range map[string]string{
		"--method hblr-m1 --covariance diagonal": "--covariance is for the variational inference: " +
			"add --inference variational",
		"--method rr-lr --likelihood softmax":                          "--likelihood means nothing to --method rr-lr",
		"--method hblr-m1 --inference variational --schedule parity":   "goes with inference map",
		"--method hblr-m1 --inference sampled":                         "must be one of map, variational",
		"--plan --method hblr-m2 --prior-scale df --likelihood binary": "prior-scale df goes with hblr-m1 and hblr-m3",
	} {
		if code, _, stderr := runTaxon(t, "", "info $d --hierarchy $h "+options, vars); code != exitUsage ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", options, code, stderr)
		}
	}
}

// TestInfoPlansEveryMethod: what a plan takes, and what its items are called, comes from the
// method alone. Those that train without a structure leave it out.
func TestInfoPlansEveryMethod(t *testing.T) {
	dir := t.TempDir()
	data, tree := filepath.Join(dir, "data"), filepath.Join(dir, "tree")
	for path, text := range map[string]string{data: "a 1:1 2:1\nb 2:1\nc 3:1\n", tree: "r a\nr b\nr c\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range registry.Names() {
		args := []string{"info", data, "--hierarchy", tree, "--plan", "--method", name}
		code, stdout, stderr := runWith(t, "", append(args, "--json")...)
		var i struct{ Plan *estimate.Info }
		if err := json.Unmarshal([]byte(stdout), &i); code != 0 || err != nil || i.Plan == nil || len(i.Plan.Items) == 0 {
			t.Fatalf("%s: exit status %d, %v, %s%s", name, code, err, stdout, stderr)
		}
		code, stdout, stderr = runWith(t, "", args...)
		first := i.Plan.Items[0]
		if code != 0 || stderr != "" || !strings.Contains(stdout, "memory ") || first.Kind == "" ||
			!strings.Contains(stdout, fmt.Sprintf("3 terminals in %d %s", first.Count, first.Kind)) {
			t.Errorf("%s: exit status %d, %s%s", name, code, stdout, stderr)
		}
	}
}
