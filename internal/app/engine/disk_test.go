package engine

import (
	"io"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
)

// TestCheckpointOnAnyDisk fails every call to the disk while a checkpoint is written, and crashes after it:
// the old checkpoint is there or the new one, whole.
func TestCheckpointOnAnyDisk(t *testing.T) {
	write := func(sweep string) func(disk vfs.FS) error {
		return func(disk vfs.FS) error {
			out, err := fs.CreateDirOn(disk, "/jobs/checkpoint", true)
			if err != nil {
				return err
			}
			return writeCheckpoint(out, []byte("the state after "+sweep), 1.5, func(w io.Writer) error {
				for range 3 {
					if _, err := io.WriteString(w, "values of "+sweep); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	vfstest.Publishes(t, "/jobs/checkpoint", fs.MarkName, write("sweep 1"), write("sweep 2"))
}
