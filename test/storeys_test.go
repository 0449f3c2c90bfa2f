package test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewriteStoreys = flag.Bool("rewrite-storeys", false, "write the picture of the storeys in "+
	"docs/architecture.md anew")

// picture draws the storeys as boxes with their packages.
func picture() string {
	const wide, name = 116, 17
	var b strings.Builder
	rule := "    +" + strings.Repeat("-", name+2) + "+" + strings.Repeat("-", wide-name-9) + "+\n"
	b.WriteString(rule)
	for _, l := range storeys {
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

// TestPictureOfStoreys checks that the page shows the storeys of the rule above.
func TestPictureOfStoreys(t *testing.T) {
	const page, open, end = "docs/architecture.md", "<!-- storeys: go test ./test -run PictureOfStoreys " +
		"-rewrite-storeys -->\n\n", "\n<!-- end of storeys -->"
	text := string(read(t, page))
	before, rest, ok := strings.Cut(text, open)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no picture of the storeys between %q and %q", page, open, end)
	}
	if shown == picture() {
		return
	}
	if !*rewriteStoreys {
		t.Fatalf("%s shows other storeys than test/storeys_test.go has: go test ./test -run "+
			"PictureOfStoreys -rewrite-storeys", page)
	}
	if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), []byte(before+open+picture()+end+after),
		0o644); err != nil {
		t.Fatal(err)
	}
}
