package segment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"taxon/internal/fs/vfs"
	"taxon/store"
)

// scanBytes is what Scan reads at a time.
const scanBytes = 1 << 20

// Scan yields the records from an offset on, in the order of the file, and says of each whether its
// data are intact. An offset of 0 yields all. It ends where no record begins: at the end, at an
// incomplete record of a crash, or at a damaged head, after which nothing can be found. It reads
// the file once, through a buffer.
func (f *File) Scan(ctx context.Context, from int64, yield func(Entry) error) error {
	size := f.Size()
	s := scanner{file: f, at: max(from, f.begin), size: size, room: make([]byte, scanBytes)}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := s.peek(maxRecord)
		if err != nil {
			return err
		}
		e, n, err := parseRecord(b, f.Head, f.seed)
		if err != nil || e.Bytes > uint64(size-s.at-int64(n)) {
			return nil
		}
		s.skip(n)
		e.Offset = s.at
		sum, err := s.sum(int64(e.Bytes))
		if err != nil {
			return err
		}
		e.Damaged = !e.Deleted && sum != e.CRC32C
		if err := yield(e); err != nil {
			return err
		}
	}
}

// scanner reads a file forwards.
type scanner struct {
	file *File
	// at is the offset of the next byte.
	at   int64
	size int64
	room []byte
	// rest is the part of room that was read ahead.
	rest []byte
}

// peek returns the next n bytes, or fewer at the end of the file.
func (s *scanner) peek(n int) ([]byte, error) {
	if len(s.rest) < n {
		have := copy(s.room, s.rest)
		end := have + int(min(int64(len(s.room)-have), s.size-s.at-int64(have)))
		if err := s.file.ReadAt(s.room[have:end], s.at+int64(have)); err != nil {
			return nil, err
		}
		s.rest = s.room[:end]
	}
	return s.rest[:min(n, len(s.rest))], nil
}

// skip moves n bytes forward.
func (s *scanner) skip(n int) {
	s.rest = s.rest[n:]
	s.at += int64(n)
}

// sum returns the checksum of the next n bytes, and skips them.
func (s *scanner) sum(n int64) (sum uint32, err error) {
	for n > 0 {
		b, err := s.peek(int(min(n, scanBytes)))
		if err != nil {
			return 0, err
		}
		if len(b) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		sum = store.UpdateChecksum(sum, b)
		n -= int64(len(b))
		s.skip(len(b))
	}
	return sum, nil
}

// OpenAll opens the segments of a folder by ascending number, and makes the folder if needed.
// highest is the highest number of any file. A file whose head a crash has cut is removed, because
// nothing in it can have been acknowledged. Any other file that can't be read is renamed, as if its
// values had never existed. Blank files are removed.
func OpenAll(fs vfs.FS, dir string) (files []*File, highest uint64, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				err = errors.Join(err, f.Close())
			}
			files = nil
		}
	}()
	if err := errors.Join(vfs.MkdirAll(fs, dir, 0o700), vfs.SyncDir(fs, filepath.Dir(dir))); err != nil {
		return nil, 0, err
	}
	entries, err := fs.ReadDir(dir) // sorted by name, which is by number
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == blankSuffix {
			if err := fs.Remove(filepath.Join(dir, e.Name())); err != nil {
				return files, 0, err
			}
			continue
		}
		number, ok := numberOf(e.Name())
		if !ok {
			continue
		}
		highest = max(highest, number)
		path := filepath.Join(dir, e.Name())
		if filepath.Ext(path) != suffix {
			continue
		}
		f, err := Open(fs, path)
		switch {
		case err == nil:
			files = append(files, f)
		case errors.Is(err, store.ErrCorrupt), errors.Is(err, io.EOF):
			if err := renameAside(fs, path); err != nil {
				return files, 0, err
			}
		default:
			return files, 0, err
		}
	}
	return files, highest, nil
}

// renameAside removes a file whose head was cut, and otherwise marks it as damaged by its name.
func renameAside(fs vfs.FS, path string) error {
	info, err := fs.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() <= maxHead {
		return fs.Remove(path)
	}
	if err := fs.Rename(path, path+damagedSuffix); err != nil {
		return fmt.Errorf("put a damaged segment aside: %w", err)
	}
	return nil
}
