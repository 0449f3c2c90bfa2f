package textio

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendName(t *testing.T) {
	for name, want := range map[string]string{
		"dog": "dog", "münchen/x-1<y>": "münchen/x-1<y>", "GO:1": `"GO:1"`, "#b": `"#b"`, "c#": `"c#"`,
		"a b": `"a b"`, "a,b": `"a,b"`, `"so"`: `"\"so\""`, "": `""`, "a\tb": `"a\tb"`, "<:": `"<:"`,
	} {
		if got := string(AppendName([]byte("x "), name)); got != "x "+want {
			t.Errorf("%q is written %s, want %s", name, got, want)
		}
	}
}

// FuzzName checks that every name is written in a form that reads back, even before a blank.
func FuzzName(f *testing.F) {
	for _, name := range []string{"dog", "#b", `a "b" c`, "\x01\u2028\n", `\`, "\"", "\u007f"} {
		f.Add(name, "\t# x")
	}
	f.Fuzz(func(t *testing.T, name, behind string) {
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return // no file that is read contains it
		}
		written := AppendName(nil, name)
		if strings.ContainsAny(string(written), "\n\r") {
			t.Fatalf("%q is written over several lines", name)
		}
		for _, rest := range []string{"", " " + behind, "\t" + behind} {
			got, left, err := CutName(append(written[:len(written):len(written)], rest...))
			if err != nil || string(got) != name || string(left) != rest {
				t.Fatalf("%q reads back as %q, %q, %v", name, got, left, err)
			}
		}
		got, left, err := CutLabel(AppendNames(nil, name, name))
		if err != nil || string(got) != name || len(left) == 0 || left[0] != ',' {
			t.Fatalf("%q twice reads back as %q, %q, %v", name, got, left, err)
		}
		if field := Field(name); FromField(field) != name || strings.ContainsAny(field, "\t\n\r\x00") {
			t.Fatalf("%q as a field is %q, and reads back as %q", name, field, FromField(field))
		}
	})
}
