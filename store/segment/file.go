package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"taxon/internal/fs/vfs"
	"taxon/store"
)

// Folder is the folder of a shard's segments, within the shard's own folder.
const Folder = "segments"

const (
	suffix = ".seg"
	// damagedSuffix is appended to the name of a file whose head can't be read.
	damagedSuffix = ".damaged"
	// gatherBytes is the size up to which data are copied beside their heads, so that a batch of
	// small values is one write. Larger data are written from where they are.
	gatherBytes = 64 << 10
)

// Name returns the name of the file of a number.
func Name(number uint64) string { return fmt.Sprintf("%016x%s", number, suffix) }

// numberOf is the inverse of Name. A damaged file has a number as well.
func numberOf(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(strings.TrimSuffix(name, damagedSuffix), suffix)
	number, err := strconv.ParseUint(digits, 16, 64)
	return number, ok && err == nil && len(digits) == 16
}

// File is an open segment. Its methods may be called from several goroutines, except Close and
// Remove, which must be the last calls.
type File struct {
	Head
	seed uint32
	fs   vfs.FS
	file vfs.File
	path string
	// begin is the offset of the first record.
	begin int64

	// mu guards the fields up to err, and the order of writes.
	mu sync.Mutex
	// size is the number of bytes written. In a file that was opened again it is the file's size.
	size int64
	// room is the size of a file that was made over a Blank.
	room int64
	// buffer belongs to Append, which reuses it.
	buffer []byte
	// err says why nothing can be appended any more. It is nil while appending is possible.
	err error

	// flush is held by the caller that syncs.
	flush sync.Mutex
	// synced is the number of bytes that are durable. It is guarded by flush, and by mu for
	// writing.
	synced int64
}

// errReadOnly is the error of appending to a file that was opened again.
var errReadOnly = errors.New("a segment that was opened again is only read")

// Create makes an empty file in a folder. The file's name is durable when Create returns, its bytes
// with the first Sync.
func Create(fs vfs.FS, dir string, h Head) (*File, error) {
	path := filepath.Join(dir, Name(h.Number))
	f := &File{Head: h, seed: seedOf(h), fs: fs, path: path}
	var err error
	if f.file, err = fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	head := appendHead(nil, h)
	f.begin = int64(len(head))
	f.size = f.begin
	if _, err = f.file.Write(head); err == nil {
		err = vfs.SyncDir(fs, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.file.Close(), fs.Remove(path))
	}
	return f, nil
}

// Open opens a file for reading. It returns ErrCorrupt if the head is damaged.
func Open(fs vfs.FS, path string) (*File, error) {
	file, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{fs: fs, file: file, path: path, err: errReadOnly}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return f, nil
}

// open reads and checks the head.
func (f *File) open() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	f.synced = f.size
	b := make([]byte, min(f.size, maxHead))
	if _, err := f.file.ReadAt(b, 0); err != nil {
		return err
	}
	var n int
	if f.Head, n, err = parseHead(b); err != nil {
		return err
	}
	if number, _ := numberOf(filepath.Base(f.path)); number != f.Number {
		return fmt.Errorf("%w: the segment is number %d by its head", store.ErrCorrupt, f.Number)
	}
	f.begin, f.seed = int64(n), seedOf(f.Head)
	// a process that was killed may have left bytes with the system
	return f.file.SyncData()
}

// Append writes records after the others. It returns the offset of each record's data, and the size
// of the file after the records, which are durable when Sync of that size has returned. All records
// have the file's job and step. After an error none of them is in the file.
func (f *File) Append(records []Record) (offsets []int64, end int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, 0, f.err
	}
	offsets = make([]int64, len(records))
	at := f.size
	b := f.buffer[:0]
	write := func(data []byte) {
		if err == nil && len(data) > 0 {
			_, err = f.file.WriteAt(data, at)
			at += int64(len(data))
		}
	}
	for i, r := range records {
		b = appendRecord(b, f.seed, r)
		offsets[i] = at + int64(len(b))
		if data := r.Value.Data; len(b)+len(data) <= gatherBytes {
			b = append(b, data...)
		} else {
			write(b)
			write(data)
			b = b[:0]
		}
	}
	write(b)
	f.buffer = b[:0]
	if err != nil {
		// Scan would stop at an incomplete record and miss those written after it.
		if cut := f.file.Truncate(f.size); cut != nil {
			f.err = errors.Join(err, cut)
		}
		return nil, 0, err
	}
	f.size = at
	return offsets, at, nil
}

