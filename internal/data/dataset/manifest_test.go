package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// sealed returns a file's manifest entry, computed independently of the code under test.
func sealed(t testing.TB, dir, name string) manifestItem {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return manifestItem{Name: name, Bytes: int64(len(b)), SHA256: hex.EncodeToString(sum[:])}
}
