package test

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// folders lists the folders at the top. Every other folder has its place below one of them.
var folders = []string{"proto", "coordinator", "worker", "mapper", "reducer", "store", "deploy", "cmd", "test",
	"internal", "docs", ".ci"}

// maxLines bounds the lines of a Go file. A longer file holds more than one topic.
const maxLines = 600

// longFiles lists files that may be longer, with their limits. The limits only ever decrease.
var longFiles = map[string]int{}

// cmdLines bounds the lines of cmd/taxon without its tests: verbs only parse, call and print.
const cmdLines = 7000

func TestVerbsAreThin(t *testing.T) {
	n := 0
	for _, f := range sources(t) {
		if f.dir == "cmd/taxon" {
			n += bytes.Count(read(t, f.name), []byte("\n"))
		}
	}
	if n > cmdLines {
		t.Errorf("cmd/taxon has %d lines, at most %d: put logic into a package that others can call and test", n, cmdLines)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTopLevelFolders(t *testing.T) {
	for _, name := range tracked(t) {
		if top, _, ok := strings.Cut(name, "/"); ok && !slices.Contains(folders, top) {
			t.Errorf("%s: no folder %s at the top: the frame is %v", name, top, folders)
		}
	}
}

func TestFileSizes(t *testing.T) {
	generated := map[string]bool{}
	for _, f := range sources(t) {
		generated[f.name] = ast.IsGenerated(f.ast)
	}
	for _, name := range tracked(t) {
		if path.Ext(name) != ".go" || generated[name] {
			continue
		}
		limit := max(maxLines, longFiles[name])
		if n := bytes.Count(read(t, name), []byte("\n")); n > limit {
			t.Errorf("%s has %d lines, at most %d: one algorithm a file", name, n, limit)
		}
	}
}

// banned lists words that must not be in committed text: paths of one machine, and promises instead
// of work. They are spelled so that this file does not contain them.
var banned = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(^|[^\w.~}])/(wor` + `k|roo` + `t)/`), "a path of one machine"},
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|HA` + `CK)\b`), "a promise: do it, or write an issue"},
}

func TestNoMachinePathsNoPromises(t *testing.T) {
	for _, name := range tracked(t) {
		text := read(t, name)
		if bytes.IndexByte(text[:min(len(text), 4096)], 0) >= 0 || path.Ext(name) == ".gz" || path.Ext(name) == ".sum" {
			continue
		}
		for number, line := range bytes.Split(text, []byte("\n")) {
			for _, b := range banned {
				if b.pattern.Match(line) {
					t.Errorf("%s:%d: %s: %s", name, number+1, b.why, bytes.TrimSpace(line))
				}
			}
		}
	}
}

// TestReadmeCommands checks the first shell block of the README, which a newcomer runs after
// cloning. .ci/run takes its test command from there.
func TestReadmeCommands(t *testing.T) {
	_, rest, ok := strings.Cut(string(read(t, "README.md")), "```sh\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("README.md has no shell block")
	}
	lines := strings.Split(strings.TrimSpace(block), "\n")
	want := []string{"go run ./cmd/taxon demo", "go test ./..."}
	for i, line := range lines {
		command, _, _ := strings.Cut(line, "#")
		lines[i] = strings.TrimSpace(command)
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the first shell block of README.md holds %q, not %q", lines, want)
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)
	target = regexp.MustCompile("`make ([a-z-]+)`|(?m:^make ([a-z-]+))")
)

func TestDocumentsPointAtWhatIsThere(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(read(t, "Makefile")), -1) {
		targets[m[1]] = true
	}
	for _, name := range tracked(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		text := string(read(t, name))
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(path.Dir(name), m[1])))); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			if verb := m[1] + m[2]; !targets[verb] {
				t.Errorf("%s names make %s, which the Makefile does not have", name, verb)
			}
		}
	}
}

// makeList returns a list variable of the Makefile, without the leading ./ of its entries.
func makeList(t *testing.T, name string) []string {
	t.Helper()
	text := strings.ReplaceAll(string(read(t, "Makefile")), "\\\n", " ")
	m := regexp.MustCompile(`(?m)^` + name + ` *:= *(.*)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the Makefile has no list %s", name)
	}
	var out []string
	for _, p := range strings.Fields(m[1]) {
		out = append(out, strings.TrimPrefix(p, "./"))
	}
	return out
}
