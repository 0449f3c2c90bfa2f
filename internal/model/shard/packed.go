package shard

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"taxon/internal/data/table"
)

// A packed shard holds the differences of a pruned model column by column: a header of 32 bytes,
// the values of all entries, the number of entries of each column, and the entries' nodes as gaps.
// Numbers and gaps are varints. See FORMAT.md.
const (
	packedMagic   = "TXPACKED"
	packedHeader  = 32
	packedVersion = 2
)

// PackedName returns the name of packed shard i.
func PackedName(i int) string { return fmt.Sprintf("packed-%05d.bin", i) }

// Packed is a range of columns of a pruned model. bytes and values alias the mapped file.
type Packed struct {
	// first is the first column.
	first int
	// begin[i] to begin[i+1] are the entries of column first+i. Their gaps start at
	// gaps[gapsAt[i]].
	begin  []uint32
	gapsAt []uint32
	gaps   []byte
	// values is nil if the values are halves or bytes.
	values []float32
	// halves holds float16 values.
	halves []uint16
	// bytes holds signed multiples of the column's scale.
	bytes []byte
	// scale holds the scale of column first+i, for bytes.
	scale []float32
}

// The forms of stored differences: float32, float16, or signed bytes times a scale per column.
const (
	Singles = "float32"
	Halves  = "float16"
	Bytes   = "int8"
)

// Values lists the forms.
var Values = []string{Singles, Halves, Bytes}

// valueBytes is the size of a value in each form, and scaleBytes the size of a column's scale, in
// bytes.
var valueBytes = map[string]int64{Singles: 4, Halves: 2, Bytes: 1}

const scaleBytes = 2

// value returns the difference of entry k, which belongs to column first+i.
func (s *Packed) value(i int, k uint32) float32 {
	switch {
	case s.values != nil:
		return s.values[k]
	case s.bytes != nil:
		return s.scale[i] * float32(int8(s.bytes[k]))
	}
	return table.Half(s.halves[k])
}

// AppendPacked appends a shard with the columns from first on, of counts[i] entries each. Their
// nodes (ascending within a column) and deltas are concatenated. scale holds the scale of each
// column if values are bytes.
func AppendPacked(b []byte, first int, counts, nodes []uint32, deltas []float32, values string,
	scale []float32) []byte {
	size := uint32(valueBytes[values])
	b = append(b, packedMagic...)
	for _, u := range []uint32{packedVersion, uint32(first), uint32(len(counts)), size} {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(nodes)))
	for _, x := range scale {
		b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(x)>>16))
	}
	for i, n := range counts {
		for _, d := range deltas[:n] {
			switch values {
			case Halves:
				b = binary.LittleEndian.AppendUint16(b, toHalf(d))
			case Bytes:
				b = append(b, byte(toByte(float64(d), scale[i])))
			default:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(d))
			}
		}
		deltas = deltas[n:]
	}
	for _, n := range counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, n := range counts {
		next := uint32(0) // the smallest node that may follow
		for _, node := range nodes[:n] {
			b = binary.AppendUvarint(b, uint64(node-next))
			next = node + 1
		}
		nodes = nodes[n:]
	}
	return b
}

// ParsePacked opens a shard of the columns first..first+columns-1 of a model with a number of
// nodes. It checks every number, so later passes can index unchecked.
func ParsePacked(b []byte, first, columns, nodes int) (*Packed, error) {
	if len(b) < packedHeader || string(b[:len(packedMagic)]) != packedMagic {
		return nil, fmt.Errorf("not a shard of packed weights")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != packedVersion {
		return nil, fmt.Errorf("shard version %d, want %d", v, packedVersion)
	}
	if f, n := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:]); int64(f) != int64(first) ||
		int64(n) != int64(columns) {
		return nil, fmt.Errorf("holds %d columns from %d, want %d from %d", n, f, columns, first)
	}
	size, entries := uint64(binary.LittleEndian.Uint32(b[20:])), binary.LittleEndian.Uint64(b[24:])
	if size != 4 && size != 2 && size != 1 {
		return nil, fmt.Errorf("values of %d bytes, want 4, 2 or 1", size)
	}
	if nodes < 0 || nodes > math.MaxInt32 {
		return nil, fmt.Errorf("a model of %d nodes", nodes)
	}
	rest := b[packedHeader:]
	if size == 1 && columns >= 0 && columns <= len(rest)/scaleBytes {
		rest = rest[scaleBytes*columns:]
	}
	if entries > math.MaxUint32 || entries > uint64(len(rest))/(size+1) || columns < 0 || columns > len(rest) {
		return nil, fmt.Errorf("too short for %d entries in %d columns", entries, columns)
	}
	s := &Packed{first: first, begin: make([]uint32, columns+1), gapsAt: make([]uint32, columns)}
	switch size {
	case 4:
		s.values = float32s(rest[:4*entries])
	case 2:
		s.halves = numbers[uint16](rest[:2*entries])
	default:
		s.bytes, s.scale = rest[:entries:entries], make([]float32, columns)
		for i := range s.scale {
			s.scale[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[packedHeader+scaleBytes*i:])) << 16)
			if x := s.scale[i]; !(x >= 0) || math.IsInf(float64(x), 0) {
				return nil, fmt.Errorf("column %d: a scale of %v", first+i, x)
			}
		}
	}
	if err := s.parseGaps(rest[size*entries:], uint32(entries), nodes); err != nil {
		return nil, err
	}
	return s, s.checkValues()
}

