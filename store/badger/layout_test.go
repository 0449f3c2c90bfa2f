package badger

import (
	"encoding/binary"
	"testing"

	bdg "github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"taxon/store"
)

// firstHead makes a head entry in layout 1, as the version before wrote them.
func firstHead(key []byte, h head, encoding byte, inline []byte) []byte {
	b := append(make([]byte, 0, badgerHead+len(inline)), inBadger, encoding)
	b = binary.LittleEndian.AppendUint64(b, h.size)
	b = binary.LittleEndian.AppendUint32(b, h.crc32c)
	b = binary.LittleEndian.AppendUint32(b, chunksOf(h.size))
	b = binary.LittleEndian.AppendUint32(b, headSum(key, b))
	return append(b, inline...)
}

// packed is a zstd frame.
func packed(t testing.TB, data []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	return enc.EncodeAll(data, nil)
}

// putFirst writes a value as the version before did: in Badger.
func putFirst(t *testing.T, s *Store, v store.Value) {
	t.Helper()
	key := headKey(v.Key)
	h := head{size: uint64(len(v.Data)), crc32c: store.Checksum(v.Data)}
	err := s.db.Update(func(txn *bdg.Txn) error {
		if chunksOf(h.size) == 0 {
			return txn.Set(key, firstHead(key, h, encodingZstd, packed(t, v.Data)))
		}
		for i, data := uint32(1), v.Data; len(data) > 0; i++ {
			n := min(len(data), chunkBytes)
			if err := txn.Set(chunkKey(key, i), append([]byte{encodingZstd}, packed(t, data[:n])...)); err != nil {
				return err
			}
			data = data[n:]
		}
		return txn.Set(key, firstHead(key, h, encodingRaw, nil))
	})
	if err != nil {
		t.Fatal(err)
	}
}
