// Package command builds the taxon command for tests that run it as a process, and holds
// the contract that several of them check.
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

// Build builds cmd/taxon into the folder, by further flags of the go command, and returns the
// binary's path. The go command does not know that a test depends on what it builds, and would
// answer with a kept result after a change. So Build lists the repository's folders of code: the go
// command notes what a test has listed, and runs it again when a file there has changed. `go run`
// keeps what it links, so that one package links the command and the others copy it.
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
	// Their processes are many and small, and a quarter of what they take is the collector's.
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

// ReportKeys are the keys of a training's report that every method with a duality gap has,
// in the order of the contract.
func ReportKeys() []string {
	return strings.Fields("method loss C bias schedule seed instances features nonzeros nodes terminals sweeps " +
		"objective dual gap " +
		"certificate stopped_by seconds cpu_seconds peak_rss_bytes weights_sha256")
}
