package badger

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// copyShard copies the folder of a shard that is open, as a crash would leave it. Badger
// makes and removes files in the background: a copy across such a moment, which no crash
// would leave, is made again.
func copyShard(t *testing.T, from, to string) {
	t.Helper()
	names := func() []string {
		list, err := filepath.Glob(filepath.Join(from, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for range 100 {
		before := names()
		err := os.CopyFS(to, os.DirFS(from))
		if err == nil && slices.Equal(before, names()) {
			return
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("%s does not come to rest", from)
}
