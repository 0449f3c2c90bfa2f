package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/test/command"
	"taxon/test/dear"
)

// built builds this taxon as another release.
func built(t *testing.T, version, protocol string) string {
	t.Helper()
	flags := "-X taxon/internal/cluster/release.version=" + version
	if protocol != "" {
		flags += " -X taxon/internal/cluster/release.protocol=" + protocol
	}
	path, err := command.Build(t.TempDir(), "-ldflags", flags)
	if err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	return path
}

// put replaces the binary at path by that of another release by a rename, as a package manager
// does.
func put(t *testing.T, from, path string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o700)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRollingUpgrade upgrades a cluster process by process while a job runs. The job must end with
// the same bytes. Processes and clients of another protocol are refused with a message that names
// both versions.
func TestRollingUpgrade(t *testing.T) {
	dear.Only(t)
	t.Parallel()
	want := bench.Embedded(t, "", Long(200)...)
	newer, stranger := built(t, "v9.9.9", ""), built(t, "v10.0.0", "x")
	old := *bench
	old.Bin = filepath.Join(t.TempDir(), "taxon")
	put(t, bench.Bin, old.Bin)
	c := old.Up(t, 2, 2)
	job := c.Submit(t, "", Long(200)...)

	// running processes keep the old file; the supervisor starts the new one
	put(t, newer, old.Bin)
	type member struct{ ID, Name, State, Version string }
	up := func(verb string) (all []member) {
		t.Helper()
		var list []member
		Decode(t, c.Taxon(t, verb, "--json").Stdout, &list)
		for _, m := range list {
			if m.State == "up" {
				all = append(all, m)
			}
		}
		return all
	}
	versions := func(list []member) string {
		var all []string
		for _, m := range list {
			all = append(all, m.Version)
		}
		return strings.Join(all, " ")
	}
	if got := versions(up("workers")); strings.Contains(got, "v9.9.9") || got == "" {
		t.Errorf("before the upgrade workers run %q", got)
	}
	next, at := c.State(t).Processes, uint32(0)
	c.Done(t, job, want, func(s Status) { // one after the other, each once the job has progressed
		if len(next) > 0 && s.Sweep > at {
			next[0].Signal(syscall.SIGTERM)
			next, at = next[1:], s.Sweep
		}
	})
	if len(next) > 0 {
		t.Errorf("the job was over before %d processes were upgraded", len(next))
	}
	for end := time.Now().Add(c.Deadline); ; time.Sleep(20 * time.Millisecond) { // the last process may still be starting
		w, s := versions(up("workers")), versions(up("stores"))
		if w == "v9.9.9 v9.9.9" && s == w {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("workers run %q, stores %q", w, s)
		}
	}

	b := *bench
	b.Bin = stranger
	other := &Cluster{Bench: &b, Dir: c.Dir, env: c.env}
	addr := strings.TrimPrefix(c.env, "TAXON_COORDINATOR=")
	dir := t.TempDir()
	for _, args := range [][]string{
		{"jobs"},
		{"worker", "--coordinator", addr, "--dir", filepath.Join(dir, "w"), "--slots", "1"},
		{"store", "--coordinator", addr, "--dir", filepath.Join(dir, "s"), "--listen", "127.0.0.1:0"},
	} {
		r := other.Try(t, args...)
		if r.Code != 2 && r.Code != 1 || !strings.Contains(r.Stderr, "it is taxon v9.9.9, which speaks cluster protocol 1, "+
			"and the caller is taxon v10.0.0, which speaks x") {
			t.Errorf("%s of another protocol: exit %d, %s", args[0], r.Code, r.Stderr)
		}
	}
}
