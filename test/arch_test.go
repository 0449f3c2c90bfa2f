// Package test checks properties of the whole repository: the rules of the architecture in this
// file, and those of the repository in house_test.go. Tests of a single package stay with that
// package.
package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the repository, seen from this folder.
const root = ".."

// storey is a set of packages. A package imports packages of its own storey and of lower storeys,
// never of a higher one.
type storey struct {
	name     string
	packages []string // patterns: see covers
}

// storeys lists the storeys from top to bottom. A new package needs no entry: it belongs to the
// storey of its folder.
var storeys = []storey{
	{"command line", []string{"cmd/..."}},
	{"Hadoop", []string{"internal/hadoop/..."}},
	{"what verbs call", []string{"internal/app/..."}},
	{"cluster", []string{"internal/cluster/..."}},
	{"methods", []string{"internal/methods/..."}},
	{"runtime", []string{"coordinator", "coordinator/footprint", "coordinator/machine", "worker", "store/storerpc",
		"store/backup"}},
	{"seam to methods", []string{"coordinator/method/...", "worker/program", "worker/codec", "internal/jobspec"}},
	{"maths", []string{"mapper", "reducer"}},
	{"store", []string{"store/..."}},
	{"models", []string{"internal/model/..."}},
	{"data", []string{"internal/data/..."}},
	{"foundations", []string{"proto/...", "coordinator/journal", "internal/fs/...", "internal/linalg/...",
		"internal/ui/...", "internal/retry"}},
	{"disk", []string{"internal/fs/vfs/..."}},
}

// walls lists the packages that a package may not import although they are lower, and the reason.
var walls = []struct {
	from, not []string
	why       string
}{
	{[]string{"cmd/..."}, []string{"coordinator", "coordinator/machine", "worker", "store/...", "internal/app/engine"},
		"verbs parse, call and print: internal/app and internal/cluster do the work"},
	{append([]string{"coordinator"}, machines...),
		[]string{"mapper", "reducer", "worker/...", "store/...", "internal/methods/*/program", "internal/methods/*/solver",
			"internal/data/dataset", "internal/model", "internal/model/scoring", "internal/model/pruning",
			"internal/model/shard", "internal/fs/..."},
		"the coordinator's half of a method decides by sums: vectors and files are the worker's"},
	{maths,
		[]string{"proto/...", "coordinator/...", "worker/...", "store/...", "internal/data/...", "internal/model/...",
			"internal/fs/...", "internal/ui/...", "internal/retry", "internal/jobspec", "internal/methods/*/plan",
			"internal/methods/*/program"},
		"maths works on slices, the method's program reads and writes"},
	{[]string{"coordinator/...", "worker/...", "store/...", "internal/cluster/...", "internal/app/...",
		"internal/hadoop/..."}, []string{"internal/methods/*/..."},
		"methods register themselves: look them up"},
}

// covers reports whether a pattern matches a package. A pattern is the package's name, in which *
// matches any one element, and a final /... matches the package and all below it.
func covers(pattern, dir string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(dir, "/")
	for i, w := range want {
		if w == "..." {
			return true
		}
		if i >= len(got) || w != "*" && w != got[i] {
			return false
		}
	}
	return len(want) == len(got)
}

// among reports whether one of the patterns matches a package.
func among(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, dir) })
}

// storeyOf returns the number of a package's storey, 0 at the top: the one with the longest pattern
// that matches. ok is false if none does.
func storeyOf(dir string) (n int, ok bool) {
	longest := 0
	for i, s := range storeys {
		for _, p := range s.packages {
			if covers(p, dir) && 1+len(strings.TrimSuffix(p, "/...")) > longest {
				n, ok, longest = i, true, 1+len(strings.TrimSuffix(p, "/..."))
			}
		}
	}
	return n, ok
}

