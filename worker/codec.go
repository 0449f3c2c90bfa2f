package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"taxon/internal/sparse"
)

// The values that tasks write to the store are little-endian, begin with a format byte
// and hold index lists as uvarint differences. store/FORMAT.md has the diagrams.
const (
	formatState1        = 0x11 // read only
	formatState         = 0x12
	formatContributions = 0x21
	formatVectors       = 0x31
	formatOverrides     = 0x41
	formatSmooth        = 0x51
)

// errBroken says that a value's bytes are not what its name promises. The store has
// verified their checksum, so it is a matter of versions, not of luck.
var errBroken = errors.New("value has another format: written by a different version of taxon")

// encoder appends to a byte slice.
type encoder struct{ b []byte }

// extend makes room for n more bytes and returns them.
func (e *encoder) extend(n int) []byte {
	e.b = slices.Grow(e.b, n)
	at := len(e.b)
	e.b = e.b[:at+n]
	return e.b[at:]
}

func (e *encoder) byte(v byte)     { e.b = append(e.b, v) }
func (e *encoder) uvarint(v int)   { e.b = binary.AppendUvarint(e.b, uint64(v)) }
func (e *encoder) f32(v []float32) { e.b = sparse.Append(e.b, v) }

// f64as32 rounds to float32.
func (e *encoder) f64as32(v []float64) {
	at := e.extend(4 * len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(at[4*i:], math.Float32bits(float32(x)))
	}
}

func (e *encoder) f64(v []float64) { e.b = sparse.Append(e.b, v) }

// ascending writes strictly ascending indices, the first one relative to lo.
func (e *encoder) ascending(v []uint32, lo uint32) {
	n := len(e.b)
	if cap(e.b)-n < binary.MaxVarintLen32*len(v) { // values are sized for less, before they are written
		for _, x := range v {
			e.b = binary.AppendUvarint(e.b, uint64(x-lo))
			lo = x
		}
		return
	}
	b := e.b[:cap(e.b)]
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
	e.b = b[:n]
}

// decoder reads what encoder wrote; after the first error everything reads as zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errBroken
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) format(want byte) {
	if d.byte() != want {
		d.fail()
	}
}

// count reads a number of items that take at least `each` bytes each of the rest.
func (d *decoder) count(each int) int {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > uint64(len(d.b)-n)/uint64(max(each, 1)) {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return int(v)
}

// number reads a plain number up to limit.
func (d *decoder) number(limit int) int {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > uint64(limit) {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return int(v)
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) f32(dst []float32) {
	raw := d.take(4 * len(dst))
	if raw == nil {
		return
	}
	sparse.Copy(dst, raw)
}

// f32as64 reads what f64as32 wrote.
func (d *decoder) f32as64(dst []float64) {
	raw := d.take(4 * len(dst))
	if raw == nil {
		return
	}
	for i := range dst {
		dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
}

func (d *decoder) f64(dst []float64) {
	raw := d.take(8 * len(dst))
	if raw == nil {
		return
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
}

func (d *decoder) u16(dst []uint16) {
	raw := d.take(2 * len(dst))
	if raw == nil {
		return
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
}

// ascending reads strictly ascending indices below limit into dst.
func (d *decoder) ascending(dst []uint32, lo, limit uint32) {
	b, at, zero := d.b, uint64(lo), false
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
				d.fail()
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
					d.fail()
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
		d.fail()
		return
	}
	d.b = b
}

// Eight bytes' high and low bits.
const (
	highBits = 0x8080808080808080
	lowBits  = 0x0101010101010101
)

// eight adds up eight differences of a byte each, from at on; the last sum is returned.
func eight(dst []uint32, at, w uint64) uint64 {
	_ = dst[7]
	v := uint32(at) // the caller looks whether the sum went beyond
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

// end demands that everything was read.
func (d *decoder) end(what string) error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errBroken
	}
	if d.err != nil {
		return fmt.Errorf("%s: %w", what, d.err)
	}
	return nil
}
