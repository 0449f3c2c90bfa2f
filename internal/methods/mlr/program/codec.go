package program

import (
	"encoding/binary"

	"taxon/internal/linalg/sparse"
	"taxon/worker/codec"
)

// Values begin with eight bytes: a format byte, three zeros, a count (uint32, little-endian).
// The arrays behind them are aligned, and are read where they lie. See store/FORMAT.md.
const (
	// count columns (uint32, ascending, padded to eight bytes), then float64 of all classes for each
	formatPart = 0x71
	headBytes  = 8
)

func head(format byte, count, more int) []byte {
	b := make([]byte, headBytes, headBytes+more)
	b[0] = format
	binary.LittleEndian.PutUint32(b[4:], uint32(count))
	return b
}

// body checks the head and returns the count and what is behind.
func body(b []byte, format byte) (count int, rest []byte, err error) {
	if len(b) < headBytes || binary.LittleEndian.Uint32(b) != uint32(format) {
		return 0, nil, codec.ErrBroken
	}
	return int(binary.LittleEndian.Uint32(b[4:])), b[headBytes:], nil
}

// encodePart writes a shard's contribution to a range: sums of len(columns) x classes.
func encodePart(columns []uint32, sums []float64) []byte {
	b := head(formatPart, len(columns), padded(len(columns))+8*len(sums))
	b = sparse.Append(b, columns)
	b = b[:headBytes+padded(len(columns))]
	return sparse.Append(b, sums)
}

// decodePart reads a contribution to columns [lo, hi); the results may alias b.
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

// padded is the size of so many columns.
func padded(columns int) int { return (4*columns + 7) &^ 7 }
