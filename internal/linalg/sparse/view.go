package sparse

import (
	"encoding/binary"
	"unsafe"
)

// Word is a type whose arrays files store as little-endian words.
type Word interface {
	uint16 | uint32 | uint64 | float32 | float64
}

// View returns b, whose length must be a multiple of the word's size, as an array of little-endian
// words. On a little-endian machine, and if b is aligned (a mapping is), the result aliases b.
// Otherwise it is a copy.
func View[T Word](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	n := len(b) / size
	if n == 0 {
		return []T{}
	}
	little := binary.NativeEndian.Uint16([]byte{1, 0}) == 1
	if little && uintptr(unsafe.Pointer(&b[0]))%uintptr(size) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
	}
	out := make([]T, n)
	Copy(out, b)
	return out
}

// Copy fills dst with the little-endian words at the beginning of b.
func Copy[T Word](dst []T, b []byte) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(dst) == 0 {
		return
	}
	b = b[:len(dst)*size]
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), len(b))
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		copy(raw, b)
		return
	}
	for i := 0; i < len(b); i += size {
		for j := range size {
			raw[i+j] = b[i+size-1-j]
		}
	}
}

// Append appends v as little-endian words to b. On little-endian machines it copies the memory of
// v.
func Append[T Word](b []byte, v []T) []byte {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(v) == 0 {
		return b
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*size)
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return append(b, raw...)
	}
	for i := 0; i < len(raw); i += size {
		for j := range size {
			b = append(b, raw[i+size-1-j])
		}
	}
	return b
}
