package segment

import (
	"encoding/binary"
	"fmt"

	"taxon/store"
)

// These are the sizes of the layout in FORMAT.md.
const (
	magic   = "taxonseg"
	version = 1

	headBytes   = 8 + 2 + 1 + 4 + 8 + 4 // without the job
	maxHead     = headBytes + store.MaxJobBytes
	recordBytes = 1 + 1 + 4 + 4 + 8 + 4 + 4 // without name and data
	maxRecord   = recordBytes + store.MaxNameBytes
)

// These are the kinds of records.
const (
	kindValue = 'V'
	// kindDeleted says that the value of this key, written before, is deleted.
	kindDeleted = 'D'
)

// Head describes what a file holds.
type Head struct {
	Job  string
	Step uint32
	// Number is the number of the file within its shard. Of two files of a step, the one with the
	// higher number is the later one.
	Number uint64
}

// Record is a value to append, or the deletion of one.
type Record struct {
	// Value has the file's job and step. It has no data if Deleted is set.
	Value store.Checksummed
	// Deleted says that the value of this key is deleted.
	Deleted bool
}

// Entry is a record as it lies in a file.
type Entry struct {
	Key store.Key
	// Offset is where the data begin.
	Offset  int64
	Bytes   uint64
	CRC32C  uint32
	Deleted bool
	// Damaged says that the data do not match CRC32C.
	Damaged bool
}

// appendHead encodes a file's head.
func appendHead(dst []byte, h Head) []byte {
	from := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint16(dst, version)
	dst = append(dst, byte(len(h.Job)))
	dst = append(dst, h.Job...)
	dst = binary.LittleEndian.AppendUint32(dst, h.Step)
	dst = binary.LittleEndian.AppendUint64(dst, h.Number)
	return binary.LittleEndian.AppendUint32(dst, store.Checksum(dst[from:]))
}

// parseHead decodes the head that a file begins with. It returns the head's size as well.
func parseHead(b []byte) (h Head, size int, err error) {
	if len(b) < headBytes || string(b[:8]) != magic {
		return h, 0, fmt.Errorf("%w: no segment's beginning", store.ErrCorrupt)
	}
	size = headBytes + int(b[10])
	if len(b) < size || binary.LittleEndian.Uint32(b[size-4:]) != store.Checksum(b[:size-4]) {
		return h, 0, fmt.Errorf("%w: head of the segment", store.ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != version {
		return h, 0, fmt.Errorf("%w: segment in format %d, this program reads %d", store.ErrCorrupt, v, version)
	}
	at := 11 + int(b[10])
	h = Head{Job: string(b[11:at]), Step: binary.LittleEndian.Uint32(b[at:]), Number: binary.LittleEndian.Uint64(b[at+4:])}
	if store.ValidateJob(h.Job) != nil {
		return h, 0, fmt.Errorf("%w: job of the segment", store.ErrCorrupt)
	}
	return h, size, nil
}

// appendRecord encodes a record's head; the data follow it. seed is the seed of the file (see
// seedOf).
func appendRecord(dst []byte, seed uint32, r Record) []byte {
	from := len(dst)
	k, kind := r.Value.Key, byte(kindValue)
	if r.Deleted {
		kind = kindDeleted
	}
	dst = append(dst, kind, byte(len(k.Name)))
	dst = binary.LittleEndian.AppendUint32(dst, k.Task)
	dst = binary.LittleEndian.AppendUint32(dst, k.Attempt)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(r.Value.Data)))
	dst = binary.LittleEndian.AppendUint32(dst, r.Value.CRC32C)
	dst = append(dst, k.Name...)
	return binary.LittleEndian.AppendUint32(dst, store.UpdateChecksum(seed, dst[from:]))
}

// parseRecord decodes a record's head, and returns its size. It returns ErrCorrupt if b does not
// begin with a complete one.
func parseRecord(b []byte, h Head, seed uint32) (e Entry, size int, err error) {
	if len(b) < recordBytes || b[0] != kindValue && b[0] != kindDeleted {
		return e, 0, fmt.Errorf("%w: no record", store.ErrCorrupt)
	}
	size = recordBytes + int(b[1])
	if len(b) < size || binary.LittleEndian.Uint32(b[size-4:]) != store.UpdateChecksum(seed, b[:size-4]) {
		return e, 0, fmt.Errorf("%w: head of a record", store.ErrCorrupt)
	}
	e = Entry{
		Key: store.Key{Job: h.Job, Step: h.Step, Task: binary.LittleEndian.Uint32(b[2:]),
			Attempt: binary.LittleEndian.Uint32(b[6:]),
			Name:    string(b[22 : size-4])},
		Bytes: binary.LittleEndian.Uint64(b[10:]), CRC32C: binary.LittleEndian.Uint32(b[18:]), Deleted: b[0] == kindDeleted,
	}
	if e.Key.Validate() != nil || e.Bytes > 1<<62 || e.Deleted && e.Bytes != 0 {
		return e, 0, fmt.Errorf("%w: record of no value", store.ErrCorrupt)
	}
	return e, size, nil
}

// seedOf returns the checksum with which the checksums of a file's record heads begin. It is the
// checksum of the file's head, so that the record of another file is not accepted. (The checksum at
// the end of the head is left out: the CRC of bytes followed by their own CRC is always the same.)
func seedOf(h Head) uint32 {
	b := appendHead(nil, h)
	return store.Checksum(b[:len(b)-4])
}
