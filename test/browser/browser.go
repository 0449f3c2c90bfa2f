// Package browser finds the browser for tests of web pages.
package browser

import (
	"os"
	"os/exec"
	"testing"
)

// Path returns the path of Chromium. Without it the test is skipped, or fails if TAXON_CHROMIUM is
// required, as in CI.
func Path(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	switch {
	case err == nil:
	case os.Getenv("TAXON_CHROMIUM") == "required":
		t.Fatal(err)
	default:
		t.Skip("this test opens a page in Chromium, which is not installed here (CI requires it): " + err.Error())
	}
	return path
}

// Profile returns a folder for --user-data-dir. It is not t.TempDir: Chromium's processes still
// write there after the first one has ended, and a folder that cannot be removed would fail the
// test.
func Profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "taxon-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
