// Package journal keeps the records of a coordinator in a file, so that a restarted process
// continues where the last one stopped. It does not interpret the records. Open is its entry point.
//
//   - File is a journal in a local folder, with a format and checksums.
//   - Group is the part that journals on any medium share: one write makes the records of several
//     callers durable.
package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/fs/vfs"
)

// Journal keeps records in order. All methods may be called from several goroutines. After an error
// of Sync or Compact nobody knows what was written, so every later Sync or Compact fails.
type Journal interface {
	// Append adds a record after all others and returns its number. The record is not durable yet.
	Append(record []byte) (number uint64)
	// Sync returns when the record of this number, and so every earlier one, is durable.
	Sync(number uint64) error
	// Compact replaces all records by a snapshot. It calls take, which makes the snapshot and calls
	// cut at a moment when the snapshot covers everything that was appended. Records that are
	// appended later are kept. Sync calls wait until the snapshot is durable; Append calls do not.
	Compact(take func(cut func()) []byte) error
	// Size returns the number of bytes since the last compaction.
	Size() int64
	// Close makes all records durable and closes the medium.
	Close() error
}

// The file consists of 8 bytes of magic and of entries. An entry is its length (4 bytes), the
// CRC32C of these bytes (4), the CRC32C of the body (4), and the body: one byte of kind, then a
// snapshot or a record. Integers are little-endian. Only the first entry may be a snapshot. The
// length has a checksum of its own so that a flipped bit in it is not mistaken for a file that was
// cut short.
const (
	magic        = "taxonjn2"
	entryHeader  = 12
	kindRecord   = 'r'
	kindSnapshot = 's'
	// maxEntryBytes bounds one entry. It is far above any snapshot (machine.Limits.MaxSpecBytes).
	maxEntryBytes = 1<<32 - 1
	fileName      = "journal"
	// tornBytes is the largest size of a file that a crash left while the journal was being
	// created.
	tornBytes = 4096
)

// castagnoli is the table of CRC32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is wrapped by the error of a journal that was changed after it was written.
var ErrDamaged = errors.New("journal is damaged")

// File is a Journal in one file. Concurrent Syncs share one fsync.
type File struct {
	*Group
	fs   vfs.FS
	dir  string
	lock vfs.File
	file vfs.File
	// end is the size of the file, where the next write goes.
	end int64
}

// Open opens or creates the journal in dir, a folder of fs. It returns the snapshot that the
// journal holds, and the records after it. The snapshot is nil if there is none. An entry that is
// cut short at the end of the file was never acknowledged, and is removed. Other damage is an error
// that wraps ErrDamaged.
func Open(fs vfs.FS, dir string) (j *File, snapshot []byte, records [][]byte, err error) {
	j = &File{fs: fs, dir: dir}
	if err := j.open(); err != nil {
		return nil, nil, nil, fmt.Errorf("journal: %w", err)
	}
	snapshot, records, size, err := j.load()
	if err != nil {
		return nil, nil, nil, errors.Join(err, j.close())
	}
	j.Group = NewGroup(Medium{Write: j.write, Replace: j.replace, Close: j.close}, size)
	return j, snapshot, records, nil
}

// open takes the lock, as two coordinators on one journal would tear it, and opens the file.
func (j *File) open() (err error) {
	if err = vfs.MkdirAll(j.fs, j.dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(j.dir, fileName)
	if j.lock, err = vfs.LockFile(j.fs, path+".lock", 0o600); errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%s.lock: another coordinator works with this folder: stop it, or use another folder", path)
	} else if err != nil {
		return err
	}
	if j.file, err = j.fs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return errors.Join(err, j.lock.Close())
	}
	return nil
}

// load reads the file and removes an incomplete last entry. size is its length.
func (j *File) load() (snapshot []byte, records [][]byte, size int64, err error) {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("journal: %w", err)
	}
	snapshot, records, size, err = Decode(data)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", j.file.Name(), err)
	}
	err = j.file.Truncate(size)
	if err == nil && size == 0 {
		// durable before anything is appended: later no file begins otherwise
		size = int64(len(magic))
		_, err = j.file.WriteAt([]byte(magic), 0)
	}
	if err == nil {
		err = errors.Join(j.file.Sync(), vfs.SyncDir(j.fs, j.dir))
	}
	if err != nil {
		return nil, nil, 0, fmt.Errorf("journal: %w", err)
	}
	j.end = size
	return snapshot, records, size, nil
}

// Encode returns the bytes of a journal's file that holds nothing but a snapshot. A nil snapshot
// gives an empty journal.
func Encode(snapshot []byte) []byte {
	out := []byte(magic)
	if snapshot != nil {
		out = appendEntry(out, kindSnapshot, snapshot)
	}
	return out
}

