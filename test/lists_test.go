package test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "taxon/internal/methods/all"
	"taxon/worker/program"
)

var rewriteLists = flag.Bool("rewrite-lists", false, "write the lists in docs that the code declares")

// lists are the lists in docs that follow from declarations in the code. In the pages they stand
// between <!-- NAME ... --> and <!-- end of NAME -->.
var lists = []struct {
	name  string
	pages []string
	text  func() string
}{
	{"layouts", []string{"store/FORMAT.md"}, layoutTable},
}

// TestLists: pages have the lists that the code declares.
func TestLists(t *testing.T) {
	for _, l := range lists {
		for _, page := range l.pages {
			text := string(read(t, page))
			_, rest, _ := strings.Cut(text, "<!-- "+l.name)
			head, rest, ok := strings.Cut(rest, "-->")
			shown, _, closed := strings.Cut(rest, "<!-- end of "+l.name+" -->")
			if !ok || !closed || strings.Contains(head, "\n") {
				t.Errorf("%s has no list between <!-- %s --> and <!-- end of %[2]s -->", page, l.name)
				continue
			}
			if shown == l.text() {
				continue
			}
			if !*rewriteLists {
				t.Errorf("%s: its list of %s is not what the code declares: go test ./test -run Lists -rewrite-lists", page, l.name)
				continue
			}
			old := "<!-- " + l.name + head + "-->" + shown
			text = strings.Replace(text, old, "<!-- "+l.name+head+"-->"+l.text(), 1)
			if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rows is a table in Markdown, on lines of its own.
func rows(lines ...[]string) string {
	var b strings.Builder
	b.WriteString("\n")
	for n, cells := range lines {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if n == 0 {
			b.WriteString(strings.Repeat("| --- ", len(cells)) + "|\n")
		}
	}
	return b.String()
}

func layoutTable() string {
	lines := [][]string{{"method", "name", "written by", "holds", "format byte (hex)"}}
	for _, l := range program.Layouts() {
		var bytes []string
		for _, f := range l.Formats {
			bytes = append(bytes, fmt.Sprintf("%02x", f))
		}
		lines = append(lines, []string{l.Owner, l.Names, l.By, l.Holds, strings.Join(bytes, ", ")})
	}
	return rows(lines...)
}
