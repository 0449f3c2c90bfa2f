package secure

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"taxon/internal/fs/vfs"
)

// minTokenBytes excludes guessable words from token files. `taxon certs token` makes 43 characters
// from 32 random bytes.
const minTokenBytes = 16

// hashPrefix marks a token of which a server knows only the SHA-256.
const hashPrefix = "sha256:"

// tokenEntry is one line of a token file.
type tokenEntry struct {
	// role is empty in a client's file.
	role Role
	hash [sha256.Size]byte
	// plain is empty if the file has only the hash.
	plain string
}

// parseTokens reads a token file. A line is `role token` or `token`, `#` begins a comment, and a
// token may be sha256:HEX. Errors name lines, never their content.
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
				// The word may be a token in the wrong place, so do not show it.
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

// set parses a token.
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
		return fmt.Errorf("the token has %d characters, at least %d are needed: make one with `taxon certs token`", len(word),
			minTokenBytes)
	}
	for _, c := range []byte(word) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("the token has characters beyond printable ASCII")
		}
	}
	e.plain, e.hash = word, sha256.Sum256([]byte(word))
	return nil
}

// serverTokens reads a file in which every line must have a role. A line without a role gets the
// role own, or is refused if own is empty.
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

// clientToken returns the token for calls: the only one of the file, or the token for role.
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
		// After a renewal there is a second line, with only a hash.
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

// lookUp returns the roles of a token. It compares all hashes, each in constant time.
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

// tokenCaller names a token in lists and logs, without anything that a thief could use.
func tokenCaller(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "token:" + hex.EncodeToString(sum[:4])
}

const (
	// tokenEnding is the ending of a caller's file, ROLE.token. serverEnding is the ending of a
	// server's file, which has the hashes of all tokens, and only its own in plain. So the file of
	// a store gives a thief no more than the store's role.
	tokenEnding  = ".token"
	serverEnding = ".tokens"
	// previousEnding is the ending of the file with the hash of the token before the last renewal.
	previousEnding = ".token.previous"
)

// servers are the roles whose processes check tokens. A worker does so for its metrics.
var servers = []Role{Coordinator, Store, Worker}

// TokenFiles is a file that MakeTokens wrote or found.
type TokenFiles struct {
	Role Role
	Path string
	// Made is false if an existing token was kept.
	Made bool
}

// MakeTokens makes a token for each wanted role that has none in the folder. With renew it makes a
// new one for each wanted role. Then it writes the servers' files with all tokens. A replaced token
// is accepted until the next renewal, so that callers can be changed one after the other. It
// returns the callers' files and the servers'.
func MakeTokens(dir string, wanted []Role, renew bool) (callers []TokenFiles, serverFiles []string, err error) {
	if err := vfs.MkdirAll(vfs.OS, dir, 0o700); err != nil {
		return nil, nil, err
	}
	for _, role := range wanted {
		f, err := makeToken(dir, role, renew)
		if err != nil {
			return nil, nil, err
		}
		callers = append(callers, f)
	}
	for _, server := range servers {
		text, err := serverFile(dir, server)
		if err != nil {
			return nil, nil, err
		}
		path := filepath.Join(dir, string(server)+serverEnding)
		if err := writeFile(path, text, 0o600); err != nil {
			return nil, nil, err
		}
		serverFiles = append(serverFiles, path)
	}
	return callers, serverFiles, nil
}

// makeToken makes the token of one role.
func makeToken(dir string, role Role, renew bool) (TokenFiles, error) {
	f := TokenFiles{Role: role, Path: filepath.Join(dir, string(role)+tokenEnding)}
	old, err := clientToken(f.Path, "")
	switch {
	case err == nil && !renew:
		return f, nil
	case err == nil:
		if err := writeFile(filepath.Join(dir, string(role)+previousEnding), []byte(hashed(old)+"\n"), 0o600); err != nil {
			return f, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return f, err
	}
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return f, err
	}
	f.Made = true
	return f, writeFile(f.Path, []byte(base64.RawURLEncoding.EncodeToString(b)+"\n"), 0o600)
}

// hashed returns the form of a token that a server's file holds.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// serverFile returns the text of one server's file.
func serverFile(dir string, server Role) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# made by `taxon certs token`: a role and its token or hash a line\n")
	for _, role := range roles {
		token, err := clientToken(filepath.Join(dir, string(role)+tokenEnding), "")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if role != server {
			token = hashed(token)
		}
		fmt.Fprintf(&b, "%s %s\n", role, token)
		previous, err := readFile(filepath.Join(dir, string(role)+previousEnding), true)
		if err == nil {
			fmt.Fprintf(&b, "%s %s # until the next renewal\n", role, strings.TrimSpace(string(previous)))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}
