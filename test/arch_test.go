// Package test holds what is checked about the whole: the architecture's rules here,
// the repository's in house_test.go. Tests of one package stay with that package.
package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the repository, seen from this folder.
const root = ".."

// imports says which of our packages a package may import. Leaves import nothing of
// ours; the maths knows no machine; the coordinator knows neither maths nor Badger; the
// methods' programs tie maths, data and store together, and the worker runs them. cmd/taxon
// parses, calls and prints: it has what verbs call, and knows neither coordinator, worker,
// engine nor store. Everything below test may import all.
var imports = map[string][]string{
	"cmd/taxon": {"coordinator/method", "coordinator/method/registry", "internal/check", "internal/cluster", "internal/cluster/client", "internal/cluster/node",
		"internal/cluster/page", "internal/cluster/supervise", "internal/console", "internal/dataset", "internal/demo", "internal/eval", "internal/evaluate", "internal/exit",
		"internal/explain", "internal/export", "internal/fs", "internal/generate", "internal/human", "internal/inspect", "internal/jobs", "internal/jobspec",
		"internal/mapreduce", "internal/mapreduce/driver", "internal/model", "internal/planinfo", "internal/metrics", "internal/predict", "internal/release", "internal/report", "internal/runs", "internal/secure", "internal/serve", "internal/table", "internal/tell",
		"internal/train", "internal/tune", "internal/yarn", "mapper", "proto/taxon/v1", "worker/program"},

	"proto/taxon/v1": {},
	"mapper":         {"internal/coupling", "internal/sparse"},
	"mapper/corrmnl": {"mapper/hblr"},
	"mapper/hblr":    {"internal/sparse"},
	"mapper/hm3":     {"mapper"},
	"mapper/msvm":    {"internal/treematrix", "mapper"},
	"mapper/ridge":   {"internal/sparse", "mapper"},
	"reducer":        {"internal/coupling", "internal/sparse"},

	"internal/treematrix": {},

	"internal/coupling":    {},
	"internal/sparse":      {},
	"internal/exit":        {},
	"internal/human":       {},
	"internal/pause":       {},
	"internal/tell":        {},
	"internal/fs":          {"internal/fs/hdfs"},
	"internal/fs/hdfs":     {"internal/pause"},
	"internal/demo":        {"internal/console", "internal/dataset", "internal/eval", "internal/exit", "internal/fs", "internal/human", "internal/model", "internal/predict", "internal/taxonomy", "internal/tell"},
	"internal/console":     {"internal/human", "internal/tell"},
	"internal/demo/gen":    {"internal/lines"},
	"internal/lines":       {"internal/fs"},
	"internal/taxonomy":    {"internal/fs", "internal/lines"},
	"internal/table":       {"internal/fs", "internal/human", "internal/lines"},
	"internal/dataset":     {"internal/fs", "internal/lines", "internal/sparse", "internal/table"},
	"internal/eval":        {"internal/fs", "internal/human", "internal/lines", "internal/taxonomy"},
	"internal/report":      {"coordinator/method/registry", "internal/eval", "internal/evaluate", "internal/explain", "internal/fs", "internal/human", "internal/model", "internal/predict", "internal/taxonomy", "internal/tell"},
	"internal/runs":        {"coordinator/method/registry", "internal/exit", "internal/fs", "internal/model"},
	"internal/serve":       {"internal/dataset", "internal/exit", "internal/explain", "internal/fs", "internal/human", "internal/metrics", "internal/model", "internal/predict", "internal/secure", "internal/table", "proto/taxon/v1"},
	"internal/calibration": {},
	"internal/labelset":    {},
	"internal/model":       {"internal/calibration", "internal/fs", "internal/labelset", "internal/lines", "internal/modelform", "internal/sparse", "internal/table", "internal/taxonomy"},
	"internal/export":      {"internal/evaluate", "internal/exit", "internal/fs", "internal/human", "internal/model", "internal/modelform", "internal/predict", "internal/tell"},
	"internal/predict":     {"internal/dataset", "internal/exit", "internal/fs", "internal/human", "internal/labelset", "internal/lines", "internal/model", "internal/table", "internal/taxonomy", "internal/tell"},
	"internal/evaluate":    {"internal/dataset", "internal/eval", "internal/exit", "internal/fs", "internal/human", "internal/model", "internal/predict", "internal/taxonomy", "internal/table", "internal/tell"},
	"internal/check":       {"internal/dataset", "internal/fs", "internal/table", "internal/taxonomy", "internal/tell"},
	"internal/explain":     {"internal/exit", "internal/fs", "internal/human", "internal/model", "internal/predict", "internal/tell"},
	"internal/generate":    {"internal/fs", "internal/human"},
	"internal/inspect": {"coordinator/method", "coordinator/method/registry", "internal/dataset", "internal/exit", "internal/fs", "internal/generate", "internal/human", "internal/model",
		"internal/planinfo", "internal/taxonomy", "internal/tell", "proto/taxon/v1", "worker/program"},
	"internal/planinfo": {"coordinator/method", "coordinator/method/registry", "internal/generate", "proto/taxon/v1"},

	"internal/model/modeltest": {"internal/model", "internal/taxonomy"},
	"internal/modelform":       {},
	"internal/learntree":       {"internal/sparse"},

	"store":           {},
	"store/memory":    {"store"},
	"store/segment":   {"store"},
	"store/badger":    {"store", "store/segment"},
	"store/storetest": {"store"},
	"store/storerpc":  {"internal/pause", "store", "proto/taxon/v1"},
	"store/backup":    {"internal/fs", "store"},

	"internal/release": {},
	"internal/secure":  {"internal/human", "internal/release", "proto/taxon/v1"},
	"internal/metrics": {"internal/secure", "proto/taxon/v1", "store", "worker", "worker/program"},

	"internal/jobspec": {"internal/taxonomy", "proto/taxon/v1"},

	// The registries alone know the methods: nobody else may import what lies below them.
	"coordinator":         {"coordinator/journal", "coordinator/machine", "internal/pause", "proto/taxon/v1"},
	"coordinator/journal": {},
	"coordinator/machine": {"coordinator/method", "coordinator/method/registry", "internal/human", "internal/jobspec", "proto/taxon/v1"},
	"coordinator/method":  {"internal/human", "internal/modelform", "internal/taxonomy", "proto/taxon/v1"},
	"coordinator/method/registry": {"coordinator/method/corrmnl", "coordinator/method/hblr", "coordinator/method/hm3", "coordinator/method", "coordinator/method/mlr", "coordinator/method/msvm", "coordinator/method/recursive", "coordinator/method/td", "internal/jobspec", "internal/modelform",
		"internal/taxonomy", "proto/taxon/v1"},
	"coordinator/method/methodtest": {"proto/taxon/v1"},
	"coordinator/method/recursive":  {"internal/modelform", "coordinator/method", "internal/jobspec", "internal/taxonomy", "proto/taxon/v1"},
	"coordinator/method/corrmnl":    {"coordinator/method", "internal/modelform", "proto/taxon/v1"},
	"coordinator/method/hblr":       {"coordinator/method", "internal/modelform", "internal/taxonomy", "proto/taxon/v1"},
	"coordinator/method/mlr":        {"coordinator/method", "internal/modelform", "internal/taxonomy", "proto/taxon/v1"},
	"coordinator/method/hm3":        {"coordinator/method", "coordinator/method/whole", "internal/modelform", "internal/taxonomy", "proto/taxon/v1"},
	"coordinator/method/msvm":       {"coordinator/method", "coordinator/method/whole", "internal/modelform", "internal/taxonomy", "internal/treematrix", "proto/taxon/v1"},
	"coordinator/method/whole":      {"coordinator/method", "proto/taxon/v1"},
	"coordinator/method/td":         {"coordinator/method", "coordinator/method/recursive", "internal/jobspec", "internal/modelform", "internal/taxonomy", "proto/taxon/v1"},
	"worker": {"internal/pause", "internal/dataset", "internal/fs", "internal/jobspec", "internal/sparse", "proto/taxon/v1", "store",
		"worker/codec", "worker/program", "worker/program/registry"},
	"worker/codec":            {"internal/sparse"},
	"worker/program":          {"coordinator/method", "internal/dataset", "internal/taxonomy", "proto/taxon/v1", "store", "worker/codec"},
	"worker/program/registry": {"worker/program", "worker/program/corrmnl", "worker/program/hblr", "worker/program/hm3", "worker/program/mlr", "worker/program/msvm", "worker/program/recursive", "worker/program/td"},
	"worker/program/recursive": {"coordinator/method", "coordinator/method/recursive", "internal/coupling", "internal/dataset", "internal/jobspec", "internal/taxonomy",
		"mapper", "proto/taxon/v1", "reducer", "store", "worker/codec", "worker/program"},
	"worker/program/hblr": {"coordinator/method", "coordinator/method/hblr", "internal/dataset", "internal/modelform", "internal/taxonomy", "mapper", "mapper/hblr", "proto/taxon/v1",
		"store", "worker/codec", "worker/program"},
	"worker/program/corrmnl": {"coordinator/method", "coordinator/method/corrmnl", "internal/modelform", "mapper/corrmnl", "mapper/hblr", "proto/taxon/v1", "store", "worker/codec", "worker/program"},
	"worker/program/hm3":     {"coordinator/method", "coordinator/method/hm3", "coordinator/method/whole", "internal/taxonomy", "mapper", "mapper/hm3", "proto/taxon/v1", "store", "worker/codec", "worker/program"},
	"worker/program/mlr":     {"coordinator/method", "coordinator/method/mlr", "internal/dataset", "internal/sparse", "proto/taxon/v1", "store", "worker/codec", "worker/program"},
	"worker/program/msvm":    {"coordinator/method", "coordinator/method/msvm", "coordinator/method/whole", "mapper", "mapper/msvm", "proto/taxon/v1", "store", "worker/codec", "worker/program", "worker/program/below"},
	"worker/program/below":   {"internal/dataset", "internal/sparse", "internal/taxonomy"},
	"worker/program/td": {"coordinator/method", "coordinator/method/recursive", "coordinator/method/td", "internal/jobspec",
		"mapper", "mapper/ridge", "proto/taxon/v1", "store", "worker/program", "worker/program/below"},

	"internal/cluster": {"coordinator/machine", "coordinator/method/registry", "internal/human", "internal/pause", "internal/dataset", "internal/fs", "internal/jobspec", "internal/model", "internal/secure", "proto/taxon/v1",
		"store", "store/backup", "store/storerpc", "worker"},
	"internal/yarn": {"internal/inspect", "internal/cluster", "internal/cluster/client", "internal/fs", "internal/fs/hdfs", "internal/human", "internal/pause", "internal/planinfo", "internal/secure", "internal/tell"},
	"internal/jobs": {"coordinator/method", "coordinator/method/registry", "internal/human", "internal/model", "internal/pause", "proto/taxon/v1"},
	"internal/cluster/node": {"coordinator/method", "coordinator/journal", "coordinator/machine", "coordinator", "internal/cluster", "internal/cluster/client", "internal/cluster/folderjournal", "internal/cluster/page", "internal/dataset", "internal/exit", "internal/fs",
		"internal/human", "internal/jobs", "internal/metrics", "internal/pause", "internal/secure", "proto/taxon/v1", "store", "store/backup",
		"store/badger", "store/memory", "store/storerpc", "worker", "worker/program"},
	"internal/cluster/client": {"coordinator/machine", "internal/cluster", "internal/dataset", "internal/exit", "internal/fs", "internal/human", "internal/jobs",
		"internal/model", "internal/pause", "internal/secure", "internal/tell", "proto/taxon/v1", "store", "store/storerpc", "worker"},
	"internal/cluster/supervise":     {"internal/cluster", "internal/exit", "internal/fs", "internal/human", "internal/pause", "internal/tell"},
	"internal/cluster/folderjournal": {"coordinator/journal", "internal/fs"},
	"internal/cluster/page":          {"internal/jobs", "internal/metrics", "internal/secure", "proto/taxon/v1"},
	"internal/mapreduce": {"coordinator/method", "coordinator/machine", "coordinator/method/registry", "internal/dataset", "internal/engine", "internal/fs", "internal/pause", "internal/yarn", "proto/taxon/v1",
		"store", "worker", "worker/program"},
	"internal/mapreduce/driver": {"coordinator/machine", "internal/cluster/supervise", "internal/engine", "internal/exit", "internal/fs", "internal/human", "internal/jobs", "internal/mapreduce", "internal/model", "internal/pause", "internal/tell", "internal/train", "proto/taxon/v1"},
	"internal/engine": {"coordinator/machine", "coordinator", "internal/dataset", "internal/fs", "proto/taxon/v1", "store", "store/badger", "store/memory",
		"store/storerpc", "worker", "worker/program", "worker/program/registry"},
	"internal/tune": {"coordinator/machine", "coordinator/method", "coordinator/method/registry", "internal/dataset", "internal/engine", "internal/eval", "internal/exit", "internal/fs", "internal/human",
		"internal/jobs", "internal/jobspec", "internal/labelset", "internal/lines", "internal/model", "internal/modelform", "internal/planinfo", "internal/taxonomy", "internal/tell", "internal/train", "proto/taxon/v1"},
	"internal/train": {"coordinator/method", "coordinator/machine", "coordinator/method/registry", "internal/calibration", "internal/dataset", "internal/engine", "internal/eval", "internal/exit", "internal/fs", "internal/human",
		"internal/jobs", "internal/jobspec", "internal/labelset", "internal/learntree", "internal/model", "internal/modelform", "internal/predict", "internal/table", "internal/taxonomy", "internal/tell", "proto/taxon/v1", "worker", "worker/program"},
}

