package taxonomy

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// edges formats a structure as "a>b a>c".
func edges(s *Structure) string {
	var e []string
	for i, p := range s.Parents {
		e = append(e, s.Names[p]+">"+s.Names[s.Children[i]])
	}
	return strings.Join(e, " ")
}

func TestRead(t *testing.T) {
	cases := []struct{ name, text, want, warn string }{
		{"plain", "a b\na c\n", "a>b a>c", ""},
		{"no last newline", "a b\na c", "a>b a>c", ""},
		{"mark, CRLF, tabs, runs of blanks", "\xef\xbb\xbf a \t b\r\n\r\n\ta\tc  \r\n", "a>b a>c", ""},
		{"comments", "# top\na b # why\n  # more\na c#1\n", "a>b a>c#1", ""},
		{"repeats", "a b\na c\na b\na b\n", "a>b a>c", "f: repeated edges dropped: 2 (the first in line 3)"},
		{"names of any text", "münchen 日本\nα:β x=y\n", "münchen>日本 α:β>x=y", ""},
		{"two parents", "a c\nb c\n", "a>c b>c", ""},
		{"names as JSON strings", "\"a\" \"#b\" # why\n\t\"#b\"\tc\n#c d\n\"\\\"q\\\"\" \"\\u00fc\\\\\"\r\na c\"d\"\n",
			`a>#b #b>c "q">ü\ a>c"d"`, ""},
		{"quoted names of any text", "\"a b\" \"c,d\"\n\"c,d\"\t\"e\\n\"\n", "a b>c,d c,d>e\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, warnings, err := Read(iotest.OneByteReader(strings.NewReader(c.text)), "f")
			if err != nil {
				t.Fatal(err)
			}
			if edges(s) != c.want {
				t.Errorf("got %q, want %q", edges(s), c.want)
			}
			if got := strings.Join(warnings, "; "); got != c.warn {
				t.Errorf("warnings %q, want %q", got, c.warn)
			}
		})
	}
}

// TestReadTree checks that the error for a second parent names its line.
func TestReadTree(t *testing.T) {
	for text, want := range map[string]string{
		"r a\n# why\nq a\nr q\n": `f:3: "a" has a second parent, "q", after "r" in line 1`,
		"a b\nb a\n":             "f:2: cycle",
		"r a\nr a\nr b\n":        "",
	} {
		s, _, err := ReadTree(strings.NewReader(text), "f")
		if want == "" && (err != nil || edges(s) != "r>a r>b") || want != "" &&
			(!fs.IsInput(err) || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	long := strings.Repeat("x", 100)
	cases := []struct{ name, text, want string }{
		{"nothing", "", "f: empty structure"},
		{"comments only", "# a b\n\n", "f: empty structure"},
		{"one name", "a b\nc\n", "f:2: 1 name where two are expected"},
		{"three names", "a b\n\na b c\n", "f:3: 3 names where two"},
		{"self-loop", "a b\nb b\n", `f:2: self-loop: "b"`},
		{"comment for a child", "a b\na #b\n", "f:2: 1 name where two are expected"},
		{"quote that is not closed", "a \"b\n", "f:1: a name that begins with a quote must be a JSON string"},
		{"quote in a name", "a \"b\"c\n", "f:1: a name that begins with a quote"},
		{"broken escape", "a \"b\\x\"\n", "f:1: a name that begins with a quote"},
		{"empty name", "a b\n\"\" c\n", `f:2: a name is empty`},
		{"non-breaking control", "a b\x01c\n", `f:1: the name "b\x01c": one with a blank`},
		{"comma", "a b,c\n", `f:1: comma in the name "b,c"`},
		{"comma in a long name", "a b," + long + "\n", `..."`},
		{"NUL", "a b\na \x00\n", "f:2: NUL byte"},
		{"UTF-16", "\xff\xfea\x00", "f:1: the file is UTF-16: "},
		{"UTF-16 without a mark", "a\x00 \x00b\x00\n\x00", "f:1: the file is UTF-16 without a byte order mark"},
		{"latin-1", "a b\na \xe9t\xe9\n", "f:2: bytes that are not UTF-8"},
		{"old line ends", "a b\rc d\r", "f:1: carriage return"},
		{"cycle", "r a\na b\nb c\nc a\n", "f:4: cycle: a -> b -> c -> a: "},
		{"cycle that a later line closes first", "c a\na b\n\nb c\nc d\n", "f:4: cycle: c -> a -> b -> c"},
		{"cycle of two", "a b\nb a\n", "f:2: cycle: "},
		{"cycle beyond a second parent", "r x\nx a\na b\nb a\nb t\n", "f:4: cycle: a -> b -> a"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := Read(strings.NewReader(c.text), "f")
			var input *fs.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want an input error with %q", err, c.want)
			}
			if strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("not one line: %q", err)
			}
		})
	}
}

