package hadoop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	chdfs "github.com/colinmarc/hdfs/v2"

	"taxon/internal/fs"
	"taxon/internal/fs/hdfs"
)

// TestFaults kills data nodes and the name node under reads and writes.
func TestFaults(t *testing.T) {
	c := startCluster(t, Options{DataNodes: 2, Replication: 2, HDFS: map[string]string{"dfs.blocksize": "8388608"}})
	data := noise(1, 40<<20)
	put(t, c.URL("/data"), data)
	t.Run("throughput", func(t *testing.T) { testThroughput(t, c, data) })
	t.Run("read, data node killed", func(t *testing.T) { testReadOver(t, c, data, DataNode(0)) })
	t.Run("read, name node restarted", func(t *testing.T) { testReadOver(t, c, data, "namenode") })
	t.Run("write, name node restarted", func(t *testing.T) { testWriteOver(t, c, data, "namenode") })
	t.Run("folder, name node restarted", func(t *testing.T) { testFolderOver(t, c) })
	t.Run("write, data node killed", func(t *testing.T) { testWriteOver(t, c, data, DataNode(1)) })
	t.Run("replaced while read", func(t *testing.T) { testReplacedWhileRead(t, c, data) })
}

// restart restarts a daemon after a delay.
func (c *Cluster) restart(t *testing.T, name string, after time.Duration) (done func()) {
	t.Helper()
	back := make(chan error, 1)
	go func() {
		time.Sleep(after)
		back <- c.StartDaemon(name)
	}()
	return func() {
		if err := <-back; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// testReadOver kills a daemon in the middle of a read and starts it again.
func testReadOver(t *testing.T, c *Cluster, data []byte, name string) {
	f, err := fs.Open(t.Context(), fs.Local{}, c.URL("/data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, len(data))
	half := len(got) / 4
	if _, err := io.ReadFull(f, got[:half]); err != nil {
		t.Fatal(err)
	}
	c.Kill(name)
	done := c.restart(t, name, time.Second)
	defer done()
	if _, err := io.ReadFull(f, got[half:]); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Error("other bytes")
	}
	if n, err := f.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
}

// testWriteOver kills a daemon in the middle of a write and starts it again.
func testWriteOver(t *testing.T, c *Cluster, data []byte, name string) {
	path := c.URL("/written/" + name)
	if err := fs.RemoveAll(c.URL("/written")); err != nil {
		t.Fatal(err)
	}
	d, err := fs.CreateDir(c.URL("/written"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	f, err := fs.CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	half := len(data) / 3
	if _, err := f.Write(data[:half]); err != nil {
		t.Fatal(err)
	}
	c.Kill(name)
	done := c.restart(t, name, 3*time.Second)
	for part := range slices.Chunk(data[half:], 100_000) {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	done()
	if got := get(t, path); !bytes.Equal(got, data) {
		t.Errorf("%d bytes read, %d written, or others", len(got), len(data))
	}
	nothingBut(t, c.URL("/written"), "_SUCCESS", name)
}

// testFolderOver publishes a folder while the name node is down.
func testFolderOver(t *testing.T, c *Cluster) {
	d, err := fs.CreateDir(c.URL("/model/new"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Abort()
	if err := os.WriteFile(filepath.Join(d.Path(), "weights"), noise(2, 9<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	c.Kill("namenode")
	done := c.restart(t, "namenode", time.Second)
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	done()
	nothingBut(t, c.URL("/model"), "new")
	if got := get(t, c.URL("/model/new/weights")); !bytes.Equal(got, noise(2, 9<<20)) {
		t.Error("other bytes")
	}
}

// testReplacedWhileRead checks that a read never returns a mixture of two versions.
func testReplacedWhileRead(t *testing.T, c *Cluster, data []byte) {
	f, err := fs.Open(t.Context(), fs.Local{}, c.URL("/data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	other := noise(77, len(data))
	put(t, c.URL("/data"), other)
	got, err := io.ReadAll(f)
	if err == nil && !bytes.Equal(got, data[1000:]) {
		t.Error("neither the old file nor an error")
	}
	if err != nil {
		wantInput(t, err, c.URL("/data"), "was replaced or changed")
	}
}

// testThroughput compares with plain io.Copy of the client library, in turns, and logs the medians.
// Times do not fail the test.
func testThroughput(t *testing.T, c *Cluster, data []byte) {
	whole := bytes.Repeat(data, 4)
	put(t, c.URL("/whole"), whole)
	l, err := hdfs.Parse(c.URL("/"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := chdfs.NewClient(chdfs.ClientOptions{Addresses: []string{l.Host}, User: superuser(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	plainRead := func() error {
		f, err := client.Open("/whole")
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(io.Discard, f)
		return err
	}
	ourRead := func() error {
		f, err := fs.Open(t.Context(), fs.Local{}, c.URL("/whole"))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(io.Discard, f)
		return err
	}
	n := 0
	plainWrite := func() error {
		n++
		f, err := client.Create(fmt.Sprint("/plain", n))
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, bytes.NewReader(data)); err != nil {
			return err
		}
		for err = f.Close(); chdfs.IsErrReplicating(err); err = f.Close() {
			time.Sleep(5 * time.Millisecond)
		}
		return err
	}
	ourWrite := func() error {
		n++
		f, err := fs.CreateFile(c.URL(fmt.Sprint("/ours", n)))
		if err != nil {
			return err
		}
		defer f.Abort()
		if _, err := io.Copy(f, bytes.NewReader(data)); err != nil {
			return err
		}
		return f.Commit()
	}
	for _, v := range []struct {
		name        string
		bytes       int
		plain, ours func() error
	}{{"read", len(whole), plainRead, ourRead}, {"write", len(data), plainWrite, ourWrite}} {
		var plain, ours []time.Duration
		for i := range 8 {
			a, b := timed(t, v.plain), timed(t, v.ours)
			if i > 0 { // the first run warms up
				plain, ours = append(plain, a), append(ours, b)
			}
		}
		slices.Sort(plain)
		slices.Sort(ours)
		p, o := plain[len(plain)/2], ours[len(ours)/2]
		rate := func(d time.Duration) float64 { return float64(v.bytes) / 1e6 / d.Seconds() }
		t.Logf("%s: plain client %.0f MB/s, ours %.0f MB/s: %.0f %%", v.name, rate(p), rate(o), 100*p.Seconds()/o.Seconds())
	}
}

func timed(t *testing.T, f func() error) time.Duration {
	t.Helper()
	began := time.Now()
	if err := f(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