// thirdParty says who may import a module: each stays behind one of our packages. cmd
// and test are bound by it too.
var thirdParty = map[string][]string{
	"google.golang.org/grpc":           {"proto/taxon/v1", "store/storerpc", "coordinator", "worker", "internal/cluster", "internal/cluster/client", "internal/cluster/node", "internal/cluster/page", "internal/jobs", "internal/mapreduce/driver", "internal/engine", "internal/secure", "internal/metrics", "internal/serve"},
	"google.golang.org/protobuf":       {"proto/taxon/v1", "internal/jobs", "internal/serve", "store/storerpc", "coordinator/machine", "internal/mapreduce", "internal/train", "internal/tune"},
	"google.golang.org/genproto":       {"internal/serve", "store/storerpc"},
	"github.com/dgraph-io/badger/v4":   {"store/badger"},
	"github.com/cespare/xxhash/v2":     {"store/storerpc"},
	"github.com/colinmarc/hdfs/v2":     {"internal/fs/hdfs"},
	"github.com/jcmturner/gokrb5/v8":   {"internal/fs/hdfs"},
	"github.com/klauspost/compress":    {"internal/fs", "store/badger", "worker"},
	"github.com/parquet-go/parquet-go": {"internal/export", "internal/predict", "internal/table"},
	"github.com/apache/arrow-go":       {"internal/table"},
	"github.com/google/flatbuffers":    {"internal/table"},
	"github.com/pierrec/lz4/v4":        {"internal/table"},
	"github.com/ulikunitz/xz":          {"internal/fs"},
	"github.com/prometheus":            {"internal/metrics"},
	"github.com/go-json-experiment":    {"internal/serve"},
	"github.com/spf13/cobra":           {"cmd/taxon"},
	"github.com/spf13/pflag":           {"internal/secure", "internal/metrics", "cmd/taxon"},
	"golang.org/x/net":                 {"internal/secure"},
	"golang.org/x/term":                {"internal/console", "cmd/taxon"},
	"gonum.org/v1/plot":                {"internal/tune", "test/bench/versus", "test/papers"},
	"golang.org/x/text":                {"internal/check", "internal/dataset"},
	"golang.org/x/sync":                {"internal/cluster", "internal/cluster/node", "internal/dataset", "internal/engine", "internal/generate", "internal/export", "internal/mapreduce", "internal/model", "internal/tune", "store/backup", "store/storerpc", "worker"},
	"golang.org/x/time":                {"internal/serve"},
	"golang.org/x/sys":                 {"internal/cluster", "internal/cluster/supervise", "internal/fs", "internal/model", "internal/sparse", "internal/train", "mapper", "mapper/hblr", "reducer", "worker/program"},
}

