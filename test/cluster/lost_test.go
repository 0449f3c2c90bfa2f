package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// loseStores stops the cluster, removes all data of its stores, and starts it again.
func (c *Cluster) loseStores(t *testing.T) {
	t.Helper()
	c.Down(t)
	stores, err := filepath.Glob(filepath.Join(c.Dir, "store-*"))
	if err != nil || len(stores) != 2 {
		t.Fatal(stores, err)
	}
	for _, dir := range stores {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	var s State
	Decode(t, c.Must(t, "", "cluster", "up", "--json", "--quiet", "--dir", c.Dir).Stdout, &s)
	c.env = "TAXON_COORDINATOR=" + s.Coordinator
}

// TestLostWeights checks that the weights of a finished job that the stores have lost can be
// restored: from its snapshot or, without one, by training again.
func TestLostWeights(t *testing.T) {
	t.Parallel()
	const gap = "1e-2"
	want := bench.Embedded(t, gap)
	dir := filepath.Join(t.TempDir(), "snapshots")
	c := bench.Up(t, 1, 2, snapshots(dir)...)
	job := c.Submit(t, gap)
	c.Done(t, job, want, nil)
	if r := c.Try(t, "restore", "--from", dir); r.Code != 2 || !strings.Contains(r.Stderr, "is done") {
		t.Errorf("restore of a job whose weights are there: %+v", r)
	}
	if r := c.Try(t, "resume", job); r.Code != 2 {
		t.Errorf("resume of a job whose weights are there: %+v", r)
	}
	c.loseStores(t)
	if r := c.Try(t, "export", "--job", job, "--format", "model", "--out", filepath.Join(t.TempDir(), "m")); r.Code == 0 ||
		!strings.Contains(r.Stderr, "taxon resume "+job) {
		t.Errorf("export of what is lost: %+v", r)
	}
	c.Taxon(t, "restore", "--from", dir, "--job", job)
	c.Done(t, job, want, nil)
	c.loseStores(t)
	c.Taxon(t, "resume", job)
	if s := c.Done(t, job, want, nil); s.Rollbacks == 0 {
		t.Errorf("trained again without a rollback: %+v", s)
	}
	c.Taxon(t, "export", "--job", job, "--format", "model", "--out", filepath.Join(t.TempDir(), "m"))
}

// TestLostWeightsWithoutSnapshots checks the same without snapshots: when the job is submitted
// again, its data are uploaded and it is resumed.
func TestLostWeightsWithoutSnapshots(t *testing.T) {
	t.Parallel()
	const gap = "1e-2"
	want := bench.Embedded(t, gap)
	c := bench.Up(t, 1, 2)
	job := c.Submit(t, gap)
	c.Done(t, job, want, nil)
	c.loseStores(t)
	if again := c.Submit(t, gap, "--id", job); again != job {
		t.Errorf("submitted again it is %s", again)
	}
	if s := c.Done(t, job, want, nil); s.Rollbacks == 0 {
		t.Errorf("not trained again: %+v", s)
	}
	c.Taxon(t, "cancel", job, "--discard", "--yes")
	if r := c.Try(t, append([]string{"submit", "--id", job}, c.Job(gap)...)...); r.Code != 2 || !strings.Contains(r.Stderr,
		"was discarded") {
		t.Errorf("a discarded job submitted again: %+v", r)
	}
}

// TestWorkerThatDoesNotSuit checks that a worker whose cache is too small for the data does not
// keep others from training on them.
func TestWorkerThatDoesNotSuit(t *testing.T) {
	t.Parallel()
	const gap = "1e-1"
	want := bench.Embedded(t, gap)
	c := bench.Up(t, 0, 1)
	small := bench.Process(t, "worker", "--coordinator", c.State(t).Coordinator, "--dir", t.TempDir(), "--name", "small",
		"--cache", "64kB", "--slots", "1")
	bench.Process(t, "worker", "--coordinator", c.State(t).Coordinator, "--dir", t.TempDir(), "--name", "good", "--slots",
		"1")
	job := c.Submit(t, gap)
	c.Done(t, job, want, nil)
	if log := c.Taxon(t, "logs", job).Stdout; !strings.Contains(log, "worker "+small+" gets no tasks") ||
		!strings.Contains(log, "--cache") {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

// TestCopiedShard checks that a copy of a shard's folder is refused while the shard is up.
func TestCopiedShard(t *testing.T) {
	t.Parallel()
	c := bench.Up(t, 0, 1)
	id, err := os.ReadFile(filepath.Join(c.Dir, "store-0", "shard.id"))
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.WriteFile(filepath.Join(copied, "shard.id"), id, 0o600); err != nil {
		t.Fatal(err)
	}
	r := c.Quick(t, 20*time.Second, "store", "--dir", copied, "--coordinator", c.State(t).Coordinator)
	if r.Code != 2 || strings.Contains(r.Stdout, "ready") || !strings.Contains(r.Stderr,
		"a copy of its folder is the same shard") {
		t.Errorf("a second shard of the same id: %+v", r)
	}
}
