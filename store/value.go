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

// Checksum returns the CRC32C of data.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// UpdateChecksum continues a CRC32C with further bytes.
func UpdateChecksum(sum uint32, data []byte) uint32 { return crc32.Update(sum, castagnoli, data) }

// Value is one value under its key. Data must not be changed once it was put, even if Put failed,
// because the store may keep the slice itself. The checksum reveals a violation at the next read.
type Value struct {
	Key  Key
	Data []byte
}

// ContentPrefix begins the names of values that are named by their content; the hexadecimal SHA-256
// of the bytes follows. A shard accepts no other bytes under such a name. So nobody can occupy it
// beforehand, and a reader who finds it has the right bytes.
const ContentPrefix = "sha256/"

// ContentName returns the name of a value that is named by its content.
func ContentName(data []byte) string {
	sum := sha256.Sum256(data)
	return ContentPrefix + hex.EncodeToString(sum[:])
}

// verifyName returns ErrInvalid if the name stands for another content.
func (v Value) verifyName() error {
	if strings.HasPrefix(v.Key.Name, ContentPrefix) && v.Key.Name != ContentName(v.Data) {
		return &KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: a value of this name must have that SHA-256",
			ErrInvalid)}
	}
	return nil
}

// Checksummed is a value with the checksum that was computed where the value was made.
type Checksummed struct {
	Key Key
	// Data is read-only. In answers, nil means that there is no value.
	Data   []byte
	CRC32C uint32
	// Verified says that the checksum was computed from this very slice, or compared with it, in
	// this process. Verify then does not read it again.
	Verified bool
}

// Sum computes the checksum of a value.
func Sum(v Value) Checksummed {
	return Checksummed{Key: v.Key, Data: v.Data, CRC32C: Checksum(v.Data), Verified: true}
}

// Verify returns ErrCorrupt, naming the key, if the data do not match the checksum.
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