// pureStd is all of the standard library that the maths may touch: no net, no clock, no
// file, no log.
var pureStd = []string{"cmp", "container/heap", "context", "errors", "fmt", "math", "math/bits", "math/rand/v2", "slices", "sort", "unsafe"}

// machineStd is all that the state machine and the methods may touch of what is not ours.
// They have no random numbers either: a seed is a field of a job.
var machineStd = []string{"bytes", "cmp", "container/heap", "encoding/json", "errors", "fmt", "maps", "math", "math/bits", "reflect", "slices", "sort", "strconv", "strings",
	"google.golang.org/protobuf/proto"}

// loggers may log: the processes, and what sets their logs up.
var loggers = []string{"cmd/taxon", "internal/cluster", "internal/cluster/node", "internal/metrics"}

// panics are the places that may panic, and why no input can make them.
var panics = map[string]string{
	"internal/fs/fault.go":            "passes on what it recovered and did not cause",
	"internal/learntree/vectors.go":   "passes on what a goroutine of its own recovered",
	"internal/serve/http.go":          "http.ErrAbortHandler, which is how net/http has an answer that broke off",
	"coordinator/method/method.go":    "encoding a struct of our own numbers and strings to JSON",
	"coordinator/machine/snapshot.go": "encoding a struct of our own numbers and strings to JSON",
	"internal/table/arrow_bound.go":   "an allocator of Arrow's can't return an error; caught makes it one",
	"test/machinetest/toy.go":         "reading parameters that the machine under test has just encoded",
	"test/sim/worker.go":              "reading parameters that the simulated coordinator has just encoded",
}

