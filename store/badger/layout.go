package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"taxon/store"
)

const (
	// formatKey holds the format version; no job id starts with NUL.
	formatKey     = "\x00taxon-store"
	formatVersion = 1

	// chunkBytes is the data of one entry before compression: well below
	// Badger's bounds on entries, large enough to compress well.
	chunkBytes = 256 << 10

	headVersion = 1
	headBytes   = 22 // before the inline data

	encodingRaw  = 0
	encodingZstd = 1
)

// head describes a value; it is the first of its entries.
type head struct {
	size   uint64 // of the value
	crc32c uint32 // of the value
	chunks uint32 // entries that follow; 0: the data are inline
}

// chunksOf is the number of chunk entries of a value; small ones have none.
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

// parseEntryKey tells the value that an entry belongs to and which entry it is: 0 is
// the head.
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

// encodeHead makes the head entry; inline is empty if chunks follow.
func encodeHead(key []byte, h head, encoding byte, inline []byte) []byte {
	b := make([]byte, 0, headBytes+len(inline))
	b = append(b, headVersion, encoding)
	b = binary.LittleEndian.AppendUint64(b, h.size)
	b = binary.LittleEndian.AppendUint32(b, h.crc32c)
	b = binary.LittleEndian.AppendUint32(b, h.chunks)
	b = binary.LittleEndian.AppendUint32(b, headSum(key, b))
	return append(b, inline...)
}

// headSum covers the entry key too, so a head found under another key is refused.
func headSum(key, fields []byte) uint32 {
	return store.UpdateChecksum(store.Checksum(key), fields)
}

// parseHead checks a head entry and splits off the inline data.
func parseHead(key, b []byte) (h head, encoding byte, inline []byte, err error) {
	if len(b) < headBytes || binary.LittleEndian.Uint32(b[18:]) != headSum(key, b[:18]) {
		return h, 0, nil, fmt.Errorf("%w: head of the value", store.ErrCorrupt)
	}
	if b[0] != headVersion {
		return h, 0, nil, fmt.Errorf("%w: value in layout %d, this program reads %d", store.ErrCorrupt, b[0], headVersion)
	}
	h = head{
		size:   binary.LittleEndian.Uint64(b[2:]),
		crc32c: binary.LittleEndian.Uint32(b[10:]),
		chunks: binary.LittleEndian.Uint32(b[14:]),
	}
	if h.chunks != chunksOf(h.size) {
		return h, 0, nil, fmt.Errorf("%w: %d bytes in %d chunks", store.ErrCorrupt, h.size, h.chunks)
	}
	return h, b[1], b[headBytes:], nil
}

// codec compresses chunks. Its methods may be called from several goroutines.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
	// pass counts, for each kind of value, chunks that are not worth trying.
	pass [256]atomic.Int32
}

// passChunks are left as they are after a chunk of their kind that shrank by less than a
// quarter: a task's floating-point numbers hardly shrink, and trying to takes longer than
// all else that a shard does with them.
const passChunks = 31

// kindOf tells values apart that differ in what they hold: a task's output by the name's
// first part, such as "dual" or "v".
func kindOf(k store.Key) uint8 {
	name, _, _ := strings.Cut(k.Name, "/")
	return uint8(xxhash.Sum64String(name))
}

func newCodec() (*codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(chunkBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(4*chunkBytes))
	if err != nil {
		return nil, errors.Join(err, enc.Close())
	}
	return &codec{enc: enc, dec: dec}, nil
}

func (c *codec) close() error {
	c.dec.Close()
	return c.enc.Close()
}

// encode gives a chunk's stored form, compressed if that was worth it lately for its
// kind. The result may be the data themselves.
func (c *codec) encode(kind uint8, data []byte) (encoding byte, stored []byte) {
	if len(data) < 64 || c.pass[kind].Add(-1) >= 0 { // else smaller than what compression could gain
		return encodingRaw, data
	}
	packed := c.enc.EncodeAll(data, make([]byte, 0, len(data)))
	if 4*len(packed) > 3*len(data) {
		c.pass[kind].Store(passChunks)
	} else {
		c.pass[kind].Store(0)
	}
	if len(packed) >= len(data) {
		return encodingRaw, data
	}
	return encodingZstd, packed
}

// decode appends a chunk's data to dst, at most chunkBytes of them.
func (c *codec) decode(dst []byte, encoding byte, stored []byte) ([]byte, error) {
	from := len(dst)
	switch encoding {
	case encodingRaw:
		dst = append(dst, stored...)
	case encodingZstd:
		// Into the room behind dst: the decoder's memory limit counts the
		// whole of what it appends to.
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
