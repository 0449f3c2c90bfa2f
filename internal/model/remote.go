package model

import (
	"context"

	"taxon/internal/fs"
)

// Open verifies and maps the model in dir: the manifest's own checksum, then size and
// SHA-256 of every file, then that their content is sound. An error names the file at
// fault and is a *fs.InputError if the model, not the machine, is to blame. One on a
// Hadoop file system is copied to a temporary folder, which is gone once it is mapped.
func Open(dir string) (*Model, error) {
	if dir == "" {
		return nil, fs.Inputf("", 0, "empty path: give the folder of a model")
	}
	local, done, err := fs.Fetch(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	defer done()
	m, err := openLocal(local)
	if err != nil {
		return nil, fs.Renamed(err, local, dir)
	}
	m.Dir = dir
	return m, nil
}

// hadoopMark is the file by which Hadoop's tools tell a folder that is whole.
const hadoopMark = "_SUCCESS"
