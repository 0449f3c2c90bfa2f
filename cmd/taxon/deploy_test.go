package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"taxon/internal/ui/console"
)

// variable is what an orchestrator or a shell puts a value in for.
var variable = regexp.MustCompile(`\$\([A-Z_]+\)|\$\{[A-Za-z_]+\}|%[a-zA-Z]`)

// parses sees to it that a command line of a process has flags of its verb only, with
// values that they take, and all that it needs.
func parses(t *testing.T, file string, words []string) {
	t.Helper()
	for i := range words {
		words[i] = variable.ReplaceAllString(words[i], "1")
	}
	root := newRootCmd(&app{ui: console.New(&bytes.Buffer{})}, verbs())
	cmd, rest, err := root.Find(words)
	if err != nil || cmd == root {
		t.Errorf("%s: %q names no verb: %v", file, words, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: %s: %v", file, cmd.Name(), flagError(cmd, err))
		return
	}
	if err := checkRequired(cmd); err != nil {
		t.Errorf("%s: %v", file, err)
	}
}

// TestDeployedCommandLines: what is under deploy/ starts the processes by flags that they
// have.
func TestDeployedCommandLines(t *testing.T) {
	deploy := filepath.Join("..", "..", "deploy")
	found := 0
	args := regexp.MustCompile(`(?m)^ +args:\n((?: +- .*\n)+)`)
	exec := regexp.MustCompile(`(?m)^ExecStart=\S*/taxon (.*)$`)
	verbLine := regexp.MustCompile(`\btaxon (certs token|certs|submit|jobs|status|logs|cancel|restore|export)\b([^|>\n]*(?:\\\n[^|>\n]*)*)`)
	process := regexp.MustCompile(`(?m)^\t+(coordinator|store|worker) (--.*)$`)
	flagName := regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)
	files, err := filepath.Glob(filepath.Join(deploy, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob(filepath.Join(deploy, "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, deeper...)
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() { // a tool's cache, gone since
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(file) {
		case ".yaml":
			for _, m := range args.FindAllSubmatch(text, -1) {
				found++
				var words []string
				for line := range strings.Lines(string(m[1])) {
					words = append(words, strings.TrimPrefix(strings.TrimSpace(line), "- "))
				}
				parses(t, file, words)
			}
		case ".service":
			for _, m := range exec.FindAllSubmatch(text, -1) {
				found++
				line, _, _ := strings.Cut(string(m[1]), " $TAXON_OPTIONS")
				parses(t, file, strings.Fields(line))
			}
		case ".sh", ".sbatch":
			root := newRootCmd(&app{ui: console.New(&bytes.Buffer{})}, verbs())
			for _, m := range append(verbLine.FindAllStringSubmatch(string(text), -1),
				process.FindAllStringSubmatch(string(text), -1)...) {
				found++
				cmd, _, err := root.Find(strings.Fields(m[1]))
				if err != nil {
					t.Errorf("%s: %v", file, err)
					continue
				}
				for _, f := range flagName.FindAllStringSubmatch(m[2], -1) {
					if cmd.Flags().Lookup(f[1]) == nil && root.PersistentFlags().Lookup(f[1]) == nil {
						t.Errorf("%s: %s has no flag --%s", file, m[1], f[1])
					}
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("found %d command lines only", found)
	}
}
