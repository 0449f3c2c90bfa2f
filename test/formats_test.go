package test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// formatName matches constants that tell a format of ours, and its version, from another.
var formatName = regexp.MustCompile(`(?i)(magic|version)$`)

// foreignFormats are the folders whose such constants are of other programs' formats.
var foreignFormats = []string{"internal/data/textio", "internal/data/table", "cmd/...", "internal/cluster/release",
	"proto/...", "test/...", "internal/hadoop/yarn"}

// TestFormatsNameTheirRelease: each version of a format stands in docs/formats.md with the release that first wrote it,
// so that a reader of a second version says for whom it is.
func TestFormatsNameTheirRelease(t *testing.T) {
	page := string(read(t, "docs/formats.md"))
	seen := 0
	for _, f := range sources(t) {
		if f.generated() || among(foreignFormats, f.dir) {
			continue
		}
		for _, d := range f.ast.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, s := range decl.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if !formatName.MatchString(name.Name) || i >= len(spec.Values) {
						continue
					}
					value, ok := spec.Values[i].(*ast.BasicLit)
					if !ok {
						continue
					}
					seen++
					row := fmt.Sprintf("| `%s` | `%s` | `%s` |", f.dir, name.Name, strings.Trim(value.Value, "`\""))
					if !regexp.MustCompile(regexp.QuoteMeta(row) + ` \d+\.\d+\.\d+ \|`).MatchString(page) {
						t.Errorf("%s: docs/formats.md lacks \"%s RELEASE |\": name the release that first wrote this version",
							f.at(name), row)
					}
				}
			}
		}
	}
	_, table, _ := strings.Cut(page, "### Versions")
	table, _, _ = strings.Cut(table, "\n## ")
	if rows := strings.Count(table, "\n| `"); seen != rows {
		t.Errorf("%d versions in the code, %d in docs/formats.md", seen, rows)
	}
}