// thirdParty lists, for each module, the packages that may import it: each stays behind one of our
// packages. The rule applies to cmd and test as well.
var thirdParty = map[string][]string{
	"google.golang.org/grpc": {"proto/taxon/v1", "store/storerpc", "coordinator", "worker", "internal/cluster",
		"internal/cluster/client", "internal/cluster/node", "internal/cluster/page", "internal/cluster/jobs",
		"internal/app/engine", "internal/cluster/secure", "internal/cluster/metrics",
		"internal/app/serve"},
	"google.golang.org/protobuf": {"proto/taxon/v1", "internal/cluster/jobs", "internal/app/serve", "store/storerpc",
		"coordinator/machine", "internal/hadoop/mapreduce", "internal/app/train", "internal/app/tune"},
	"google.golang.org/genproto":          {"internal/app/serve", "store/storerpc"},
	"github.com/dgraph-io/badger/v4":      {"store/badger"},
	"github.com/cespare/xxhash/v2":        {"store/storerpc"},
	"github.com/colinmarc/hdfs/v2":        {"internal/fs/hdfs"},
	"github.com/jcmturner/gokrb5/v8":      {"internal/fs/hdfs"},
	"github.com/klauspost/compress":       {"internal/fs", "worker"},
	"github.com/parquet-go/parquet-go":    {"internal/model/export", "internal/model/predict", "internal/data/table"},
	"github.com/apache/arrow-go":          {"internal/data/table"},
	"github.com/google/flatbuffers":       {"internal/data/table"},
	"github.com/pierrec/lz4/v4":           {"internal/data/table"},
	"github.com/ulikunitz/xz":             {"internal/fs"},
	"github.com/prometheus":               {"internal/cluster/metrics"},
	"github.com/go-json-experiment":       {"internal/app/serve"},
	"github.com/spf13/cobra":              {"cmd/taxon"},
	"go.yaml.in/yaml/v4":                  {"cmd/taxon"},
	"github.com/spf13/pflag":              {"internal/cluster/secure", "internal/cluster/metrics", "cmd/taxon"},
	"maragu.dev/gomponents":               {"internal/app/report"},
	"golang.org/x/net":                    {"internal/cluster/secure"},
	"golang.org/x/term":                   {"internal/ui/console", "cmd/taxon"},
	"gonum.org/v1/plot":                   {"test/bench/versus", "test/papers"},
	"golang.org/x/text":                   {"internal/data/lint", "internal/data/text"},
	"github.com/clipperhouse/uax29/v2":    {"internal/data/text"},
	"github.com/blevesearch/snowballstem": {"internal/data/text"},
	"golang.org/x/sync": {"internal/cluster", "internal/cluster/node", "internal/data/dataset",
		"internal/app/engine", "internal/data/generate", "internal/model/...", "internal/hadoop/mapreduce",
		"internal/app/tune", "store/backup", "store/storerpc", "worker"},
	"golang.org/x/time": {"internal/app/serve"},
	"golang.org/x/sys": {"internal/cluster/localcluster", "internal/fs",
		"internal/fs/vfs", "internal/model", "internal/linalg/sparse", "internal/app/train", "mapper",
		"internal/methods/hblr/solver", "reducer", "worker/program"},
}

// maths lists the packages that compute, and machines those that decide. Both must give the same
// output for the same input.
var (
	maths    = []string{"mapper", "reducer", "internal/methods/*/solver", "internal/methods/td/ridge"}
	machines = []string{"coordinator/machine", "coordinator/footprint", "coordinator/method/...",
		"internal/methods/*/plan", "internal/methods/blockwise"}
)

// pureStd lists the packages of the standard library that the maths may import: no network, clock,
// file or log.
var pureStd = []string{"cmp", "container/heap", "context", "errors", "fmt", "math", "math/bits", "math/rand/v2",
	"slices", "sort", "unsafe"}

// machineStd lists the foreign packages that the state machine and the methods may import. They
// exclude random numbers, because a seed is a field of a job.
var machineStd = []string{"bytes", "cmp", "container/heap", "encoding/json", "errors", "fmt", "maps", "math",
	"math/bits", "reflect", "slices", "sort", "strconv", "strings",
	"google.golang.org/protobuf/proto"}

// loggers lists the packages that may log: the processes, and the packages that set up their logs.
var loggers = []string{"cmd/taxon", "internal/cluster", "internal/cluster/node", "internal/cluster/metrics"}

