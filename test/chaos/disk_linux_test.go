package chaos

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"taxon/test/cluster"
)

// smallDisk mounts a file system of so many MiB on a new folder. Who may not mount skips
// the test.
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

// fill leaves no room on a disk, whatever else writes to it; what it returns makes room again.
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

// A disk that is full in the middle of a job costs time, or ends the job so that it can
// go on; it does not cost a byte of the result.
func TestFullDisk(t *testing.T) {
	thorough(t)
	_, gap := settings(t)
	want := bench.Embedded(t, gap)
	for _, d := range []struct{ process, mib string }{{"store-0", "700"}, {"coordinator", "96"}} {
		t.Run(d.process, func(t *testing.T) {
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
			release()
			if s := c.Try(t, "status", job, "--json"); s.Code == 0 {
				var st cluster.Status
				cluster.Decode(t, s.Stdout, &st)
				if st.State == "failed" {
					c.Taxon(t, "resume", job)
				}
			}
			c.Done(t, job, want, nil)
			if saw == done {
				t.Error("the full disk was not noticed")
			}
			t.Logf("while the disk was full: %s", saw)
		})
	}
}

const done = "it was done before"

// troubled waits a little for a job that can't go on, and says what is told of it.
func troubled(t *testing.T, c *cluster.Cluster, job string) string {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
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
	}
	return "the job waited"
}
