package hadoop

import (
	"testing"

	"taxon/internal/fs"
)

// TestPaths is about paths that are easily got wrong: patterns over closed folders, folders of
// parts, other spellings, places that are taken or missing.
func TestPaths(t *testing.T) {
	c := startCluster(t, Options{DataNodes: 1, Replication: 1})
	t.Run("closed folder", func(t *testing.T) { testClosedFolder(t, c) })
}

// testClosedFolder: what a pattern may not look into is told, not left out.
func testClosedFolder(t *testing.T, c *Cluster) {
	for _, name := range []string{"/glob/wf/part-0", "/glob/wft/part-0", "/glob/wft/part-1", "/glob/xf"} {
		path := c.URL(name)
		if err := fs.MkdirAll(fs.Dir(path)); err != nil {
			t.Fatal(err)
		}
		put(t, path, []byte("x\n"))
	}
	c.admin(t, "-chmod", "700", "/glob/wf")
	bob := asUser(c, "bob")
	path := bob + "/glob/w*/part-*"
	_, err := fs.Expand(t.Context(), path)
	wantInput(t, err, path, "the folder /glob/wf may not be listed")
	if got, err := fs.Expand(t.Context(), bob+"/glob/wft*/part-*"); err != nil || len(got) != 2 {
		t.Errorf("a pattern that leaves it out: %q, %v", got, err)
	}
	if got, err := fs.Expand(t.Context(), bob+"/glob/*/*1"); err == nil {
		t.Errorf("listed %q", got)
	}
	if got, err := fs.Expand(t.Context(), c.URL("/glob/*/part-*")); err != nil || len(got) != 3 {
		t.Errorf("its owner: %q, %v", got, err)
	}
}

// asUser is the root of the cluster's file system as another user sees it.
func asUser(c *Cluster, name string) string {
	return fs.Scheme + name + "@" + c.URL("")[len(fs.Scheme):]
}