// panics lists the functions that may panic, and the reason why no input can cause it.
var panics = map[string]string{
	"internal/fs/fault.go":                    "passes on what it recovered and did not cause",
	"internal/data/hiercluster/vectors.go":    "passes on what a goroutine of its own recovered",
	"internal/app/serve/http.go":              "http.ErrAbortHandler, which is how net/http has an answer that broke off",
	"coordinator/method/registry/registry.go": "two methods of one name, which every start of the program finds",
	"internal/model/form/form.go":             "two predictors of one name, which every start of the program finds",
	"worker/program/program.go":               "two methods of one name, which every start of the program finds",
	"worker/program/layouts.go":               "two layouts of one first byte, which every start of the program finds",
	"coordinator/method/method.go":            "encoding a struct of our own numbers and strings to JSON",
	"coordinator/machine/snapshot.go":         "encoding a struct of our own numbers and strings to JSON",
	"internal/data/table/arrow_bound.go":      "an allocator of Arrow's can't return an error; caught makes it one",
	"test/machinetest/toy.go":                 "reading parameters that the machine under test has just encoded",
	"test/sim/worker.go":                      "reading parameters that the simulated coordinator has just encoded",
}

// file is a parsed Go file that is not a test.
type file struct {
	name string // slash path from the repository's root
	dir  string
	ast  *ast.File
	set  *token.FileSet
}

func (f *file) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)
}

// paths returns the file's imports.
func (f *file) paths() []string {
	var out []string
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser has checked it
		out = append(out, p)
	}
	return out
}

// generated reports whether a tool wrote the file.
func (f *file) generated() bool { return ast.IsGenerated(f.ast) }

