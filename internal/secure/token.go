package secure

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
)

// minTokenBytes keeps guessable words out of token files; `taxon certs token` makes 43
// characters from 32 random bytes.
const minTokenBytes = 16

// hashPrefix marks a token of which a server knows the SHA-256 only.
const hashPrefix = "sha256:"

// tokenEntry is one line of a token file.
type tokenEntry struct {
	role  Role // "" in a client's file
	hash  [sha256.Size]byte
	plain string // "" where the file has the hash only
}

// parseTokens reads a token file: `role token` or `token` a line; `#` opens a comment;
// token may be sha256:HEX. Errors name lines, never what is in them.
func parseTokens(path string, data []byte) ([]tokenEntry, error) {
	var out []tokenEntry
	for i, line := range bytes.Split(data, []byte("\n")) {
		at := fmt.Sprintf("%s:%d", path, i+1)
		text, _, _ := strings.Cut(string(line), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if len(words) > 2 {
			return nil, fmt.Errorf("%s: %d words: a line is `role token`, or one token", at, len(words))
		}
		var e tokenEntry
		if len(words) == 2 {
			role, err := ParseRole(words[0])
			if err != nil {
				// The word may be a token that stands in the wrong place.
				return nil, fmt.Errorf("%s: the first word is no role: there are %s", at, strings.Join(Roles(), ", "))
			}
			e.role = role
		}
		if err := e.set(words[len(words)-1]); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no token in it: make one with `taxon certs token`", path)
	}
	return out, nil
}

func (e *tokenEntry) set(word string) error {
	if digits, ok := strings.CutPrefix(word, hashPrefix); ok {
		sum, err := hex.DecodeString(digits)
		if err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("%s is followed by 64 hexadecimal digits", hashPrefix)
		}
		copy(e.hash[:], sum)
		return nil
	}
	if len(word) < minTokenBytes {
		return fmt.Errorf("the token has %d characters, at least %d are needed: make one with `taxon certs token`", len(word), minTokenBytes)
	}
	for _, c := range []byte(word) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("the token has characters beyond printable ASCII")
		}
	}
	e.plain, e.hash = word, sha256.Sum256([]byte(word))
	return nil
}

// serverTokens reads a file whose every line names a role. A line without one is refused,
// or counts as own, if that is given.
func serverTokens(path string, own Role) ([]tokenEntry, error) {
	data, err := readFile(path, true)
	if err != nil {
		return nil, err
	}
	entries, err := parseTokens(path, data)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if entries[i].role != "" {
			continue
		}
		if own == "" {
			return nil, fmt.Errorf("%s: a server's lines are `role token`, with a role of %s", path, strings.Join(Roles(), ", "))
		}
		entries[i].role = own
	}
	return entries, nil
}

// clientToken reads the token to call with: the file's only one, or that of role.
func clientToken(path string, role Role) (string, error) {
	data, err := readFile(path, true)
	if err != nil {
		return "", err
	}
	entries, err := parseTokens(path, data)
	if err != nil {
		return "", err
	}
	var mine *tokenEntry
	for i := range entries {
		e := &entries[i]
		// A renewal leaves a second line, of which only the hash is there.
		if (role != "" && e.role == role || len(entries) == 1) && (mine == nil || mine.plain == "") {
			mine = e
		}
	}
	switch {
	case mine == nil && role == "":
		return "", fmt.Errorf("%s: %d tokens: a client's file has one", path, len(entries))
	case mine == nil:
		return "", fmt.Errorf("%s: no line for role %s, which this process calls others as", path, role)
	case mine.plain == "":
		return "", fmt.Errorf("%s: only the hash of the token is there: a client needs the token", path)
	}
	return mine.plain, nil
}

// lookUp finds the roles of a token. Hashes are compared in constant time, and all of
// them always.
func lookUp(entries []tokenEntry, token string) []Role {
	sum := sha256.Sum256([]byte(token))
	var out []Role
	for i := range entries {
		if subtle.ConstantTimeCompare(entries[i].hash[:], sum[:]) == 1 {
			out = append(out, entries[i].role)
		}
	}
	return out
}
