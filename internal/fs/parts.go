package fs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"taxon/internal/fs/hdfs"
)

// joined reads the files of a pattern, or of a folder of parts, as one text. Each may have its own
// compression. A part without a final newline gets one.
type joined struct {
	ctx   context.Context
	src   Source
	rest  []string // parts that have not been opened
	cur   *File    // nil if none is open
	seen  int64    // bytes of cur already counted
	last  byte     // last byte returned
	count *counter
}

// openParts opens several files as one, under the name that the user gave.
func openParts(ctx context.Context, src Source, path string, parts []string) (*File, error) {
	size, err := totalSize(ctx, parts)
	if err != nil {
		return nil, err
	}
	j := &joined{ctx: ctx, src: src, rest: parts, last: '\n', count: &counter{}}
	if err := j.next(); err != nil {
		return nil, err
	}
	return &File{ctx: ctx, name: Name(path), size: size, compression: j.cur.compression, raw: j, count: j.count,
		content: j, parts: true}, nil
}

// next opens the next part.
func (j *joined) next() (err error) {
	j.cur, err = openFileOf(j.ctx, j.src, j.rest[0])
	j.rest, j.seen = j.rest[1:], 0
	return err
}

func (j *joined) Read(p []byte) (int, error) {
	for {
		if j.cur == nil {
			if len(j.rest) == 0 {
				return 0, io.EOF
			}
			if err := j.next(); err != nil {
				j.cur = nil
				return 0, err
			}
		}
		n, err := j.cur.Read(p)
		read := j.cur.BytesRead()
		j.count.n.Add(read - j.seen)
		j.seen = read
		if n > 0 {
			j.last = p[n-1]
		}
		if err != io.EOF {
			return n, err
		}
		j.cur.Close()
		j.cur = nil
		if n == 0 && j.last != '\n' && len(p) > 0 {
			p[0], j.last, n = '\n', '\n', 1
		}
		if n > 0 {
			return n, nil
		}
	}
}

func (j *joined) Close() error {
	if j.cur == nil {
		return nil
	}
	return j.cur.Close()
}

// openRemotePath opens a file of a Hadoop file system, or the files of a folder or pattern, over
// one connection.
func openRemotePath(ctx context.Context, src Source, path string) (*File, error) {
	raw, size, err := openRemote(ctx, path)
	if err == nil {
		return newFile(ctx, raw, size, path)
	}
	if !errors.Is(err, syscall.EISDIR) && !(errors.Is(err, iofs.ErrNotExist) && hdfs.HasGlob(path)) {
		return nil, err
	}
	paths, err := expandRemote(ctx, path)
	if err != nil {
		return nil, err
	}
	if len(paths) == 1 {
		return openFileOf(ctx, src, paths[0])
	}
	return openParts(ctx, src, path, paths)
}

// totalSize returns the sum of the files' sizes, or -1 if one of them is unknown.
func totalSize(ctx context.Context, paths []string) (total int64, err error) {
	if IsRemote(paths[0]) {
		err = remotely(ctx, paths[0], func(f *hdfs.FS, _ string) error {
			for _, p := range paths {
				l, err := hdfs.Parse(p)
				if err != nil {
					return err
				}
				info, err := f.Stat(l.Path)
				if err != nil {
					return Explain(p, err)
				}
				total += info.Size()
			}
			return nil
		})
		return total, err
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return 0, Explain(p, err)
		}
		if !info.Mode().IsRegular() {
			return -1, nil
		}
		total += info.Size()
	}
	return total, nil
}

// glob lists the local paths that match a pattern, like filepath.Glob. Unlike filepath.Glob, which
// ignores folders that it cannot list, so that a training would silently lack files, it returns an
// error with the folder's name.
func glob(pattern string) ([]string, error) {
	if !hdfs.HasGlob(pattern) {
		if _, err := os.Lstat(pattern); err != nil {
			return nil, nil
		}
		return []string{pattern}, nil
	}
	dir, last := filepath.Split(pattern)
	if _, err := filepath.Match(last, ""); err != nil {
		return nil, err
	}
	dirs, err := glob(filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, Explain(d, err)
		}
		for _, e := range entries {
			if ok, _ := filepath.Match(last, e.Name()); ok {
				out = append(out, filepath.Join(d, e.Name()))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}
