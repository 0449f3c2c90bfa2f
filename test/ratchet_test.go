package test

import (
	"bytes"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// These are the limits for the columns of a line, and of a comment after code.
const (
	maxColumns  = 120
	maxTrailing = 60
)

// ratchet is a habit that is being removed, and the number of times that it may still occur. The
// numbers only ever decrease: whoever mends some occurrences lowers the number.
type ratchet struct {
	what string
	most int
}

// ratchets lists the habits. Tests and production code count alike; generated code does not count.
var ratchets = []ratchet{
	{"lines of Go beyond 120 columns", 65},
	{"comments behind code beyond 60 columns", 0},
	{"file calls outside internal/fs", 0},
}

// fileCalls lists the functions of package os that access the disk.
var fileCalls = []string{"Create", "CreateTemp", "Link", "Lstat", "Mkdir", "MkdirAll", "MkdirTemp", "Open", "OpenFile",
	"ReadDir",
	"ReadFile", "Remove", "RemoveAll", "Rename", "Stat", "Symlink", "Truncate", "WriteFile"}

// callsFiles reports whether a package may call them directly: below the interface, in verbs and in
// code that is not part of the program.
func callsFiles(dir string) bool {
	return among([]string{"internal/fs/...", "cmd/...", "test/...", "internal/tools/..."}, dir)
}

func TestRatchets(t *testing.T) {
	var long, trailing, calls int
	for _, f := range sources(t) {
		if f.generated() {
			continue
		}
		text := read(t, f.name)
		lines := bytes.Split(text, []byte("\n"))
		for _, l := range lines {
			if utf8.RuneCount(l) > maxColumns {
				long++
			}
		}
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				at := f.set.Position(c.Pos())
				if len(bytes.TrimSpace(lines[at.Line-1][:at.Column-1])) > 0 && utf8.RuneCountInString(c.Text) > maxTrailing {
					trailing++
				}
			}
		}
		if callsFiles(f.dir) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && slices.Contains(fileCalls, selected(call.Fun, "os")) {
				calls++
			}
			return true
		})
	}
	for _, name := range tracked(t) { // tests, whose lines count too
		if path.Ext(name) != ".go" || !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for l := range bytes.SplitSeq(read(t, name), []byte("\n")) {
			if utf8.RuneCount(l) > maxColumns {
				long++
			}
		}
	}
	for i, n := range []int{long, trailing, calls} {
		if r := ratchets[i]; n > r.most {
			t.Errorf("%d %s, at most %d: mend what you added; the number only falls", n, r.what, r.most)
		} else if n < r.most {
			t.Logf("%d %s: lower the number in test/ratchet_test.go from %d", n, r.what, r.most)
		}
	}
}