// sources parses the Go files of this module that are not tests.
func sources(t *testing.T) []*file {
	t.Helper()
	var out []*file
	for _, name := range tracked(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/tools/") {
			continue
		}
		f := &file{name: name, dir: path.Dir(name), set: token.NewFileSet()}
		var err error
		f.ast, err = parser.ParseFile(f.set, filepath.Join(root, filepath.FromSlash(name)), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	if len(out) < 100 {
		t.Fatalf("found %d Go files: is %s the repository?", len(out), root)
	}
	return out
}

// tracked lists the repository's files as slash paths from its root, without those that .gitignore
// excludes and git's own.
func tracked(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (slices.Contains([]string{".git", "bin", "dist"}, d.Name()) ||
			strings.HasSuffix(d.Name(), ".part")) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && path.Ext(p) != ".test" && path.Ext(p) != ".prof" && d.Name() != ".git" {
			name, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			out = append(out, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// free reports whether a package may import all of our packages.
func free(dir string) bool {
	return dir == "test" || strings.HasPrefix(dir, "test/")
}

func TestImportsRunDownwards(t *testing.T) {
	used := map[int]bool{}
	for _, f := range sources(t) {
		if free(f.dir) {
			continue
		}
		from, ok := storeyOf(f.dir)
		if !ok {
			t.Errorf("%s: folder %s belongs to no storey: put it below one of them (test/arch_test.go)", f.name, f.dir)
			continue
		}
		used[from] = true
		for _, p := range f.paths() {
			ours, isOurs := strings.CutPrefix(p, "taxon/")
			if !isOurs {
				continue
			}
			if to, ok := storeyOf(ours); ok && to < from {
				t.Errorf("%s: %s (%s) imports %s (%s): imports run downwards", f.name, f.dir, storeys[from].name, ours,
					storeys[to].name)
			}
			for _, w := range walls {
				if among(w.from, f.dir) && among(w.not, ours) {
					t.Errorf("%s: %s may not import %s: %s", f.name, f.dir, ours, w.why)
				}
			}
		}
	}
	for i, s := range storeys {
		if !used[i] {
			t.Errorf("storey %q has no package: take it out of test/arch_test.go", s.name)
		}
	}
}

// maxEntries bounds the number of folders in internal. Each is a domain, and a reader should be
// able to remember them.
const maxEntries = 12

func TestFewEntries(t *testing.T) {
	entries := map[string]bool{}
	for _, name := range tracked(t) {
		if rest, ok := strings.CutPrefix(name, "internal/"); ok {
			entry, _, _ := strings.Cut(rest, "/")
			entries[entry] = true
		}
	}
	if len(entries) > maxEntries {
		t.Errorf("internal has %d entries, at most %d: %v", len(entries), maxEntries, slices.Sorted(maps.Keys(entries)))
	}
}

func TestThirdPartyStaysBehindItsPackage(t *testing.T) {
	for _, f := range sources(t) {
		for _, p := range f.paths() {
			if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") {
				continue
			}
			module := ""
			for m := range thirdParty {
				if p == m || strings.HasPrefix(p, m+"/") {
					module = m
				}
			}
			if module == "" {
				t.Errorf("%s: %s is a new dependency: add it to the table of third-party imports, with the one "+
					"package it stays behind", f.name, p)
			} else if !among(thirdParty[module], f.dir) {
				t.Errorf("%s: only %v may import %s", f.name, thirdParty[module], module)
			}
		}
	}
}

func TestMathsIsPure(t *testing.T) {
	seen := 0
	for _, f := range sources(t) {
		if !among(maths, f.dir) {
			continue
		}
		seen++
		for _, p := range f.paths() {
			if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") && first != "taxon" && !slices.Contains(pureStd,
				p) {
				t.Errorf("%s: imports %s: solvers are maths on slices, let the method's program do it", f.name, p)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d files of maths: where are they?", seen)
	}
}

func TestStateMachineIsPure(t *testing.T) {
	pure := map[string]bool{}
	for _, f := range sources(t) {
		if !among(machines, f.dir) {
			continue
		}
		pure[f.dir] = true
		for _, p := range f.paths() {
			if !strings.HasPrefix(p, "taxon/") && !slices.Contains(machineStd, p) {
				t.Errorf("%s: imports %s: time comes in as now, effects go out as actions (coordinator/effects.go executes them)",
					f.name, p)
			}
		}
	}
	if !pure["coordinator/machine"] || !pure["coordinator/method"] || !pure["internal/methods/rr/plan"] {
		t.Errorf("the pure packages are %v: where is the state machine?", pure)
	}
}

// selected returns the X of qualifier.X, or "" for any other node.
func selected(n ast.Node, qualifier string) string {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := s.X.(*ast.Ident); ok && id.Name == qualifier && id.Obj == nil {
		return s.Sel.Name
	}
	return ""
}

func TestNoGlobalRandomnessNoLog(t *testing.T) {
	for _, f := range sources(t) {
		for _, p := range f.paths() {
			switch p {
			case "log", "log/slog":
				if p == "log/slog" && slices.Contains(loggers, f.dir) {
					continue
				}
				t.Errorf("%s: imports %s: return an error, or take a func(error)", f.name, p)
			case "math/rand":
				t.Errorf("%s: imports math/rand: use math/rand/v2 with a seed that comes in", f.name)
			}
		}
		if !slices.Contains(f.paths(), "math/rand/v2") { // ids, tokens and keys come from crypto/rand
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			name := selected(n, "rand")
			if name != "" && !strings.HasPrefix(name, "New") && !slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8",
				"Zipf"}, name) {
				t.Errorf("%s: rand.%s draws from the global source: use a seeded one", f.at(n), name)
			}
			return true
		})
	}
}

func TestOnlyMainExits(t *testing.T) {
	for _, f := range sources(t) {
		if f.generated() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if selected(n, "os") == "Exit" && (f.ast.Name.Name != "main" || path.Base(f.name) != "main.go") {
				t.Errorf("%s: os.Exit: return an error, main.go exits", f.at(n))
			}
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" && panics[f.name] == "" {
					t.Errorf("%s: panic: return an error, or give the reason in the table of panics", f.at(n))
				}
			}
			return true
		})
	}
}

func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range sources(t) {
		documented[f.dir] = documented[f.dir] || f.ast.Doc.Text() != ""
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment: what it is for, its paper, its callers' duties", dir)
		}
	}
}

// TestRaceCoversConcurrency keeps the Makefile's list of packages that run under the
// race detector complete.
func TestRaceCoversConcurrency(t *testing.T) {
	covered := makeList(t, "RACE")
	for _, f := range sources(t) {
		if free(f.dir) || f.generated() {
			continue
		}
		concurrent := slices.Contains(f.paths(), "golang.org/x/sync/errgroup")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				concurrent = true
			}
			return true
		})
		if concurrent && !slices.ContainsFunc(covered, func(c string) bool {
			below, all := strings.CutSuffix(c, "/...")
			return c == f.dir || all && (f.dir == below || strings.HasPrefix(f.dir, below+"/"))
		}) {
			t.Errorf("%s starts goroutines: add ./%s to RACE in the Makefile", f.name, f.dir)
		}
	}
}