// file is one parsed Go file that is not a test.
type file struct {
	name string // slash path from the repository's root
	dir  string
	ast  *ast.File
	set  *token.FileSet
}

func (f *file) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)
}

// paths are the file's imports.
func (f *file) paths() []string {
	var out []string
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser has checked it
		out = append(out, p)
	}
	return out
}

// generated says whether a tool wrote the file.
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

// tracked lists the repository's files as slash paths from its root: all but what
// .gitignore names and git's own.
func tracked(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (d.Name() == ".git" || d.Name() == "bin" || strings.HasSuffix(d.Name(), ".part")) {
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

// free says whether a package may import all of ours.
func free(dir string) bool {
	return dir == "test" || strings.HasPrefix(dir, "test/")
}

func TestImportDirections(t *testing.T) {
	for _, f := range sources(t) {
		allowed, known := imports[f.dir]
		if !known && !free(f.dir) {
			t.Errorf("%s: package %s is not in the table of imports: say there what it may import", f.name, f.dir)
			continue
		}
		for _, p := range f.paths() {
			ours, ok := strings.CutPrefix(p, "taxon/")
			if ok && !free(f.dir) && !slices.Contains(allowed, ours) {
				t.Errorf("%s: %s may not import %s (docs/architecture.md, directions of imports)", f.name, f.dir, ours)
			}
		}
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
				t.Errorf("%s: %s is a new dependency: add it to the table of third-party imports, with the one package it stays behind", f.name, p)
			} else if !slices.Contains(thirdParty[module], f.dir) {
				t.Errorf("%s: only %v may import %s", f.name, thirdParty[module], module)
			}
		}
	}
}

