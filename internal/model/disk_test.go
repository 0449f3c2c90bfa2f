package model_test

import (
	"testing"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
	"taxon/internal/model"
	"taxon/internal/model/modeltest"
)

// TestModelOnAnyDisk fails every call to the disk while a model is written, and crashes after it: the old
// model is there or the new one, whole.
func TestModelOnAnyDisk(t *testing.T) {
	write := func(trace []model.TraceRow) func(disk vfs.FS) error {
		return func(disk vfs.FS) error {
			out, err := fs.CreateDirOn(disk, "/models/m", true)
			if err != nil {
				return err
			}
			w := model.WriterTo(out, modeltest.TinyMeta())
			defer w.Abort()
			w.ShardBytes = 100 // several shards
			for n, x := range modeltest.TinyWeights() {
				if err := w.WriteNode(n, x.Columns, x.Values); err != nil {
					return err
				}
			}
			_, err = w.Close(modeltest.TinyReport(), trace)
			return err
		}
	}
	vfstest.Publishes(t, "/models/m", fs.MarkName, write(nil), write(modeltest.TinyTrace()))
}