// Sync returns when the file's first end bytes are durable. After an error nothing more can be
// appended, because nobody knows what the disk holds of the bytes that were not synced before.
func (f *File) Sync(end int64) error {
	f.flush.Lock()
	defer f.flush.Unlock()
	if end <= f.synced {
		return nil
	}
	f.mu.Lock()
	upto, err := f.size, f.err
	f.mu.Unlock()
	if err != nil {
		return err
	}
	err = f.file.SyncData()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.err = err
		return err
	}
	f.synced = upto
	return nil
}

// Holds reports whether the file's first end bytes are durable, or can still be made durable.
func (f *File) Holds(end int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err == nil || end <= f.synced
}

// Writable reports whether more can be appended.
func (f *File) Writable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err == nil
}

// Sum returns the checksum of the file's head. Files of different shards, steps or numbers have
// different ones.
func (f *File) Sum() uint32 { return f.seed }

// trimLeast is how many unused bytes a file may have.
const trimLeast = 1 << 20

// Trim truncates the file if it has more than twice what was written to it.
func (f *File) Trim() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.room < 2*f.size+trimLeast {
		return nil
	}
	f.room = 0
	return f.file.Truncate(f.size)
}

// Size returns the size of the file in bytes.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// ReadAt fills b from an offset of the file.
func (f *File) ReadAt(b []byte, offset int64) error {
	if len(b) == 0 {
		return nil
	}
	_, err := f.file.ReadAt(b, offset)
	return err
}

// Close releases the file. It stays in its folder.
func (f *File) Close() error { return f.file.Close() }

// Remove removes the file from its folder and releases it.
func (f *File) Remove() error { return errors.Join(f.fs.Remove(f.path), f.file.Close()) }

// blankSuffix replaces suffix in the name of a file whose step was dropped.
const blankSuffix = ".blank"

// Blank is the file of a dropped step, kept for a later step to be written over. Its blocks are
// allocated and its pages are in memory, so that a Sync writes data alone. If files were removed
// and new ones grew instead, the file system's journal would free and allocate blocks, and every
// concurrent sync would wait for that.
type Blank struct {
	fs   vfs.FS
	file vfs.File
	path string
	// Size is the number of bytes that it takes on the disk.
	Size int64
}

// Blank puts the file aside for Create. Nobody may use the File any more. A file that was opened
// again is removed instead, and Blank returns nil.
func (f *File) Blank() (*Blank, error) {
	if !f.Writable() {
		return nil, f.Remove()
	}
	aside := strings.TrimSuffix(f.path, suffix) + blankSuffix
	if err := f.fs.Rename(f.path, aside); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	info, err := f.file.Stat()
	b := &Blank{fs: f.fs, file: f.file, path: aside}
	if err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	b.Size = info.Size()
	return b, nil
}

// Create is like the function Create, but uses the blank file's blocks. The old content no longer
// counts, because the checksums of its records continue that of another head. After an error the
// file is removed.
func (b *Blank) Create(dir string, h Head) (*File, error) {
	f := &File{Head: h, seed: seedOf(h), fs: b.fs, file: b.file, path: filepath.Join(dir, Name(h.Number)), room: b.Size}
	head := appendHead(nil, h)
	f.begin = int64(len(head))
	f.size = f.begin
	_, err := b.file.WriteAt(head, 0)
	if err == nil { // under its name the file never has another head
		err = b.file.SyncData()
	}
	if err == nil {
		err = b.fs.Rename(b.path, f.path)
	}
	if err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	if err := vfs.SyncDir(b.fs, dir); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

// Remove removes the file.
func (b *Blank) Remove() error { return errors.Join(b.fs.Remove(b.path), b.file.Close()) }
