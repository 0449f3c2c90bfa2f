package secure

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files of tokens in a folder: ROLE.token is what callers of a role get. The servers'
// files hold the hashes of all tokens, and in plain only their own, so that the file of
// one store gives a thief no more than the store's role.
const (
	tokenEnding    = ".token"
	serverEnding   = ".tokens"
	previousEnding = ".token.previous" // hash of the token before the last renewal
)

// servers are the roles whose processes check tokens; a worker does for its metrics.
var servers = []Role{Coordinator, Store, Worker}

// TokenFiles is what MakeTokens wrote or found.
type TokenFiles struct {
	Role Role
	Path string
	Made bool // false: the token that was there is kept
}

// MakeTokens makes a token for each role that has none in the folder, or, with renew, new
// ones for the roles named; and then the servers' files of all tokens there. The token
// that a renewal replaces is accepted until the next one, so that callers can be changed
// over one after the other. It returns the callers' files and the servers'.
func MakeTokens(dir string, wanted []Role, renew bool) (callers []TokenFiles, serverFiles []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
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

// hashed is the form of a token that a server's file holds.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// serverFile is the text of one server's file.
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
