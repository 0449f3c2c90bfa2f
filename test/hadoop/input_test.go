package hadoop

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taxon/internal/fs"
)

// TestBadInput checks that a mistake that only the user can fix gives one line that says so, and
// leaves no files.
func TestBadInput(t *testing.T) {
	c := startCluster(t, Options{DataNodes: 1, Replication: 1, HDFS: map[string]string{"dfs.blocksize": "1048576"}})
	put(t, c.URL("/file"), []byte("x"))
	c.admin(t, "-mkdir", "-p", "/small", "/closed")
	c.admin(t, "-chmod", "700", "/closed")
	host := strings.TrimPrefix(strings.TrimSuffix(c.URL("/"), "/"), fs.Scheme)
	nobody := fs.Scheme + "alice@" + host
	t.Run("permission", func(t *testing.T) {
		_, err := fs.Open(t.Context(), fs.Local{}, nobody+"/closed/x")
		wantInput(t, err, nobody, "permission denied")
		wantInput(t, fs.WriteFile(nobody+"/closed/x", []byte("x")), nobody, "permission denied")
		wantInput(t, fs.WriteFile(nobody+"/x", []byte("x")), nobody, "permission denied")
		_, err = fs.CreateDir(nobody+"/a/b", false)
		wantInput(t, err, nobody, "permission denied")
		t.Setenv("HADOOP_USER_NAME", "alice")
		wantInput(t, fs.WriteFile(c.URL("/y"), []byte("x")), c.URL(""), "permission denied")
		nothingBut(t, fs.Scheme+superuser(t)+"@"+host+"/", "closed", "file", "small")
	})
	t.Run("space", func(t *testing.T) {
		c.admin(t, "-setSpaceQuota", "1m", "/small")
		path := c.URL("/small/x")
		wantInput(t, fs.WriteFile(path, noise(1, 3<<20)), path, "quota is used up")
		d, err := fs.CreateDir(c.URL("/small/dir"), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.Join("big"), noise(1, 3<<20), 0o666); err != nil {
			t.Fatal(err)
		}
		wantInput(t, d.Commit(), c.URL("/small/dir"), "quota is used up")
		nothingBut(t, c.URL("/small"))
	})
	t.Run("safe mode", func(t *testing.T) {
		c.admin(t, "-safemode", "enter")
		wantInput(t, fs.WriteFile(c.URL("/z"), []byte("x")), c.URL("/z"), "safe mode")
		_, err := fs.CreateDir(c.URL("/dir"), false)
		wantInput(t, err, c.URL("/dir"), "safe mode")
		c.admin(t, "-safemode", "leave")
		nothingBut(t, c.URL("/"), "closed", "file", "small")
	})
	t.Run("wrong port", func(t *testing.T) {
		for _, port := range []int{c.WebPort(), c.DataPort(0)} {
			path := fmt.Sprintf("hdfs://127.0.0.1:%d/file", port)
			_, err := fs.Open(t.Context(), fs.Local{}, path)
			wantInput(t, err, path, "no HDFS name node answers at 127.0.0.1")
			_, err = fs.CreateDir(path, false)
			wantInput(t, err, path, "no HDFS name node answers at 127.0.0.1")
		}
	})
	t.Run("configuration", func(t *testing.T) { testConfiguration(t, c) })
	t.Run("no data node", func(t *testing.T) {
		c.Kill(DataNode(0))
		path := c.URL("/late")
		began := time.Now()
		err := fs.WriteFile(path, []byte("x"))
		wantInput(t, err, path, "data node")
		t.Logf("given up after %.0f s", time.Since(began).Seconds())
		nothingBut(t, c.URL("/"), "closed", "file", "small")
	})
}

// testConfiguration finds the name node by HADOOP_CONF_DIR: as the default file system, and as one
// of two in a name service.
func testConfiguration(t *testing.T, c *Cluster) {
	t.Setenv("HADOOP_CONF_DIR", c.Conf())
	for _, path := range []string{"hdfs:///file", c.URL("/file")} {
		if got := get(t, path); string(got) != "x" {
			t.Errorf("%s: %q", path, got)
		}
	}
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := dead.Addr().String()
	dead.Close()
	dir := t.TempDir()
	if err := WriteConf(filepath.Join(dir, "core-site.xml"), map[string]string{"fs.defaultFS": "hdfs://${site}",
		"site": "prod"}); err != nil {
		t.Fatal(err)
	}
	if err := WriteConf(filepath.Join(dir, "hdfs-site.xml"), map[string]string{
		"dfs.nameservices": "prod", "dfs.ha.namenodes.prod": "nn1, nn2",
		"dfs.namenode.rpc-address.prod.nn1": gone,
		"dfs.namenode.rpc-address.prod.nn2": strings.TrimPrefix(strings.TrimSuffix(c.URL("/"), "/"),
			fs.Scheme)}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HADOOP_CONF_DIR", dir)
	for _, path := range []string{"hdfs:///file", "hdfs://prod/file"} {
		if got := get(t, path); string(got) != "x" {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got, err := fs.Expand(t.Context(), "hdfs:///f*"); err != nil || len(got) != 1 || got[0] != "hdfs:///file" {
		t.Errorf("%q, %v", got, err)
	}
}
