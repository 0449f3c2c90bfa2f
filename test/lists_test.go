package test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	_ "taxon/internal/methods/all"
	"taxon/internal/model/export"
	"taxon/internal/model/measure"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
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
	{"methods", []string{"docs/methods.md"}, methodTable},
	{"probabilities", []string{"docs/serve.md", "docs/python.md", "docs/methods/predictions.md"},
		func() string { return namesOf(func(t method.Traits) bool { return t.Form.Probable() }) }},
	{"products", []string{"docs/python.md"},
		func() string {
			return namesOf(func(t method.Traits) bool { return t.Form.Probable() && t.Form.Draws == 0 && !t.Form.ByPath() })
		}},
	{"exports", []string{"docs/formats.md"}, exportTable},
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

// traitsOf are a method's with the defaults of its options.
func traitsOf(m method.Method) method.Traits { return m.Traits(&taxonv1.Options{Method: m.Name()}) }

// namesOf lists the methods with such traits.
func namesOf(have func(method.Traits) bool) string {
	var names []string
	for _, m := range registry.All() {
		if have(traitsOf(m)) {
			names = append(names, "`"+m.Name()+"`")
		}
	}
	return strings.Join(names, ", ")
}

// methodTable says what methods take, found by asking each, and what they give.
func methodTable() string {
	lines := [][]string{{"method", "uses a hierarchy"}}
	for _, k := range methodtest.Kinds {
		lines[0] = append(lines[0], k.Name)
	}
	lines[0] = append(lines[0], "probabilities", "sets of paths", "`tune` tries it")
	mark := map[bool]string{true: "yes"}
	for _, m := range registry.All() {
		t := traitsOf(m)
		line := []string{"`" + m.Name() + "`", mark[!t.Unstructured]}
		for _, k := range methodtest.Kinds {
			spec := methodtest.Of(m)
			k.Change(spec)
			_, err := registry.Prepare(spec)
			line = append(line, mark[err == nil])
		}
		lines = append(lines, append(line, mark[t.Form.Probable()], mark[t.Form.Sets()], mark[t.Searched]))
	}
	return rows(lines...)
}

func exportTable() string {
	lines := [][]string{{"format", "holds", "opens in"}}
	for _, f := range export.Formats() {
		lines = append(lines, []string{"`" + f.Name + "`", option.Flags(f.Holds), f.Opens})
	}
	return rows(lines...)
}

// TestMeasuresAreDocumented: the page on measures says of every key what it means.
func TestMeasuresAreDocumented(t *testing.T) {
	const page = "docs/methods/predictions.md"
	text := string(read(t, page))
	for _, m := range measure.Measures() {
		family, _, _ := strings.Cut(m.Key, "unif") // some stand as a family
		family = strings.TrimSuffix(strings.TrimSuffix(family, "sibl"), "subtree")
		if !strings.Contains(text, "`"+m.Key+"`") && !strings.Contains(text, "`"+family+"*`") {
			t.Errorf("%s: %s is not explained", page, m.Key)
		}
	}
}
