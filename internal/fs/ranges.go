package fs

import (
	"context"
	"io"
)

// RangeFile reads parts of a local or HDFS file, in any order and without decompressing them. It is
// used by one goroutine.
type RangeFile struct {
	Regular
	path string
}

// OpenRanges opens a file for RangeFile. ctx applies to all calls.
func OpenRanges(ctx context.Context, path string) (*RangeFile, error) {
	f, err := For(ctx, path).Open(path)
	if err != nil {
		return nil, Explain(path, err)
	}
	return &RangeFile{f, path}, nil
}

// ReadRange fills p from offset on. A file that ends earlier gives io.ErrUnexpectedEOF.
func (f *RangeFile) ReadRange(p []byte, offset int64) error {
	n, err := f.ReadAt(p, offset)
	switch {
	case n == len(p) && err == io.EOF:
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err == nil || err == io.ErrUnexpectedEOF:
		return err
	}
	return Explain(f.path, err)
}
