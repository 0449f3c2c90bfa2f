package fs

import (
	"context"
	"io"
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

// openParts opens several files as one, under the name that the user gave. size is their total
// size.
func openParts(ctx context.Context, src Source, path string, parts []string, size int64) (*File, error) {
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
