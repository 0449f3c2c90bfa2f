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

// Folder is that of a shard's segments, within the shard's own.
const Folder = "segments"

const (
	suffix = ".seg"
	// damagedSuffix is put behind the name of a file whose head can't be read.
	damagedSuffix = ".damaged"
	// gatherBytes is the size up to which data are copied beside their heads, so that a
	// batch of small values is one write; larger ones are written from where they lie.
	gatherBytes = 64 << 10
)

// Name is that of the file of a number.
func Name(number uint64) string { return fmt.Sprintf("%016x%s", number, suffix) }

// numberOf is the way back; a damaged file has a number, too.
func numberOf(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(strings.TrimSuffix(name, damagedSuffix), suffix)
	number, err := strconv.ParseUint(digits, 16, 64)
	return number, ok && err == nil && len(digits) == 16
}

// File is an open segment. Its methods may be called from several goroutines, but for
// Close and Remove, which come last.
type File struct {
	Head
	seed  uint32
	fs    vfs.FS
	file  vfs.File
	path  string
	begin int64 // of the first record

	mu     sync.Mutex // guards what follows, and the order of writes
	size   int64      // bytes written; of a file that was opened again all that it has
	room   int64      // bytes that the file has, of one that is written over
	buffer []byte     // of Append, kept for the next one
	err    error      // why nothing can be appended any more; nil: it can

	flush  sync.Mutex // held by the one that syncs
	synced int64      // guarded by flush, and mu for writing
}

// errReadOnly refuses to append to a file of an earlier life.
var errReadOnly = errors.New("a segment that was opened again is only read")

// Create makes an empty file in a folder. Its name is durable when Create returns, its
// bytes are with the first Sync.
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

// Open opens a file for reading. ErrCorrupt if its head is damaged.
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
	return f.file.SyncData() // a process that was killed may have left bytes with the system
}

// Append writes records behind the others and gives where the data of each begin, and the
// file's size then: they are durable when Sync of that has returned. All have the file's
// job and step. After an error none of them is there.
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
		// What is behind size would cut off what follows from the eyes of Scan.
		if cut := f.file.Truncate(f.size); cut != nil {
			f.err = errors.Join(err, cut)
		}
		return nil, 0, err
	}
	f.size = at
	return offsets, at, nil
}

// Sync returns when the file's first end bytes are durable. After an error nothing more
// can be appended: nobody knows what the disk holds of what was not synced before.
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

// Holds says whether the file's first end bytes are durable, or can still be made so.
func (f *File) Holds(end int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err == nil || end <= f.synced
}

// Writable says whether more can be appended.
func (f *File) Writable() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err == nil
}

// Sum is the checksum of the file's head: files of different shards, steps or numbers have
// different ones.
func (f *File) Sum() uint32 { return f.seed }

// trimLeast is how many bytes a file may have for nothing.
const trimLeast = 1 << 20

// Trim gives room back if the file has more than twice what was written to it.
func (f *File) Trim() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.room < 2*f.size+trimLeast {
		return nil
	}
	f.room = 0
	return f.file.Truncate(f.size)
}

// Path is that of the file, within the shard's folder.
func (f *File) Path() string { return filepath.Join(Folder, filepath.Base(f.path)) }

// Size is that of the file.
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

// Close releases the file, which stays.
func (f *File) Close() error { return f.file.Close() }

// Remove removes the file from its folder and releases it.
func (f *File) Remove() error { return errors.Join(f.fs.Remove(f.path), f.file.Close()) }

// blankSuffix is put in place of suffix behind the name of a file whose step was dropped.
const blankSuffix = ".blank"

// Blank is the file of a dropped step, kept for a later one to be written over: its blocks
// are allocated and its pages in memory, so that a Sync is one of data alone. Removing a
// file and letting another one grow has the file system's journal free blocks and allocate
// them, and all that sync meanwhile wait for it.
type Blank struct {
	fs   vfs.FS
	file vfs.File
	path string
	Size int64 // bytes that it takes on the disk
}

// Blank puts the file aside; nobody may use it any more. A file that was opened again is
// removed instead: nil.
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

// Create is like the function Create, in the blank file's blocks. What the file held no
// longer counts: the checksums of its records went on from another head. After an error
// the file is gone.
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
