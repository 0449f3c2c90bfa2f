// Package codec encodes and decodes the numbers that make up the values in the store: little-endian
// arrays, and index lists as uvarint differences. Methods lay out their values with it
// (store/FORMAT.md); it knows no method. A Decoder allocates nothing by itself, and no input makes
// it panic.
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"taxon/internal/linalg/sparse"
)

// ErrBroken says that a value does not have the layout that its name promises. The store has
// verified the checksum that the writer made, and processes of other protocols are refused when
// they connect. So the worker which wrote it is at fault; the key names it by task and attempt.
var ErrBroken = errors.New("value is malformed, and its checksum is right: the worker that wrote it has faulty " +
	"memory or a faulty program")

// Encoder appends to the byte slice B.
type Encoder struct{ B []byte }

// Extend appends n bytes of any content and returns them.
func (e *Encoder) Extend(n int) []byte {
	e.B = slices.Grow(e.B, n)
	at := len(e.B)
	e.B = e.B[:at+n]
	return e.B[at:]
}

// Byte appends a byte.
func (e *Encoder) Byte(v byte) { e.B = append(e.B, v) }

// Uvarint appends a number that is not negative, in 7 bits a byte.
func (e *Encoder) Uvarint(v int) { e.B = binary.AppendUvarint(e.B, uint64(v)) }

// F32 appends an array of float32 numbers.
func (e *Encoder) F32(v []float32) { e.B = sparse.Append(e.B, v) }

// F64as32 appends an array of float64 numbers, each rounded to float32.
func (e *Encoder) F64as32(v []float64) {
	at := e.Extend(4 * len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(at[4*i:], math.Float32bits(float32(x)))
	}
}

// F64 appends an array of float64 numbers.
func (e *Encoder) F64(v []float64) { e.B = sparse.Append(e.B, v) }

// Ascending appends strictly ascending indices as differences, the first one relative to lo.
func (e *Encoder) Ascending(v []uint32, lo uint32) {
	n := len(e.B)
	if cap(e.B)-n < binary.MaxVarintLen32*len(v) { // values are sized for less, before they are written
		for _, x := range v {
			e.B = binary.AppendUvarint(e.B, uint64(x-lo))
			lo = x
		}
		return
	}
	b := e.B[:cap(e.B)]
	for ; len(v) >= 4; v = v[4:] { // most differences fit a byte: four at a time
		d0, d1, d2, d3 := v[0]-lo, v[1]-v[0], v[2]-v[1], v[3]-v[2]
		lo = v[3]
		if (d0 | d1 | d2 | d3) < 0x80 {
			binary.LittleEndian.PutUint32(b[n:], d0|d1<<8|d2<<16|d3<<24)
			n += 4
			continue
		}
		for _, d := range [...]uint32{d0, d1, d2, d3} {
			n += binary.PutUvarint(b[n:], uint64(d))
		}
	}
	for _, x := range v {
		d := x - lo
		lo = x
		if d < 0x80 {
			b[n] = byte(d)
			n++
			continue
		}
		n += binary.PutUvarint(b[n:], uint64(d))
	}
	e.B = b[:n]
}

// Decoder reads what Encoder wrote. After the first error it reads everything as zero.
type Decoder struct {
	// B holds the bytes that are left to read.
	B []byte
	// Err is the first error, or nil.
	Err error
}

// Fail sets the decoder's error to ErrBroken, unless it has one.
func (d *Decoder) Fail() {
	if d.Err == nil {
		d.Err = ErrBroken
	}
	d.B = nil
}

// Byte reads a byte.
func (d *Decoder) Byte() byte {
	if len(d.B) == 0 {
		d.Fail()
		return 0
	}
	v := d.B[0]
	d.B = d.B[1:]
	return v
}

// Format reads a byte and fails if it is not the one given.
func (d *Decoder) Format(want byte) {
	if d.Byte() != want {
		d.Fail()
	}
}

// Count reads a number of items, and fails if the rest has fewer than `each` bytes for each of
// them.
func (d *Decoder) Count(each int) int {
	v, n := binary.Uvarint(d.B)
	if n <= 0 || v > uint64(len(d.B)-n)/uint64(max(each, 1)) {
		d.Fail()
		return 0
	}
	d.B = d.B[n:]
	return int(v)
}

// Number reads a number up to limit.
func (d *Decoder) Number(limit int) int {
	v, n := binary.Uvarint(d.B)
	if n <= 0 || v > uint64(limit) {
		d.Fail()
		return 0
	}
	d.B = d.B[n:]
	return int(v)
}

// Take reads n bytes, which alias the value. It returns nil if fewer are left.
func (d *Decoder) Take(n int) []byte {
	if n < 0 || n > len(d.B) {
		d.Fail()
		return nil
	}
	v := d.B[:n]
	d.B = d.B[n:]
	return v
}

// F32 fills dst with float32 numbers.
func (d *Decoder) F32(dst []float32) { words(d, 4, dst) }

// View32 reads n numbers. They alias the value if they are aligned.
func (d *Decoder) View32(n int) []float32 {
	if n < 0 {
		d.Fail()
		return nil
	}
	return sparse.View[float32](d.Take(4 * n))
}

// F64 fills dst with float64 numbers.
func (d *Decoder) F64(dst []float64) { words(d, 8, dst) }

