package store

import "context"

// Filed is a Shard whose values lie in files that other processes of its host may read. Its
// PutSummed keeps no slice of what it is given.
type Filed interface {
	Shard
	// Folder is that of the shard; "": it has no files.
	Folder() string
	// Locate tells where values lie, in the order of the keys. It reads none of them.
	Locate(ctx context.Context, keys []Key) ([]Location, error)
}

// Location is a value's place.
type Location struct {
	File   string // within the shard's folder; "": no such value, or in no such file: Read it
	Offset uint64 // of the data
	Bytes  uint64
	CRC32C uint32
}
