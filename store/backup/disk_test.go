package backup

import (
	"testing"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
	"taxon/store"
)

// TestSnapshotOnAnyDisk fails every call to the disk while a snapshot is written, and crashes after it: the
// old snapshot is there or the new one, whole.
func TestSnapshotOnAnyDisk(t *testing.T) {
	src := cluster(t, 1)
	fill(t, src, values("a", 6))
	snapshot := func(n uint32) func(disk vfs.FS) error {
		return func(disk vfs.FS) error {
			dir, err := fs.CreateDirOn(disk, "/snapshots/a", true)
			if err != nil {
				return err
			}
			_, err = Write(t.Context(), localDir{dir}, src, Spec{Job: "a", Keep: func(k store.Key) bool { return k.Task < n },
				Extra: []Extra{{Name: "state", Data: []byte{byte(n)}}}})
			return err
		}
	}
	vfstest.Publishes(t, "/snapshots/a", fs.MarkName, snapshot(2), snapshot(100))
}
