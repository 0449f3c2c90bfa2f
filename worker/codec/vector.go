package codec

import (
	"encoding/binary"

	"taxon/internal/sparse"
)

// formatVector: a format byte, three zeros, a count (uint32, little-endian), then so many
// float64, which are aligned and read where they lie.
const (
	formatVector = 0x61
	headBytes    = 8
)

// Vector writes float64 numbers.
func Vector(v []float64) []byte {
	b := make([]byte, headBytes, headBytes+8*len(v))
	b[0] = formatVector
	binary.LittleEndian.PutUint32(b[4:], uint32(len(v)))
	return sparse.Append(b, v)
}

// ReadVector reads what Vector wrote of so many numbers; the result may alias b.
func ReadVector(b []byte, n int) ([]float64, error) {
	if len(b) < headBytes || binary.LittleEndian.Uint32(b) != formatVector ||
		int(binary.LittleEndian.Uint32(b[4:])) != n || len(b) != headBytes+8*n {
		return nil, ErrBroken
	}
	return sparse.View[float64](b[headBytes:]), nil
}