// U16 fills dst with uint16 numbers.
func (d *Decoder) U16(dst []uint16) { words(d, 2, dst) }

// U32 fills dst with uint32 numbers. If F32 wrote them, they are the bits of the floats.
func (d *Decoder) U32(dst []uint32) { words(d, 4, dst) }

// words fills dst with words of a size.
func words[T sparse.Word](d *Decoder, size int, dst []T) {
	if raw := d.Take(size * len(dst)); raw != nil {
		sparse.Copy(dst, raw)
	}
}

// F32as64 fills dst with what F64as32 wrote.
func (d *Decoder) F32as64(dst []float64) {
	raw := d.Take(4 * len(dst))
	if raw == nil {
		return
	}
	for i := range dst {
		dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
}

// Ascending reads strictly ascending indices below limit into dst, the first one relative to lo.
func (d *Decoder) Ascending(dst []uint32, lo, limit uint32) {
	b, at, zero := d.B, uint64(lo), false
	for i := 0; i < len(dst); {
		for len(dst)-i >= 8 && len(b) >= 8 { // most differences fit a byte: eight at a time
			w := binary.LittleEndian.Uint64(b)
			if w&highBits != 0 {
				break
			}
			zero = zero || (w-lowBits)&highBits != 0 && (i > 0 || (w>>8-lowBits>>8)&highBits != 0)
			at = eight(dst[i:i+8], at, w)
			b, i = b[8:], i+8
		}
		for i < len(dst) { // up to the next longer one
			if len(b) == 0 {
				d.Fail()
				return
			}
			v := uint64(b[0])
			long := v >= 0x80
			if !long {
				b = b[1:]
			} else if len(b) > 1 && b[1] < 0x80 {
				v, b = v&0x7f|uint64(b[1])<<7, b[2:]
			} else {
				n := 0
				if v, n = binary.Uvarint(b); n <= 0 || v > math.MaxUint32 {
					d.Fail()
					return
				}
				b = b[n:]
			}
			zero = zero || v == 0 && i > 0
			at += v
			dst[i] = uint32(at)
			if i++; long {
				break
			}
		}
	}
	if zero || len(dst) > 0 && at >= uint64(limit) { // they ascend: the last is the largest
		d.Fail()
		return
	}
	d.B = b
}

// highBits and lowBits have the highest and the lowest bit of each of eight bytes set.
const (
	highBits = 0x8080808080808080
	lowBits  = 0x0101010101010101
)

// eight decodes eight indices into dst and returns the last one. w holds eight differences of one
// byte each, and at is the index before the first of them.
func eight(dst []uint32, at, w uint64) uint64 {
	_ = dst[7]
	v := uint32(at) // the caller refuses a last index that is too large
	v0 := v + uint32(w&0xff)
	v1 := v0 + uint32(w>>8&0xff)
	v2 := v1 + uint32(w>>16&0xff)
	v3 := v2 + uint32(w>>24&0xff)
	v4 := v3 + uint32(w>>32&0xff)
	v5 := v4 + uint32(w>>40&0xff)
	v6 := v5 + uint32(w>>48&0xff)
	v7 := v6 + uint32(w>>56)
	dst[0], dst[1], dst[2], dst[3], dst[4], dst[5], dst[6], dst[7] = v0, v1, v2, v3, v4, v5, v6, v7
	return at + uint64(v7-v)
}

// End fails if something is left to read. It returns the decoder's error, prefixed by what.
func (d *Decoder) End(what string) error {
	if d.Err == nil && len(d.B) > 0 {
		d.Err = ErrBroken
	}
	if d.Err != nil {
		return fmt.Errorf("%s: %w", what, d.Err)
	}
	return nil
}

// A vector consists of a format byte, three zeros, a count (uint32, little-endian) and that many
// numbers: float64, which are aligned and read in place, or float32.
const (
	// FormatVector begins what Vector encodes, and FormatNarrow what Narrow does.
	FormatVector = 0x61
	FormatNarrow = 0x62
	headBytes    = 8
)

// Vector encodes float64 numbers.
func Vector(v []float64) []byte { return sparse.Append(head(FormatVector, len(v), 8), v) }

// Narrow encodes float64 numbers as float32.
func Narrow(v []float64) []byte {
	e := Encoder{head(FormatNarrow, len(v), 4)}
	e.F64as32(v)
	return e.B
}

// head returns the head of a vector of n numbers, with room for numbers of a size in bytes.
func head(format byte, n, size int) []byte {
	b := make([]byte, headBytes, headBytes+size*n)
	b[0] = format
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	return b
}

// ReadVector decodes what Vector or Narrow encoded of n numbers. The result may alias b.
func ReadVector(b []byte, n int) ([]float64, error) {
	if len(b) < headBytes || b[1]|b[2]|b[3] != 0 || int(binary.LittleEndian.Uint32(b[4:])) != n {
		return nil, ErrBroken
	}
	switch data := b[headBytes:]; {
	case b[0] == FormatVector && len(data) == 8*n:
		return sparse.View[float64](data), nil
	case b[0] == FormatNarrow && len(data) == 4*n:
		d, out := Decoder{B: data}, make([]float64, n)
		d.F32as64(out)
		return out, d.Err
	}
	return nil, ErrBroken
}