func TestReadLongCycleIsShortened(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "n%d n%d\n", i, (i+1)%1000)
	}
	_, _, err := Read(strings.NewReader(b.String()), "f")
	if err == nil || !strings.Contains(err.Error(), "... (1000 nodes in all)") || len(err.Error()) > 300 {
		t.Errorf("got %v", err)
	}
}

func TestReadPassesFailuresOn(t *testing.T) {
	broken := errors.New("disk fell off")
	_, _, err := Read(io.MultiReader(strings.NewReader("a b\n"), iotest.ErrReader(broken)), "f")
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "f:2: ") {
		t.Errorf("got %v", err)
	}
	inner := &fs.InputError{Path: "f.gz", Msg: "truncated"}
	_, _, err = Read(iotest.ErrReader(inner), "f")
	if !errors.Is(err, error(inner)) || err.Error() != "f.gz: truncated" {
		t.Errorf("got %v", err)
	}
}

// TestAsksForGraph checks that errors about edges that only a graph can have suggest the option for
// graphs.
func TestAsksForGraph(t *testing.T) {
	for _, in := range []string{"a b\nb a\n", "a b\nb c\nc a\n", "a b\nb b\n"} {
		if _, _, err := Read(strings.NewReader(in), "f"); err == nil || !strings.Contains(err.Error(), "‹graph") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestFirstParent(t *testing.T) {
	s := mustRead(t, "r a\nr b\na c\nb c\nd c\n")
	if !s.IsDAG() {
		t.Fatal("two parents not seen")
	}
	f := s.FirstParent()
	if f.IsDAG() || edges(f) != "r>a r>b a>c" || !slices.Equal(f.Names, s.Names) {
		t.Errorf("got %s", edges(f))
	}
	if edges(s) != "r>a r>b a>c b>c d>c" {
		t.Error("the original was changed")
	}
}

// FuzzRead checks that a structure that was read passes Check, has edges, and is the same when its
// edges are read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte("a b\na c # x\n"))
	f.Add([]byte("\xef\xbb\xbfa b\r\nb a\n"))
	f.Add([]byte("a a\n"))
	f.Add([]byte("\"#a\" b # c\n\tb \"\\\"c\\u00e9\"\n"))
	f.Add([]byte("\xef\xbb\xbf\xef\xbb\xbf>a b\n")) // was read as a name by an earlier version
	f.Add([]byte(" \ufeff 0"))                      // likewise
	f.Add([]byte("\xff\xfea\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := Read(strings.NewReader(string(data)), "f")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for i, p := range s.Parents {
			fmt.Fprintf(&b, "%s %s\n", textio.AppendName(nil, s.Names[p]), textio.AppendName(nil, s.Names[s.Children[i]]))
		}
		again, _, err := Read(strings.NewReader(b.String()), "f")
		if err != nil || edges(again) != edges(s) {
			t.Fatalf("read %q, back %v %v", edges(s), again, err)
		}
		if _, _, err := Build(s.FirstParent(), s.Names, ones(len(s.Names)), PruneNone); err != nil {
			t.Fatal(err)
		}
	})
}

func ones(n int) []int {
	c := make([]int, n)
	for i := range c {
		c[i] = 1
	}
	return c
}
