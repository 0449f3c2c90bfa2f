package dataset

import (
	"context"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
)

// TestIngestOnAnyDisk lets each call to the disk fail while a data set is replaced, and crashes the
// disk afterwards. The folder then holds either the old data set or the new one, complete.
func TestIngestOnAnyDisk(t *testing.T) {
	ingested := func(lines string) func(disk vfs.FS) error {
		return func(disk vfs.FS) error {
			dir, err := fs.CreateDirOn(disk, "/sets/s", true)
			if err != nil {
				return err
			}
			defer dir.Abort()
			o := Options{Paths: []string{"-"}, FS: fs.Local{In: strings.NewReader(lines)}, Out: "/sets/s", MemoryBytes: 1 << 20,
				Threads: 1}
			_, err = ingest(context.Background(), o.withDefaults(), dir)
			return err
		}
	}
	vfstest.Publishes(t, "/sets/s", fs.MarkName, ingested("a 1:1 2:3\nb 2:1\n"), ingested("a,b 1:1 3:2\nc 2:1\nb 1:2\n"))
}
