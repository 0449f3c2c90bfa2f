package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// snapshots returns the flags that keep a snapshot of every sweep in dir.
func snapshots(dir string) []string {
	return []string{"--snapshots", dir, "--snapshot-every", "1", "--snapshot-pause", "1ms"}
}

// saved waits until a job has a snapshot of the given sweep or a later one.
func (c *Cluster) saved(t *testing.T, dir, job string, sweep uint32) {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, job, "manifest"))
	for end := time.Now().Add(deadline); err != nil || c.Status(t, job).Sweep < sweep; {
		if time.Now().After(end) {
			t.Fatalf("no snapshot: %+v, %v", c.Status(t, job), err)
		}
		time.Sleep(10 * time.Millisecond)
		_, err = os.Stat(filepath.Join(dir, job, "manifest"))
	}
}

// behind returns the sweeps after which a job has resumed, according to its log.
func (c *Cluster) behind(t *testing.T, job, text string) (sweeps []int) {
	t.Helper()
	for _, m := range regexp.MustCompile(text+` (\d+)`).FindAllStringSubmatch(c.Taxon(t, "logs", job).Stdout, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		sweeps = append(sweeps, n)
	}
	return sweeps
}

// TestRestoreElsewhere checks that a job continues from its snapshot on a new cluster with other
// shards, and again on its own cluster, with the same bytes.
func TestRestoreElsewhere(t *testing.T) {
	t.Parallel()
	want := bench.Embedded(t, "", Long(100)...)
	dir := filepath.Join(t.TempDir(), "snapshots")
	old := bench.Up(t, 2, 2, snapshots(dir)...)
	job := old.Submit(t, "", append([]string{"--id", "moved"}, Long(100)...)...)
	old.saved(t, dir, job, 3)
	old.Down(t)

	c := bench.Up(t, 2, 3, snapshots(filepath.Join(t.TempDir(), "others"))...)
	if r := c.Try(t, "restore", "--from", dir, "--job", "nobody"); r.Code != 2 || !strings.Contains(r.Stderr,
		"no snapshot of job nobody") {
		t.Errorf("restore of no job: %+v", r)
	}
	if r := c.Try(t, "restore", "--from", t.TempDir()); r.Code != 2 || !strings.Contains(r.Stderr, "holds no snapshot") {
		t.Errorf("restore from an empty folder: %+v", r)
	}
	if r := c.Try(t, "restore", "--from", dir, "--replicas", "4"); r.Code != 2 || !strings.Contains(r.Stderr,
		"start more") {
		t.Errorf("restore of too many copies: %+v", r)
	}
	if r := c.Taxon(t, "restore", "--from", filepath.Join(dir, job), "--replicas",
		"2"); strings.TrimSpace(r.Stdout) != job {
		t.Errorf("restore: %+v", r)
	}
	c.Taxon(t, "cancel", job)
	if s := c.Await(t, job, nil); s.State != "cancelled" {
		t.Fatalf("cancelled: %+v", s)
	}
	c.Taxon(t, "restore", "--from", dir)
	s := c.Done(t, job, want, nil)
	if from := c.behind(t, job, "from a checkpoint at sweep"); len(from) != 2 || from[0] < 1 {
		t.Errorf("went on behind sweeps %v", from)
	}
	if s.Rollbacks != 1 {
		t.Errorf("%d rollbacks, want the one of the second restore", s.Rollbacks)
	}
	if r := c.Try(t, "restore", "--from", dir); r.Code != 2 || !strings.Contains(r.Stderr, "is done") {
		t.Errorf("restore of a job that is done: %+v", r)
	}
	// an incomplete snapshot is ignored
	parts, err := filepath.Glob(filepath.Join(dir, job, "part-*"))
	if err != nil || len(parts) != 2 {
		t.Fatalf("parts %v, %v", parts, err)
	}
	if err := os.Truncate(parts[1], 100); err != nil {
		t.Fatal(err)
	}
	fresh := bench.Up(t, 0, 1)
	if r := fresh.Try(t, "restore", "--from", dir); r.Code != 2 || !strings.Contains(r.Stderr, "part-00001") {
		t.Errorf("restore from a damaged snapshot: %+v", r)
	}
}

