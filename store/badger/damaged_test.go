package badger

import (
	"errors"
	"strings"
	"testing"

	"taxon/store"
)

// Damage that keeps a shard from starting is told in the store's own words. (Badger leaves
// goroutines behind when it does not open, so its own words stand in for damaged files.)
func TestDamagedFiles(t *testing.T) {
	for text, damaged := range map[string]bool{
		"Error for the KEY ID 3: Invalid datakey id":                       true,
		"while opening key registry: reading sanity text. err: EOF":        true,
		"cannot open MANIFEST: open /x/MANIFEST: permission denied":        false,
		"open /x/000001.sst: too many open files":                          false,
		"while opening memtables: file does not exist in manifest\n stack": true,
	} {
		err := unreadable(errors.New(text))
		if errors.Is(err, store.ErrCorrupt) != damaged || strings.Contains(err.Error(), "put the folder back") != damaged ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
