package codec

import (
	"encoding/binary"

	"taxon/internal/sparse"
)

// The formats: a format byte, three zeros, a count (uint32, little-endian), then so many float64,
// which are aligned and read where they lie, or float32.
const (
	formatVector = 0x61
	formatNarrow = 0x62
	headBytes    = 8
)

// Vector writes float64 numbers.
func Vector(v []float64) []byte { return sparse.Append(head(formatVector, len(v), 8), v) }

// Narrow writes them as float32.
func Narrow(v []float64) []byte {
	e := Encoder{head(formatNarrow, len(v), 4)}
	e.F64as32(v)
	return e.B
}

func head(format byte, n, size int) []byte {
	b := make([]byte, headBytes, headBytes+size*n)
	b[0] = format
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	return b
}

// ReadVector reads what Vector or Narrow wrote of so many numbers; the result may alias b.
func ReadVector(b []byte, n int) ([]float64, error) {
	if len(b) < headBytes || b[1]|b[2]|b[3] != 0 || int(binary.LittleEndian.Uint32(b[4:])) != n {
		return nil, ErrBroken
	}
	switch data := b[headBytes:]; {
	case b[0] == formatVector && len(data) == 8*n:
		return sparse.View[float64](data), nil
	case b[0] == formatNarrow && len(data) == 4*n:
		d, out := Decoder{B: data}, make([]float64, n)
		d.F32as64(out)
		return out, d.Err
	}
	return nil, ErrBroken
}
