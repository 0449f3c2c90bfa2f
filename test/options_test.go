package test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// asFlag matches an option written as a flag of the command line.
var asFlag = regexp.MustCompile(`(^|[^-\w])--([A-Za-z]|%|$)`)

// starters may write flags, because they start processes or are a command themselves.
var starters = map[string]string{
	"internal/app/demo/gen/main.go":               "a command of its own, which the build runs",
	"internal/app/report/card.go":                 "the commands that a model card quotes",
	"internal/cluster/localcluster/state.go":      "arguments of a cluster's processes, and reading them back",
	"internal/cluster/localcluster/supervisor.go": "arguments of a cluster's processes",
	"internal/cluster/localcluster/up.go":         "arguments of the supervisor",
	"internal/hadoop/mapreduce/streaming.go":      "arguments of a map or reduce task",
	"internal/hadoop/yarn/command.go":             "arguments of Hadoop's yarn",
	"internal/hadoop/yarn/definition.go":          "the command of a container",
	"internal/hadoop/yarn/run.go":                 "arguments of a container's process",
	"internal/hadoop/yarn/up.go":                  "arguments of a container's process",
	"internal/ui/option/option.go":                "writes options as flags",
}

// speaksOfOptions reports whether a file must not write flags: all files except those of the
// command line and of tools.
func speaksOfOptions(f *file) bool {
	return !strings.HasPrefix(f.dir, "cmd/") && !strings.HasPrefix(f.dir, "deploy/") && !free(f.dir) && !f.generated()
}

func TestOptionsAreNotFlags(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if !speaksOfOptions(f) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(l.Value) // the parser has checked it
			if !asFlag.MatchString(text) {
				return true
			}
			if starters[f.name] == "" {
				t.Errorf("%s: %s: only the command line has flags: name an option as ‹cutoff› or ‹cutoff=0.5› (internal/ui/option)",
					f.at(l), l.Value)
			}
			used[f.name] = true
			return true
		})
	}
	for name := range starters {
		if !used[name] {
			t.Errorf("%s writes no flag: take it out of test/options_test.go", name)
		}
	}
}