// Append adds a record to the bytes of a journal's file.
func Append(out, record []byte) []byte { return appendEntry(out, kindRecord, record) }

// Decode reads the bytes of a journal's file. It returns the snapshot, the records after it, and
// the length of the complete entries. The snapshot is nil if there is none. The rest was cut short
// and never acknowledged. Other damage is an error that wraps ErrDamaged.
func Decode(data []byte) (snapshot []byte, records [][]byte, whole int64, err error) {
	if arrived := bytes.TrimRight(data, "\x00"); len(arrived) < len(magic) && len(data) <= tornBytes &&
		strings.HasPrefix(magic, string(arrived)) {
		return nil, nil, 0, nil // it was being made
	}
	if len(data) < len(magic) {
		return nil, nil, 0, fmt.Errorf("%w: no journal's beginning", ErrDamaged)
	}
	if string(data[:len(magic)]) != magic {
		return nil, nil, 0, fmt.Errorf("%w: no journal of this version (begins with %q)", ErrDamaged, data[:len(magic)])
	}
	at := int64(len(magic))
	for first := true; ; first = false {
		body, n, err := readEntry(data[at:])
		if err != nil && torn(data[at:]) {
			n, err = 0, nil
		}
		if err != nil {
			return nil, nil, 0, fmt.Errorf("%w at byte %d: %w; restore it from a copy, or remove it to start without jobs",
				ErrDamaged, at, err)
		}
		if n == 0 {
			return snapshot, records, at, nil
		}
		switch {
		case body[0] == kindRecord:
			records = append(records, body[1:])
		case body[0] == kindSnapshot && first:
			snapshot = body[1:]
		default:
			return nil, nil, 0, fmt.Errorf("%w at byte %d: unexpected entry of kind %q", ErrDamaged, at, body[0])
		}
		at += n
	}
}

// readEntry decodes the first entry of data. It returns n = 0 if data ends within the entry. Some
// file systems lengthen a file before its bytes arrive, so zeros up to the end count as an end too.
func readEntry(data []byte) (body []byte, n int64, err error) {
	if len(data) < entryHeader || len(bytes.TrimLeft(data, "\x00")) == 0 {
		return nil, 0, nil
	}
	length := binary.LittleEndian.Uint32(data)
	if crc32.Checksum(data[:4], castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return nil, 0, errors.New("checksum of a length is wrong")
	}
	if length == 0 || length > maxEntryBytes {
		return nil, 0, fmt.Errorf("length %d is out of range", length)
	}
	if uint64(len(data)-entryHeader) < uint64(length) {
		return nil, 0, nil
	}
	body = data[entryHeader : entryHeader+int(length)]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[8:]) {
		return nil, 0, errors.New("checksum is wrong")
	}
	return body, entryHeader + int64(length), nil
}

// torn reports whether a crash has cut a bad entry: the file had been lengthened, and only a part
// of the entry's bytes had arrived. Such an entry ends in the zeros that the file ends in. All
// acknowledged entries are complete.
func torn(data []byte) bool {
	arrived := len(bytes.TrimRight(data, "\x00"))
	if arrived <= entryHeader {
		return arrived < len(data)
	}
	length := binary.LittleEndian.Uint32(data)
	return crc32.Checksum(data[:4], castagnoli) == binary.LittleEndian.Uint32(data[4:]) &&
		uint64(arrived) < entryHeader+uint64(length)
}

// appendEntry appends an encoded entry to out.
func appendEntry(out []byte, kind byte, body []byte) []byte {
	var head [entryHeader]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(body)+1))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(head[:4], castagnoli))
	sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)
	binary.LittleEndian.PutUint32(head[8:], sum)
	out = append(append(out, head[:]...), kind)
	return append(out, body...)
}

// write is the medium's Write: it appends entries and makes them durable.
func (j *File) write(entries []byte) error {
	if _, err := j.file.WriteAt(entries, j.end); err != nil {
		return err
	}
	j.end += int64(len(entries))
	return j.file.Sync()
}

// replace is the medium's Replace. It writes the snapshot into a second file and renames it.
func (j *File) replace(snapshot []byte) error {
	path := filepath.Join(j.dir, fileName)
	file, err := j.fs.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	data := Encode(snapshot)
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = j.fs.Rename(file.Name(), path)
	}
	if err == nil {
		err = vfs.SyncDir(j.fs, j.dir)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	_ = j.file.Close() // all that it holds is in the snapshot
	j.file, j.end = file, int64(len(data))
	return nil
}

func (j *File) close() error { return errors.Join(j.file.Close(), j.lock.Close()) }
