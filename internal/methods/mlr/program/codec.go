package program

import (
	"encoding/binary"

	"taxon/internal/linalg/sparse"
	"taxon/worker/codec"
)

// Values begin with eight bytes: a format byte, three zeros, and a count (uint32, little-endian).
// The arrays after them are aligned and are used in place. store/FORMAT.md has the layouts.
const (
	// formatPart is a contribution: count columns (uint32, ascending, padded to eight bytes),
	// followed by the float64 of all classes for each column.
	formatPart = 0x71
	headBytes  = 8
)

func head(format byte, count, more int) []byte {
	b := make([]byte, headBytes, headBytes+more)
	b[0] = format
	binary.LittleEndian.PutUint32(b[4:], uint32(count))
	return b
}

// body checks the header of a value. It returns the count and the bytes after the header.
func body(b []byte, format byte) (count int, rest []byte, err error) {
	if len(b) < headBytes || binary.LittleEndian.Uint32(b) != uint32(format) {
		return 0, nil, codec.ErrBroken
	}
	return int(binary.LittleEndian.Uint32(b[4:])), b[headBytes:], nil
}

// encodePart encodes a shard's contribution to a range: sums of len(columns) x classes.
func encodePart(columns []uint32, sums []float64) []byte {
	b := head(formatPart, len(columns), padded(len(columns))+8*len(sums))
	b = sparse.Append(b, columns)
	b = b[:headBytes+padded(len(columns))]
	return sparse.Append(b, sums)
}

// decodePart decodes a contribution to columns [lo, hi). The results may alias b.
func decodePart(b []byte, classes, lo, hi int) (columns []uint32, sums []float64, err error) {
	n, rest, err := body(b, formatPart)
	if err != nil || n > hi-lo || len(rest) != padded(n)+8*n*classes {
		return nil, nil, codec.ErrBroken
	}
	columns = sparse.View[uint32](rest[:4*n])
	for _, f := range columns {
		if int(f) < lo || int(f) >= hi {
			return nil, nil, codec.ErrBroken
		}
		lo = int(f) + 1
	}
	return columns, sparse.View[float64](rest[padded(n):]), nil
}

// padded returns the size in bytes of the given number of columns.
func padded(columns int) int { return (4*columns + 7) &^ 7 }
