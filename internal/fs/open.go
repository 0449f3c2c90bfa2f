package fs

import (
	"bufio"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"sync/atomic"
	"syscall"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Source opens paths. Its implementation is Local.
type Source interface {
	// Open returns the raw bytes of a file and its size, or -1 if the size is unknown. A path that
	// cannot be read as a file is an *InputError.
	Open(ctx context.Context, path string) (io.ReadCloser, int64, error)
}

// Local reads this machine's files, standard input for the path "-", and hdfs:// paths. The zero
// value uses the process's standard input.
type Local struct {
	// In is standard input. A nil In stands for os.Stdin.
	In io.Reader
}

// Open implements Source.
func (l Local) Open(ctx context.Context, path string) (io.ReadCloser, int64, error) {
	if path == Stdin {
		if l.In != nil {
			return io.NopCloser(l.In), -1, nil
		}
		return io.NopCloser(os.Stdin), -1, nil
	}
	if path == "" {
		return nil, 0, Inputf("", 0, "empty path: give a file, or - for standard input")
	}
	return For(ctx, path).Input(path)
}

// ReadBounded reads a local or remote file of at most `most` bytes, without decompressing it. It
// also returns when ctx ends while it waits for a pipe.
func ReadBounded(ctx context.Context, path string, most int64) ([]byte, error) {
	in, _, err := For(ctx, path).Input(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, Explain(path, err)
	case int64(len(data)) > most:
		return nil, Inputf(path, 0, "has more than %d bytes, the most that such a file may have: is it another "+
			"file?", most)
	}
	return data, nil
}

// File is an opened input. Read returns its decompressed content.
type File struct {
	ctx         context.Context // the context that ends reading
	name        string
	stdin       bool
	size        int64
	compression string
	raw         io.ReadCloser
	count       *counter
	content     io.Reader
	release     func()

	// parts says that the content comes from several files, whose errors name the file.
	parts bool
}

// Open opens a path of src and decompresses it. If src is Local, a pattern, or a folder of part
// files, is read as one file (see Expand). Errors of reading name the path. A truncated or broken
// compressed stream is an *InputError.
func Open(ctx context.Context, src Source, path string) (*File, error) {
	f, err := openFileOf(ctx, src, path)
	if _, ok := src.(Local); !ok || err == nil {
		return f, err
	}
	if !errors.Is(err, syscall.EISDIR) && !(errors.Is(err, iofs.ErrNotExist) && hasGlob(path)) {
		return nil, err
	}
	disk, done := Keep(ctx, path)
	defer done()
	paths, err := expand(disk, path)
	if err != nil {
		return nil, err
	}
	if len(paths) == 1 {
		return openFileOf(ctx, src, paths[0])
	}
	size, err := totalSize(disk, paths)
	if err != nil {
		return nil, err
	}
	return openParts(ctx, src, path, paths, size)
}

// openFileOf opens a single file.
func openFileOf(ctx context.Context, src Source, path string) (*File, error) {
	raw, size, err := src.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return newFile(ctx, raw, size, path)
}

// newFile returns a File for an opened file, which it then owns.
func newFile(ctx context.Context, raw io.ReadCloser, size int64, path string) (*File, error) {
	f := &File{ctx: ctx, name: Name(path), stdin: path == Stdin, size: size, raw: raw, count: &counter{r: raw}}
	// large enough to feed the decoders, and small compared with any memory bound
	buffered := bufio.NewReaderSize(f.count, 64<<10)
	if err := f.detect(buffered); err != nil {
		raw.Close()
		return nil, err
	}
	return f, nil
}

// Name returns the name of a path in messages.
func Name(path string) string {
	if path == Stdin {
		return "stdin"
	}
	return path
}

// Name returns the path as messages show it.
func (f *File) Name() string { return f.name }

// Size returns the number of bytes as stored, that is, compressed, or -1 if it is unknown.
func (f *File) Size() int64 { return f.size }

// BytesRead returns the number of stored bytes that have been read. It may be called while another
// goroutine reads.
func (f *File) BytesRead() int64 { return f.count.n.Load() }

// Waits reports whether a Read may wait for another process: on standard input or a pipe.
func (f *File) Waits() bool { return f.stdin || f.size < 0 }

// Read implements io.Reader over the content. It returns when the context of Open ends.
func (f *File) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.content.Read(p)
	if err != nil && err != io.EOF && !f.parts {
		err = f.explain(err)
	}
	return n, err
}

// Close releases the decoder and the file.
func (f *File) Close() error {
	if f.release != nil {
		f.release()
		f.release = nil
	}
	return f.raw.Close()
}

// counter counts the raw bytes. It keeps errors of the file itself, which decoders disguise as
// invalid data, and whether the end was reached.
type counter struct {
	r    io.Reader
	n    atomic.Int64
	err  error
	tail tail
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	c.tail.add(p[:n])
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}