// TestLostShardRollsBack checks that values that a shard has lost for good, without replicas, are
// taken from the last snapshot, so that the job does not start over. The worker is killed too: with
// its cache, or values on another shard, the job could recompute the lost values, which would be
// right but is not tested here.
func TestLostShardRollsBack(t *testing.T) {
	t.Parallel()
	want := bench.Embedded(t, "", Long(250)...)
	dir := filepath.Join(t.TempDir(), "snapshots")
	c := bench.Up(t, 1, 1, snapshots(dir)...)
	job := c.Submit(t, "", Long(250)...)
	c.saved(t, dir, job, 4)
	values, err := filepath.Glob(filepath.Join(c.Dir, "store-0", "values"))
	if err != nil || len(values) != 1 {
		t.Fatalf("the shard's values: %v, %v", values, err)
	}
	worker, store := c.Process(t, "worker-0"), c.Process(t, "store-0")
	store.Signal(syscall.SIGKILL) // before a new worker reads the values
	worker.Signal(syscall.SIGKILL)
	// at once, and out of the way of a store that has been restarted already
	if err := os.Rename(values[0], filepath.Join(c.Dir, "lost")); err != nil {
		t.Fatal(err)
	}
	c.Process(t, "store-0").Signal(syscall.SIGKILL)
	s := c.Done(t, job, want, nil)
	from := c.behind(t, job, "goes on behind sweep")
	if s.Rollbacks == 0 || len(from) == 0 || from[0] < 1 {
		t.Errorf("%d rollbacks, to sweeps %v: want one to the snapshot\n%s", s.Rollbacks, from,
			c.Taxon(t, "logs", job).Stdout)
	}
}

// TestSnapshotsOfOthers checks that a folder that a cluster has not written is neither replaced nor
// removed, whatever a job's name is. Restoring a job from its snapshot takes over the snapshot.
func TestSnapshotsOfOthers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "snapshots")
	thesis := filepath.Join(dir, "f1", "thesis.txt")
	if err := os.MkdirAll(filepath.Dir(thesis), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(thesis, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := bench.Up(t, 1, 1, snapshots(dir)...), bench.Up(t, 1, 1, snapshots(dir)...)
	refused := func(c *Cluster, id, word string) {
		t.Helper()
		r := c.Try(t, append([]string{"submit", "--id", id}, c.Job("1e-1")...)...)
		if r.Code != 2 || !strings.Contains(r.Stderr, word) || !strings.Contains(r.Stderr, "another --id") {
			t.Errorf("submit --id %s: %+v", id, r)
		}
	}
	refused(a, "f1", "thesis.txt")
	if s := a.Await(t, a.Submit(t, "1e-2", "--id", "nightly"), nil); s.State != "done" {
		t.Fatalf("nightly: %+v", s)
	}
	refused(b, "nightly", "another cluster's")
	if r := b.Taxon(t, "restore", "--from", dir, "--job", "nightly"); strings.TrimSpace(r.Stdout) != "nightly" {
		t.Errorf("restore: %+v", r)
	}
	b.Await(t, "nightly", nil)
	a.Taxon(t, "cancel", "nightly", "--discard", "--yes")
	a.Await(t, a.Submit(t, "1e-2", "--id", "own"), nil)
	a.Taxon(t, "cancel", "own", "--discard", "--yes")
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "own")); err != nil {
			break
		}
	}
	for path, there := range map[string]bool{"f1/thesis.txt": true, "nightly/manifest": true, "own": false} {
		if _, err := os.Stat(filepath.Join(dir, path)); (err == nil) != there {
			t.Errorf("%s: %v, want there: %v", path, err, there)
		}
	}
}
