package human

import "strings"

// ShellWord quotes a word that a shell would take apart.
func ShellWord(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !plainInShell(r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func plainInShell(r rune) bool {
	return r > 0x7f || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_./=:,@%+", r)
}
