package badger

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"taxon/store"
)

const (
	// formatKey holds the format version; no job id starts with NUL.
	formatKey     = "\x00taxon-store"
	formatVersion = 2
	// firstVersion kept the data in Badger. Such values are read and deleted, but no longer
	// written.
	firstVersion = 1
	// markKey, followed by a segment's number, holds up to where the segment's records have heads
	// in Badger.
	markKey = "\x00taxon-segment\x00"

	inBadger   = 1  // layout of a head whose data are inline, or in chunks that follow
	inSegment  = 2  // the data are in a segment
	badgerHead = 22 // size of a head in layout 1, before the inline data
	placeHead  = 34 // of one in layout 2

	// chunkBytes is the data of one chunk before compression, in layout 1.
	chunkBytes = 256 << 10

	encodingRaw  = 0
	encodingZstd = 1
)

// head describes a value: its size and checksum, and where the data are.
type head struct {
	layout byte
	size   uint64 // of the value
	crc32c uint32 // of the value

	chunks   uint32 // inBadger: entries that follow; 0: the data are inline
	encoding byte   // inBadger: of inline data

	segment uint64 // inSegment: its number
	offset  uint64 // inSegment: of the data
}

// chunksOf is the number of chunk entries of a value; small values have none.
func chunksOf(size uint64) uint32 {
	if size <= chunkBytes {
		return 0
	}
	return uint32((size + chunkBytes - 1) / chunkBytes)
}

// headKey is the entry key of a value's head: its store key and NUL.
func headKey(k store.Key) []byte {
	return append(store.AppendKey(make([]byte, 0, store.MaxKeyBytes+5), k), 0)
}

// chunkKey is the entry key of chunk i (from 1): the head's and i, big endian.
func chunkKey(headKey []byte, i uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, len(headKey)+4), headKey...), i)
}

// parseEntryKey returns the value to which an entry belongs, and which entry it is: 0 is the
// head.
func parseEntryKey(b []byte) (k store.Key, chunk uint32, err error) {
	job := bytes.IndexByte(b, 0)
	if job < 0 || len(b) < job+1+12 {
		return k, 0, fmt.Errorf("%w: entry key %q", store.ErrCorrupt, b)
	}
	name := bytes.IndexByte(b[job+13:], 0)
	if name < 0 {
		return k, 0, fmt.Errorf("%w: entry key %q", store.ErrCorrupt, b)
	}
	end := job + 13 + name
	switch rest := b[end+1:]; len(rest) {
	case 0:
	case 4:
		if chunk = binary.BigEndian.Uint32(rest); chunk == 0 {
			return k, 0, fmt.Errorf("%w: entry key %q", store.ErrCorrupt, b)
		}
	default:
		return k, 0, fmt.Errorf("%w: entry key %q", store.ErrCorrupt, b)
	}
	if k, err = store.ParseKey(b[:end]); err != nil {
		return k, 0, fmt.Errorf("%w: entry key %q", store.ErrCorrupt, b)
	}
	return k, chunk, nil
}

// encodeHead makes the head of a value whose data are in a segment.
func encodeHead(key []byte, h head) []byte {
	b := make([]byte, 0, placeHead)
	b = append(b, inSegment, encodingRaw)
	b = binary.LittleEndian.AppendUint64(b, h.size)
	b = binary.LittleEndian.AppendUint32(b, h.crc32c)
	b = binary.LittleEndian.AppendUint64(b, h.segment)
	b = binary.LittleEndian.AppendUint64(b, h.offset)
	return binary.LittleEndian.AppendUint32(b, headSum(key, b))
}

// headSum covers the entry's key, so a head found under another key is refused.
func headSum(key, fields []byte) uint32 {
	return store.UpdateChecksum(store.Checksum(key), fields)
}

// parseHead checks a head entry of either layout, and separates the inline data.
func parseHead(key, b []byte) (h head, inline []byte, err error) {
	n := badgerHead
	if len(b) > 0 && b[0] == inSegment {
		n = placeHead
	}
	if len(b) < n || binary.LittleEndian.Uint32(b[n-4:]) != headSum(key, b[:n-4]) {
		return h, nil, fmt.Errorf("%w: head of the value", store.ErrCorrupt)
	}
	h = head{layout: b[0], encoding: b[1], size: binary.LittleEndian.Uint64(b[2:]), crc32c: binary.LittleEndian.Uint32(b[10:])}
	switch h.layout {
	case inSegment:
		h.segment, h.offset = binary.LittleEndian.Uint64(b[14:]), binary.LittleEndian.Uint64(b[22:])
		if len(b) != n || h.encoding != encodingRaw {
			return h, nil, fmt.Errorf("%w: head of the value", store.ErrCorrupt)
		}
	case inBadger:
		if h.chunks = binary.LittleEndian.Uint32(b[14:]); h.chunks != chunksOf(h.size) {
			return h, nil, fmt.Errorf("%w: %d bytes in %d chunks", store.ErrCorrupt, h.size, h.chunks)
		}
	default:
		return h, nil, fmt.Errorf("%w: value in layout %d, this program reads %d", store.ErrCorrupt, h.layout, inSegment)
	}
	return h, b[n:], nil
}

// mark says up to where a segment's records have heads in Badger, and of which file.
type mark struct {
	end int64
	sum uint32 // of the file, see segment.File.Sum
}

func markOf(segment uint64) []byte { return binary.BigEndian.AppendUint64([]byte(markKey), segment) }

func (m mark) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(m.end))
	b = binary.LittleEndian.AppendUint32(b, m.sum)
	return binary.LittleEndian.AppendUint32(b, store.Checksum(b))
}

// parseMark reads a mark; ok is false for a damaged one, which is ignored.
func parseMark(b []byte) (m mark, ok bool) {
	if len(b) != 16 || binary.LittleEndian.Uint32(b[12:]) != store.Checksum(b[:12]) {
		return m, false
	}
	return mark{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])}, true
}

// codec decompresses the chunks of values in layout 1. Several goroutines may use it.
type codec struct{ dec *zstd.Decoder }

func newCodec() (*codec, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(4*chunkBytes))
	if err != nil {
		return nil, err
	}
	return &codec{dec: dec}, nil
}

func (c *codec) close() { c.dec.Close() }

// decode appends a chunk's data to dst, at most chunkBytes of them.
func (c *codec) decode(dst []byte, encoding byte, stored []byte) ([]byte, error) {
	from := len(dst)
	switch encoding {
	case encodingRaw:
		dst = append(dst, stored...)
	case encodingZstd:
		// Decode into the room after dst: the decoder's memory limit counts everything that it
		// appends to.
		out, err := c.dec.DecodeAll(stored, dst[from:from])
		if err != nil {
			return nil, fmt.Errorf("%w: %s", store.ErrCorrupt, err.Error())
		}
		if len(out) > 0 && cap(dst) > from && &out[0] == &dst[:from+1][from] {
			dst = dst[:from+len(out)]
		} else {
			dst = append(dst, out...)
		}
	default:
		return nil, fmt.Errorf("%w: chunk in encoding %d", store.ErrCorrupt, encoding)
	}
	if len(dst)-from > chunkBytes {
		return nil, fmt.Errorf("%w: chunk of %d bytes", store.ErrCorrupt, len(dst)-from)
	}
	return dst, nil
}
