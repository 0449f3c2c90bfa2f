package hadoop

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strings"
	"testing"
	"time"

	"taxon/internal/fs"
)

// startCluster returns a running HDFS, or skips the test: always without TAXON_HADOOP, and never
// with TAXON_HADOOP=required.
func startCluster(t *testing.T, o Options) *Cluster {
	t.Helper()
	mode := os.Getenv("TAXON_HADOOP")
	if mode == "" {
		t.Skip("skipped: set TAXON_HADOOP=1 to run it against real Hadoop (make hadoop-short)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	lib, err := Install(ctx)
	if errors.Is(err, ErrMissing) && mode != "required" {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(ctx, lib, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

// admin runs one of Hadoop's own administration commands.
func (c *Cluster) admin(t *testing.T, args ...string) string {
	t.Helper()
	class := "org.apache.hadoop.fs.FsShell"
	switch strings.TrimLeft(args[0], "-") {
	case "safemode", "setSpaceQuota", "clrSpaceQuota", "report":
		class = "org.apache.hadoop.hdfs.tools.DFSAdmin"
	}
	out, err := c.Run(t.Context(), class, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// superuser returns the user with all permissions: the one that runs the name node.
func superuser(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// wantInput checks that err is an input error, on one line, that contains want and names the path.
func wantInput(t *testing.T, err error, path, want string) {
	t.Helper()
	if !fs.IsInput(err) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v; want an input error that begins with %s and says %q", err, path, want)
	}
}

// nothingBut checks that a folder holds exactly these names.
func nothingBut(t *testing.T, dir string, want ...string) {
	t.Helper()
	names, err := fs.ReadDirNames(dir)
	if err != nil || strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q (%v)", dir, names, want, err)
	}
}
