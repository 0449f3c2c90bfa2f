package fs

import (
	"context"
	"io"

	"taxon/internal/fs/hdfs"
)

// RangeFile reads parts of a local or HDFS file, in any order and without decompressing them. It is
// used by one goroutine.
type RangeFile struct {
	ctx  context.Context
	path string
	file interface {
		io.ReaderAt
		io.Closer
	}
	size int64
}

// OpenRanges opens a file for RangeFile. ctx applies to all calls.
func OpenRanges(ctx context.Context, path string) (*RangeFile, error) {
	if !IsRemote(path) {
		f, err := OpenRegular(path)
		if err != nil {
			return nil, Explain(path, err)
		}
		info, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, Explain(path, err)
		}
		return &RangeFile{ctx, path, f, info.Size()}, nil
	}
	f, name, err := dial(ctx, path, 0)
	if err != nil {
		return nil, err
	}
	r, err := f.OpenRanges(name)
	if err != nil {
		f.Close()
		return nil, remoteErr(ctx, path, err)
	}
	return &RangeFile{ctx, path, r, r.Size()}, nil
}

// Size returns the file's length when it was opened.
func (f *RangeFile) Size() int64 { return f.size }

// ReadRange fills p from offset on. A file that ends earlier gives io.ErrUnexpectedEOF.
func (f *RangeFile) ReadRange(p []byte, offset int64) error {
	n, err := f.file.ReadAt(p, offset)
	switch {
	case n == len(p) && err == io.EOF:
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err == nil || err == io.ErrUnexpectedEOF:
		return err
	case IsRemote(f.path):
		return remoteErr(f.ctx, f.path, err)
	}
	return Explain(f.path, err)
}

// Close releases the file.
func (f *RangeFile) Close() error { return f.file.Close() }

var _ io.ReaderAt = (*hdfs.Ranges)(nil)
