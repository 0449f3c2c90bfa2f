package hdfs

import (
	"io"
	"os"
	"syscall"
)

// Ranges reads parts of a file in any order. Like Reader it rides out dying nodes, and a
// file that is replaced meanwhile is an error. For one goroutine.
type Ranges struct{ w fetcher }

// OpenRanges begins to read parts of a file. It takes over f, which closes with it.
func (f *FS) OpenRanges(name string) (*Ranges, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	return &Ranges{fetcher{fs: f, name: name, info: info}}, nil
}

// Size is the file's length when it was opened.
func (r *Ranges) Size() int64 { return r.w.info.Size() }

// ReadAt implements io.ReaderAt.
func (r *Ranges) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 || offset+int64(len(p)) > r.Size() {
		return 0, io.ErrUnexpectedEOF
	}
	if err := r.w.fetch(r.w.fs.ctx, r.w.fs.loc, &span{offset: offset, buf: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the reading and the file system that OpenRanges took over.
func (r *Ranges) Close() error {
	if r.w.file != nil {
		r.w.file.Close()
	}
	return r.w.fs.Close()
}
