package text

import "testing"

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(0), "0"},
		{Number(999), "999"},
		{Number(1000), "1,000"},
		{Number(-1234567), "-1,234,567"},
		{Counted(1, "root", "roots"), "1 root"},
		{Counted(2000, "root", "roots"), "2,000 roots"},
		{Bytes(1023), "1023B"},
		{Bytes(512 << 20), "512MiB"},
		{Bytes(1 << 30), "1GiB"},
		{Bytes(5<<30 + 1<<29), "5.5GiB"},
		{Quoted("a"), "a"},
		{Quoted(""), `""`},
		{Quoted("a b"), `"a b"`},
		{Line("a\tb\r\n  c\x1b[2J\n"), "a b; c?[2J"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
