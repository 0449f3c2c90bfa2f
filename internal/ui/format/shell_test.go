package format

import "testing"

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{"demo/test.txt": "demo/test.txt", "": "''", "a b": "'a b'",
		"it's": `'it'\''s'`} {
		if got := ShellWord(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
