package table

import (
	"encoding/binary"
	"io"
)

// frames reads the LZ4 or Zstandard frames of a compressed buffer of an Arrow file. It computes a
// bound on their content from the block headers, without decompressing them (lz4_Frame_format.md,
// and RFC 8878, 3.1.1).
type frames struct {
	in     io.ReaderAt
	at, to int64
}

// uint reads a number of up to eight bytes. It returns 0 beyond the end.
func (f *frames) uint(n int64) (v uint64) {
	var b [8]byte
	if n <= f.to-f.at {
		if _, err := f.in.ReadAt(b[:n], f.at); err != nil {
			f.at = f.to
			return 0
		}
		v = binary.LittleEndian.Uint64(b[:])
	}
	f.at += n
	return v
}

// most returns an upper bound on the decompressed size of the frames.
func (f *frames) most() (total int64) {
	for f.at < f.to {
		switch magic := f.uint(4); {
		case magic == 0x184d2204:
			total += f.lz4()
		case magic == 0xfd2fb528:
			total += f.zstd()
		case magic&^0xf == 0x184d2a50: // a skippable frame
			f.at += int64(f.uint(4))
		default:
			return total
		}
	}
	return total
}

func (f *frames) lz4() (total int64) {
	flags, block := f.uint(1), f.uint(1)>>4&7
	bit := func(n int) int64 { return int64(flags >> n & 1) }
	f.at += 8*bit(3) + 4*bit(0) + 1 // the content's size, a dictionary, a checksum
	for f.at < f.to {
		size := int64(f.uint(4))
		if size == 0 {
			break
		}
		if packed := size & (1<<31 - 1); packed != size {
			size, total = packed, total+packed
		} else {
			total += min(int64(1)<<(8+2*block), 255*packed+64)
		}
		f.at += size + 4*bit(4)
	}
	f.at += 4 * bit(2)
	return total
}

func (f *frames) zstd() (total int64) {
	flags := f.uint(1)
	bit := func(n int) int64 { return int64(flags >> n & 1) }
	content := bit(5) // bytes of the content's size: 0 or 1, 2, 4, 8
	if kind := flags >> 6; kind != 0 {
		content = 1 << kind
	}
	f.at += 1 - bit(5) + []int64{0, 1, 2, 4}[flags&3] + content // the window, a dictionary
	for last := false; !last && f.at < f.to; {
		const raw, repeated, maxBlock = 0, 1, 128 << 10
		head := int64(f.uint(3))
		size := head >> 3
		last = head&1 == 1
		switch head >> 1 & 3 {
		case raw:
			total += size
		case repeated:
			total, size = total+size, 1
		default:
			total += maxBlock
		}
		f.at += size
	}
	f.at += 4 * bit(2)
	return total
}
