// Package shard defines the bytes of a model's weights: by node, as records, and by column, packed.
// It also has the walk that converts records to vectors. Package model has the rest of a model's
// folder.
package shard

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// A weight shard is a header of 16 bytes (magic, u32 version, u32 first node) followed by one
// record per node. All numbers are little-endian. Every field is at a multiple of four bytes, so a
// mapped shard is used in place. See FORMAT.md.
const (
	shardMagic     = "TXWEIGHT"
	shardHeader    = 16
	recordHeader   = 8
	recordVersion  = 1
	bytesPerWeight = 8
)

// Name returns the name of weight shard i.
func Name(i int) string { return fmt.Sprintf("weights-%05d.bin", i) }

// AppendHeader appends the header of a weight shard that starts at node first.
func AppendHeader(b []byte, first int) []byte {
	b = append(b, shardMagic...)
	b = binary.LittleEndian.AppendUint32(b, recordVersion)
	return binary.LittleEndian.AppendUint32(b, uint32(first))
}

// AppendRecord appends node n's record: u32 node, u32 count, the columns, the values.
// weights_sha256 is the digest of these bytes in node order.
func AppendRecord(b []byte, n int, columns []uint32, values []float32) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(columns)))
	return appendWords(appendWords(b, columns), values)
}

// Record holds one node's overrides. Its slices alias the shard.
type Record struct {
	Columns []uint32
	Values  []float32
}

// Parse returns the records of nodes first..first+nodes-1 in b. It checks every column and value,
// so later passes can index unchecked. columns is the vectors' width.
func Parse(b []byte, first, nodes, columns int) ([]Record, error) {
	if len(b) < shardHeader || string(b[:len(shardMagic)]) != shardMagic {
		return nil, fmt.Errorf("not a weight shard")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != recordVersion {
		return nil, fmt.Errorf("shard version %d, want %d", v, recordVersion)
	}
	if f := binary.LittleEndian.Uint32(b[12:]); int64(f) != int64(first) {
		return nil, fmt.Errorf("begins with node %d, want %d", f, first)
	}
	if nodes < 0 || nodes > (len(b)-shardHeader)/recordHeader {
		return nil, fmt.Errorf("too short for %d nodes", nodes)
	}
	records := make([]Record, nodes)
	rest := b[shardHeader:]
	for i := range records {
		if len(rest) < recordHeader {
			return nil, fmt.Errorf("ends before node %d", first+i)
		}
		n, count := binary.LittleEndian.Uint32(rest), uint64(binary.LittleEndian.Uint32(rest[4:]))
		rest = rest[recordHeader:]
		if int64(n) != int64(first+i) {
			return nil, fmt.Errorf("record of node %d where node %d belongs", n, first+i)
		}
		if count*bytesPerWeight > uint64(len(rest)) {
			return nil, fmt.Errorf("ends within node %d", n)
		}
		r := Record{Columns: numbers[uint32](rest[:4*count]), Values: float32s(rest[4*count : 8*count])}
		if err := r.Check(columns); err != nil {
			return nil, fmt.Errorf("node %d: %w", n, err)
		}
		records[i] = r
		rest = rest[8*count:]
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%d bytes after the last record", len(rest))
	}
	return records, nil
}

// Check verifies that columns are strictly ascending and below width, and that values are finite.
func (r Record) Check(width int) error {
	if r.sound(width) {
		return nil
	}
	last := int64(-1)
	for _, c := range r.Columns {
		if int64(c) <= last {
			return fmt.Errorf("column %d after %d: columns must ascend", c, last)
		}
		last = int64(c)
	}
	if last >= int64(width) {
		return fmt.Errorf("column %d of %d", last, width)
	}
	for i, v := range r.Values {
		if v-v != 0 {
			return fmt.Errorf("column %d: weight %v is not finite", r.Columns[i], v)
		}
	}
	return nil
}

// sound does what Check does, without branches in its loops, because opening a model reads every
// weight. A column that does not ascend sets the top bit of one sum, an exponent of all ones that
// of the other.
func (r Record) sound(width int) bool {
	last, descends := int64(-1), int64(0)
	for _, c := range r.Columns {
		descends |= int64(c) - last - 1
		last = int64(c)
	}
	infinite := uint32(0)
	for _, v := range r.Values {
		infinite |= math.Float32bits(v)&0x7fffffff + 0x00800000
	}
	return descends >= 0 && infinite < 1<<31 && last < int64(width)
}

// littleEndian reports whether mapped bytes can be used as numbers without conversion.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// numbers views b as little-endian numbers: in place if machine and alignment permit it, otherwise
// as a copy.
func numbers[T uint16 | uint32](b []byte) []T {
	size := int(unsafe.Sizeof(T(0)))
	if len(b) == 0 {
		return nil
	}
	if littleEndian && uintptr(unsafe.Pointer(&b[0]))%uintptr(size) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/size)
	}
	out := make([]T, len(b)/size)
	for i := range out {
		for k := size - 1; k >= 0; k-- {
			out[i] = out[i]<<8 | T(b[size*i+k])
		}
	}
	return out
}

// float32s does what numbers does, for float32.
func float32s(b []byte) []float32 {
	u := numbers[uint32](b)
	if len(u) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&u[0])), len(u))
}

// appendWords appends v's little-endian words to b.
func appendWords[T uint32 | float32](b []byte, v []T) []byte {
	if len(v) == 0 {
		return b
	}
	if littleEndian {
		return append(b, unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))...)
	}
	for _, u := range unsafe.Slice((*uint32)(unsafe.Pointer(&v[0])), len(v)) {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	return b
}
