package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strings"
)

// castagnoli selects CRC32C, which amd64 and arm64 compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC32C of data.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// UpdateChecksum continues a CRC32C with further bytes.
func UpdateChecksum(sum uint32, data []byte) uint32 { return crc32.Update(sum, castagnoli, data) }

// Value is one value under its key. Data is immutable from the moment it is put,
// also if Put fails: the store may keep the slice itself, so the caller must not write
// to it again (a caller that does is found out by the checksum at the next read).
type Value struct {
	Key  Key
	Data []byte
}

// ContentPrefix begins the names of values that are named by their content: the SHA-256 of the
// bytes follows, in hex. A shard takes no other bytes under such a name. So nobody can fill it
// beforehand, and who finds it has what was meant.
const ContentPrefix = "sha256/"

// ContentName is the name of a value that is named by its content.
func ContentName(data []byte) string {
	sum := sha256.Sum256(data)
	return ContentPrefix + hex.EncodeToString(sum[:])
}

// verifyName reports ErrInvalid for a name that is that of another content.
func (v Value) verifyName() error {
	if strings.HasPrefix(v.Key.Name, ContentPrefix) && v.Key.Name != ContentName(v.Data) {
		return &KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: a value of this name must have that SHA-256", ErrInvalid)}
	}
	return nil
}

// Checksummed is a value with the checksum that was made where the value was made.
type Checksummed struct {
	Key    Key
	Data   []byte // nil: missing (in answers); read-only
	CRC32C uint32
	// Verified: the sum was made from or checked against this very slice in this
	// process, so Verify need not read it again.
	Verified bool
}

// Sum adds the checksum to a value.
func Sum(v Value) Checksummed {
	return Checksummed{Key: v.Key, Data: v.Data, CRC32C: Checksum(v.Data), Verified: true}
}

// Verify reports ErrCorrupt, naming the key, if the data do not match the sum.
func (s *Checksummed) Verify(op string) error {
	if s.Verified {
		return nil
	}
	if got := Checksum(s.Data); got != s.CRC32C {
		return &KeyError{Op: op, Key: s.Key, Err: fmt.Errorf("%w: CRC32C is %08x, must be %08x", ErrCorrupt, got, s.CRC32C)}
	}
	return nil
}

// Info describes a value without its data.
type Info struct {
	Key    Key
	Bytes  uint64
	CRC32C uint32
}