func TestMathsIsPure(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sources(t) {
		top, below, _ := strings.Cut(f.dir, "/")
		if top != "mapper" && top != "reducer" {
			continue
		}
		seen[below] = true
		for _, p := range f.paths() {
			if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") && first != "taxon" && !slices.Contains(pureStd, p) {
				t.Errorf("%s: imports %s: mapper and reducer are maths on slices, let the worker do it", f.name, p)
			}
		}
	}
	if !seen[""] || !seen["hblr"] {
		t.Errorf("the packages below mapper and reducer are %v: where is the maths?", seen)
	}
}

func TestStateMachineIsPure(t *testing.T) {
	pure := map[string]bool{}
	for _, f := range sources(t) {
		if f.dir != "coordinator/machine" && !strings.HasPrefix(f.dir+"/", "coordinator/method/") {
			continue
		}
		pure[f.dir] = true
		for _, p := range f.paths() {
			if !strings.HasPrefix(p, "taxon/") && !slices.Contains(machineStd, p) {
				t.Errorf("%s: imports %s: time comes in as now, effects go out as actions (coordinator/effects.go executes them)", f.name, p)
			}
		}
	}
	if !pure["coordinator/machine"] || !pure["coordinator/method"] {
		t.Errorf("the pure packages are %v: where is the state machine?", pure)
	}
}

// selected is the X of qualifier.X; "" for anything else.
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
		if !slices.Contains(f.paths(), "math/rand/v2") { // ids, tokens and keys are drawn from crypto/rand
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			name := selected(n, "rand")
			if name != "" && !strings.HasPrefix(name, "New") && !slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8", "Zipf"}, name) {
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
