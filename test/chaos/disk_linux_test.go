package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/test/cluster"
)

// smallDisk mounts a file system of the given size on a new folder. Without the permission to
// mount, the test is skipped.
func smallDisk(t *testing.T, dir string, mib string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+mib+"m"); err != nil {
		t.Skipf("a small disk needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// fill leaves no room on a disk, whatever else writes to it. release frees the room again.
func fill(t *testing.T, dir string) (release func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := int64(0)
	for piece := int64(64 << 20); piece >= 4<<10; { // smaller and smaller pieces
		if syscall.Fallocate(int(f.Fd()), 0, at, piece) == nil {
			at += piece
		} else {
			piece /= 2
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDisk checks that a disk that is full in the middle of a job only delays the job. If it is
// a store's disk, the status says what the job waits for, and the job continues by itself when
// there is room.
func TestFullDisk(t *testing.T) {
	thorough(t)
	t.Parallel()
	_, gap, _ := settings(t)
	want := bench.Embedded(t, gap)
	for _, d := range []struct{ process, mib string }{{"store-0", "700"}, {"coordinator", "96"}} {
		t.Run(d.process, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cluster")
			disk := filepath.Join(dir, d.process)
			smallDisk(t, disk, d.mib)
			c := bench.UpIn(t, dir, 2, 1)
			workers := []cluster.Process{c.Process(t, "worker-0"), c.Process(t, "worker-1")}
			for _, w := range workers { // nothing is done before the disk is full
				w.Signal(syscall.SIGSTOP)
			}
			job := c.Submit(t, gap)
			release := fill(t, disk)
			for _, w := range workers {
				w.Signal(syscall.SIGCONT)
			}
			saw := troubled(t, c, job)
			var stores []struct {
				Refuses bool `json:"refuses_writes"`
			}
			if d.process == "store-0" {
				cluster.Decode(t, c.Taxon(t, "stores", "--json").Stdout, &stores)
				if !strings.HasPrefix(saw, waited) || !strings.Contains(saw, "store is full") || !stores[0].Refuses {
					t.Errorf("while the store had no room: %s, stores %v", saw, stores)
				}
			}
			release()
			c.Done(t, job, want, nil)
			if saw == done {
				t.Error("the full disk was not noticed")
			}
			t.Logf("while the disk was full: %s", saw)
		})
	}
}

const (
	done   = "it was done before"
	waited = "the job waited"
)

// failedBefore is longer than the time after which a job used to fail if its store had no room.
const failedBefore = 10 * time.Second

// troubled waits a little for a job that cannot continue, and returns the last description of its
// state.
func troubled(t *testing.T, c *cluster.Cluster, job string) string {
	t.Helper()
	saw := waited
	for end := time.Now().Add(failedBefore); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		r := c.Quick(t, time.Second, "status", job, "--json")
		if r.Code != 0 {
			return "status: " + r.Stderr
		}
		var st cluster.Status
		cluster.Decode(t, r.Stdout, &st)
		switch st.State {
		case "failed":
			return "failed: " + st.Error
		case "done":
			return done
		}
		if st.WaitsFor != "" {
			saw = waited + " for " + st.WaitsFor
		}
	}
	return saw
}
