// Package command builds the taxon command for tests that run it as a process. It also holds a
// contract that several of them check.
package command

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Build builds cmd/taxon into the folder, with further flags of the go command, and returns the
// binary's path. The go command does not know that a test depends on the built binary, and would
// return a cached test result after a change. So Build lists the repository's code folders: the go
// command records the folders that a test lists, and reruns the test when a file there has changed.
// `go run` caches its binaries, so only the first package links the command.
func Build(dir string, flags ...string) (string, error) {
	at, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	root := strings.TrimSpace(string(at))
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); path != root && (name == "testdata" || strings.HasPrefix(name, ".")) ||
			path == filepath.Join(root, "test") {
			return fs.SkipDir
		}
		_, err = os.ReadDir(path)
		return err
	})
	if err != nil {
		return "", err
	}
	// there are many small processes, which spend a quarter of their time on garbage collection
	if os.Getenv("GOGC") == "" {
		if err := os.Setenv("GOGC", "800"); err != nil {
			return "", err
		}
	}
	bin := filepath.Join(dir, "taxon")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	args := slices.Concat([]string{"run", "-exec=cp"}, flags, []string{"taxon/cmd/taxon", bin})
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
}

// ReportKeys returns the keys of the report of every method with a duality gap, in their documented
// order.
func ReportKeys() []string {
	return strings.Fields("method loss C bias schedule seed instances features nonzeros nodes terminals sweeps " +
		"objective dual gap " +
		"certificate stopped_by seconds cpu_seconds peak_rss_bytes weights_sha256")
}
