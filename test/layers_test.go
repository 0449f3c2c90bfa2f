package test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewriteLayers = flag.Bool("rewrite-layers", false, "write the picture of the layers in docs/architecture.md anew")

// A layer is a set of packages. Imports go within a layer or downwards, never up.
type layer struct {
	name     string
	packages []string // a name that ends in /* stands for all packages directly below
}

// layers are the architecture from top to bottom.
var layers = []layer{
	{"command line", []string{"cmd/taxon"}},
	{"what verbs call", []string{"internal/train", "internal/tune", "internal/mapreduce/driver", "internal/report", "internal/runs", "internal/serve"}},
	{"clusters, engines", []string{"internal/engine", "internal/mapreduce", "internal/yarn", "internal/cluster", "internal/cluster/*", "internal/jobs", "internal/inspect", "internal/planinfo"}},
	{"runtime", []string{"coordinator", "worker", "store/storerpc", "store/backup", "internal/metrics", "internal/secure"}},
	{"state machine", []string{"coordinator/machine", "coordinator/machine/*"}},
	{"registries", []string{"coordinator/method/registry", "worker/program/registry"}},
	{"methods", []string{"coordinator/method/*", "worker/program/*"}},
	{"seam", []string{"coordinator/method", "worker/program", "worker/codec", "internal/jobspec"}},
	{"maths", []string{"mapper", "mapper/*", "reducer"}},
	{"store", []string{"store", "store/memory", "store/badger", "store/segment", "store/storetest"}},
	{"data, models", []string{"internal/dataset", "internal/taxonomy", "internal/model", "internal/model/modeltest", "internal/export", "internal/eval", "internal/calibration", "internal/labelset", "internal/learntree", "internal/generate", "internal/demo", "internal/demo/gen", "internal/evaluate", "internal/check", "internal/explain", "internal/predict"}},
	{"leaves", []string{"proto/taxon/v1", "coordinator/journal", "internal/coupling", "internal/sparse", "internal/treematrix", "internal/fs", "internal/fs/hdfs", "internal/lines", "internal/table", "internal/modelform", "internal/human", "internal/release", "internal/exit", "internal/pause", "internal/tell", "internal/console"}},
}

// layerOf is the number of a package's layer, 0 at the top. A package that a layer names
// belongs there; else it belongs where its parent's /* stands. ok is false where none does.
func layerOf(dir string) (n int, ok bool) {
	for _, name := range []string{dir, dir[:max(strings.LastIndex(dir, "/"), 0)] + "/*"} {
		if n := slices.IndexFunc(layers, func(l layer) bool { return slices.Contains(l.packages, name) }); n >= 0 {
			return n, true
		}
	}
	return 0, false
}

func TestNoImportRunsUpwards(t *testing.T) {
	used := map[int]bool{}
	for _, f := range sources(t) {
		if f.dir == "test" || strings.HasPrefix(f.dir, "test/") {
			continue // tests stand above everything
		}
		from, ok := layerOf(f.dir)
		if !ok {
			t.Errorf("%s: package %s is in no layer: add it to test/layers_test.go", f.name, f.dir)
			continue
		}
		used[from] = true
		for _, p := range f.paths() {
			ours, isOurs := strings.CutPrefix(p, "taxon/")
			if !isOurs {
				continue
			}
			if to, ok := layerOf(ours); ok && to < from {
				t.Errorf("%s: %s (%s) imports %s (%s): imports go downwards only", f.name, f.dir, layers[from].name, ours, layers[to].name)
			}
		}
	}
	for i, l := range layers {
		if !used[i] {
			t.Errorf("layer %q has no package: take it out of test/layers_test.go", l.name)
		}
	}
}

// picture draws the layers, a box each, with the packages that lie in them.
func picture() string {
	const wide, name = 116, 17
	var b strings.Builder
	rule := "    +" + strings.Repeat("-", name+2) + "+" + strings.Repeat("-", wide-name-9) + "+\n"
	b.WriteString(rule)
	for _, l := range layers {
		title, line := l.name, ""
		flush := func() {
			fmt.Fprintf(&b, "    | %-*s | %-*s |\n", name, title, wide-name-11, line)
			title, line = "", ""
		}
		for _, p := range l.packages {
			if line != "" && len(line)+2+len(p) > wide-name-11 {
				flush()
			}
			if line != "" {
				line += "  "
			}
			line += p
		}
		flush()
		b.WriteString(rule)
	}
	return b.String()
}

// TestPictureOfLayers: the page shows the layers that the rule above holds.
func TestPictureOfLayers(t *testing.T) {
	const page, open, end = "docs/architecture.md", "<!-- layers: go test ./test -run PictureOfLayers -rewrite-layers -->\n\n", "\n<!-- end of layers -->"
	text := string(read(t, page))
	before, rest, ok := strings.Cut(text, open)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no picture of the layers between %q and %q", page, open, end)
	}
	if shown == picture() {
		return
	}
	if !*rewriteLayers {
		t.Fatalf("%s shows other layers than test/layers_test.go has: go test ./test -run PictureOfLayers -rewrite-layers", page)
	}
	if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), []byte(before+open+picture()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
