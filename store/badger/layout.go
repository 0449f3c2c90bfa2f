package badger

import (
	"encoding/binary"
	"fmt"

	"taxon/store"
)

const (
	// formatKey is the key of the format version. No job id begins with NUL.
	formatKey     = "\x00taxon-store"
	formatVersion = 2
	// markKey, followed by a segment's number, is the key of the segment's mark.
	markKey = "\x00taxon-segment\x00"

	headLayout = 2
	headBytes  = 34
)

// head is the index entry of a value.
type head struct {
	// size and crc32c are those of the value.
	size   uint64
	crc32c uint32
	// segment is the number of the segment that has the data, and offset where they begin.
	segment uint64
	offset  uint64
}

// headKey returns the entry key of a value's head: its store key and NUL.
func headKey(k store.Key) []byte {
	return append(store.AppendKey(make([]byte, 0, store.MaxKeyBytes+5), k), 0)
}

// parseEntryKey returns the value whose head an entry is.
func parseEntryKey(b []byte) (store.Key, error) {
	if n := len(b); n > 0 && b[n-1] == 0 {
		if k, err := store.ParseKey(b[:n-1]); err == nil {
			return k, nil
		}
	}
	return store.Key{}, fmt.Errorf("%w: entry key %q", store.ErrCorrupt, b)
}

// encodeHead encodes a head as the entry of a key.
func encodeHead(key []byte, h head) []byte {
	b := make([]byte, 0, headBytes)
	b = append(b, headLayout, 0)
	b = binary.LittleEndian.AppendUint64(b, h.size)
	b = binary.LittleEndian.AppendUint32(b, h.crc32c)
	b = binary.LittleEndian.AppendUint64(b, h.segment)
	b = binary.LittleEndian.AppendUint64(b, h.offset)
	return binary.LittleEndian.AppendUint32(b, headSum(key, b))
}

// headSum returns the checksum of an entry. It covers the entry's key, so that a head under another
// key is refused.
func headSum(key, fields []byte) uint32 {
	return store.UpdateChecksum(store.Checksum(key), fields)
}

// parseHead checks and decodes a head's entry.
func parseHead(key, b []byte) (head, error) {
	if len(b) != headBytes || binary.LittleEndian.Uint32(b[headBytes-4:]) != headSum(key, b[:headBytes-4]) {
		return head{}, fmt.Errorf("%w: head of the value", store.ErrCorrupt)
	}
	if b[0] != headLayout || b[1] != 0 {
		return head{}, fmt.Errorf("%w: head in layout %d %d, this program reads %d 0",
			store.ErrCorrupt, b[0], b[1], headLayout)
	}
	return head{
		size:    binary.LittleEndian.Uint64(b[2:]),
		crc32c:  binary.LittleEndian.Uint32(b[10:]),
		segment: binary.LittleEndian.Uint64(b[14:]),
		offset:  binary.LittleEndian.Uint64(b[22:]),
	}, nil
}

// mark records the offset in a segment up to which its records have heads in Badger.
type mark struct {
	end int64
	// sum identifies the file (see segment.File.Sum).
	sum uint32
}

// markOf returns the key of a segment's mark.
func markOf(segment uint64) []byte { return binary.BigEndian.AppendUint64([]byte(markKey), segment) }

// encode encodes the mark, with a checksum.
func (m mark) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(m.end))
	b = binary.LittleEndian.AppendUint32(b, m.sum)
	return binary.LittleEndian.AppendUint32(b, store.Checksum(b))
}

// parseMark decodes a mark. ok is false for a damaged one, which is ignored.
func parseMark(b []byte) (m mark, ok bool) {
	if len(b) != 16 || binary.LittleEndian.Uint32(b[12:]) != store.Checksum(b[:12]) {
		return m, false
	}
	return mark{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])}, true
}
