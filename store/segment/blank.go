package segment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// blankSuffix is put in place of suffix behind the name of a file whose step was dropped.
const blankSuffix = ".blank"

// Blank is the file of a dropped step, kept for a later one to be written over: its blocks
// are allocated and its pages in memory, so that a Sync is one of data alone. Removing a
// file and letting another one grow has the file system's journal free blocks and allocate
// them, and all that sync meanwhile wait for it.
type Blank struct {
	file *os.File
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
	if err := os.Rename(f.path, aside); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	info, err := f.file.Stat()
	b := &Blank{file: f.file, path: aside}
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
	f := &File{Head: h, seed: seedOf(h), sync: syncData, file: b.file, path: filepath.Join(dir, Name(h.Number)), room: b.Size}
	head := appendHead(nil, h)
	f.begin = int64(len(head))
	f.size = f.begin
	_, err := b.file.WriteAt(head, 0)
	if err == nil { // under its name the file never has another head
		err = f.sync(b.file)
	}
	if err == nil {
		err = os.Rename(b.path, f.path)
	}
	if err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	if err := SyncDir(dir); err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return f, nil
}

// Remove removes the file.
func (b *Blank) Remove() error { return errors.Join(os.Remove(b.path), b.file.Close()) }