// parseGaps reads the counts and gaps after the values.
func (s *Packed) parseGaps(rest []byte, entries uint32, nodes int) error {
	for i := range s.gapsAt {
		n, width := uvarint(rest)
		if width == 0 || n > entries-s.begin[i] {
			return fmt.Errorf("column %d: no number of entries", s.first+i)
		}
		s.begin[i+1], rest = s.begin[i]+n, rest[width:]
	}
	if s.begin[len(s.gapsAt)] != entries {
		return fmt.Errorf("columns hold %d entries, the header says %d", s.begin[len(s.gapsAt)], entries)
	}
	if uint64(len(rest)) > math.MaxUint32 {
		return fmt.Errorf("%d bytes of gaps: more than can be counted", len(rest))
	}
	s.gaps = rest
	at := 0
	for i := range s.gapsAt {
		s.gapsAt[i] = uint32(at)
		next := uint64(0)
		for range s.begin[i+1] - s.begin[i] {
			if at < len(rest) && rest[at] < 0x80 && next < uint64(nodes) && next+uint64(rest[at]) < uint64(nodes) {
				// This is nearly always so.
				next += uint64(rest[at]) + 1
				at++
				continue
			}
			gap, width := uvarint(rest[at:])
			next += uint64(gap) + 1
			if width == 0 || next > uint64(nodes) {
				return fmt.Errorf("column %d: an entry beyond the %d nodes", s.first+i, nodes)
			}
			at += width
		}
	}
	if at != len(rest) {
		return fmt.Errorf("%d bytes after the last column", len(rest)-at)
	}
	return nil
}

// checkValues verifies that all values are finite and none is zero.
func (s *Packed) checkValues() error {
	for i := range s.gapsAt {
		for k := s.begin[i]; k < s.begin[i+1]; k++ {
			if v := s.value(i, k); v-v != 0 || v == 0 || s.bytes != nil && s.bytes[k] == 0x80 {
				// A byte below -127 is never written.
				return fmt.Errorf("entry %d: %v is no difference", k, v)
			}
		}
	}
	return nil
}

// GapBytes returns the number of bytes of a gap, or of a number of entries.
func GapBytes(n uint32) int { return max(1, (bits.Len32(n)+6)/7) }

// PackedBytes returns the size of a shard with counts[i] entries in each column, without the gaps.
func PackedBytes(counts []uint32, values string) int64 {
	bytes := int64(packedHeader)
	for _, n := range counts {
		bytes += int64(n)*valueBytes[values] + int64(GapBytes(n))
		if values == Bytes {
			bytes += scaleBytes
		}
	}
	return bytes
}

// uvarint reads a number of at most 32 bits in its shortest form. A width of 0 means that there is
// none.
func uvarint(b []byte) (n uint32, width int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint32(b[0]), 1
	}
	u, w := binary.Uvarint(b)
	if w <= 0 || u > math.MaxUint32 || b[w-1] == 0 {
		return 0, 0
	}
	return uint32(u), w
}

// Range returns the shard's first column and the one after its last.
func (s *Packed) Range() (first, end int) { return s.first, s.first + len(s.gapsAt) }

// Each calls visit with the node and the difference of every entry of a column of the shard.
func (s *Packed) Each(column int, visit func(node uint32, delta float32)) {
	i := column - s.first
	at, next := int(s.gapsAt[i]), uint32(0)
	for k := s.begin[i]; k < s.begin[i+1]; k++ {
		gap, width := uvarint(s.gaps[at:])
		at += width
		visit(next+gap, s.value(i, k))
		next += gap + 1
	}
}

// Round returns the value that a difference has after it is stored in a form. scale is its
// column's, for bytes.
func Round(d float64, values string, scale float32) float32 {
	switch values {
	case Halves:
		return table.Half(toHalf(float32(d)))
	case Bytes:
		return scale * float32(toByte(d, scale))
	}
	return float32(d)
}

// toHalf rounds v to the nearest number of IEEE 754 binary16. Ties go to the even one, and numbers
// beyond the range become infinite.
func toHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign, b := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case b >= 0x7f800000: // infinity or NaN
		if b > 0x7f800000 {
			return sign | 0x7e00
		}
		return sign | 0x7c00
	case b >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case b < 0x33000000: // below half of the smallest subnormal, 2^-25
		return sign
	case b < 0x38800000:
		// Subnormal in binary16: shift the mantissa with its leading one.
		shift := 126 - b>>23
		return sign | uint16(roundShift(b&0x7fffff|0x800000, shift))
	}
	return sign | uint16(roundShift(b-0x38000000, 13))
}

// roundShift returns b >> n, rounded to nearest, ties to even.
func roundShift(b, n uint32) uint32 {
	return (b + (1<<(n-1) - 1) + b>>n&1) >> n
}

// toByte rounds v/scale to the nearest signed byte and clips it to the range.
func toByte(v float64, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(max(-math.MaxInt8, min(math.MaxInt8, math.RoundToEven(v/float64(scale)))))
}

// Scale returns the scale of a column's bytes, such that math.MaxInt8 times the scale is the
// column's largest difference. It is rounded up to the first 16 bits of a float32.
func Scale(largest float32) float32 {
	bits := math.Float32bits(largest / math.MaxInt8)
	if bits&0xffff != 0 {
		bits = bits&^0xffff + 1<<16
	}
	return math.Float32frombits(bits)
}
