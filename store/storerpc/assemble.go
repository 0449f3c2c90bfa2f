package storerpc

import (
	"fmt"

	"taxon/store"
)

// ChunkBytes is the most data that one message carries.
const ChunkBytes = 1 << 20

// trustBytes is how much is allocated on a sender's word; beyond it the buffer
// grows as bytes arrive.
const trustBytes = 16 << 20

// assembler joins the chunks of one value. The zero value is ready.
type assembler struct {
	data   []byte
	size   uint64
	begun  bool
	copied bool // data is ours; else it is the only chunk's own slice
}

// add takes the next chunk. size counts on the first chunk only. A value that is
// whole in its first chunk is not copied.
func (a *assembler) add(chunk []byte, size uint64) error {
	if len(chunk) > ChunkBytes {
		return fmt.Errorf("%w: chunk of %d bytes, at most %d", store.ErrInvalid, len(chunk), ChunkBytes)
	}
	if !a.begun {
		a.begun, a.size = true, size
		if uint64(len(chunk)) == size {
			a.data = chunk
			return nil
		}
		a.data, a.copied = make([]byte, 0, min(size, trustBytes)), true
	}
	if uint64(len(a.data))+uint64(len(chunk)) > a.size {
		return fmt.Errorf("%w: more bytes than the %d announced", store.ErrInvalid, a.size)
	}
	if len(chunk) > 0 && !a.copied {
		return fmt.Errorf("%w: bytes after a whole value", store.ErrInvalid)
	}
	a.data = append(a.data, chunk...)
	return nil
}

// finish gives the value's bytes (never nil) and makes the assembler ready anew.
func (a *assembler) finish() ([]byte, error) {
	data, size := a.data, a.size
	*a = assembler{}
	if uint64(len(data)) != size {
		return nil, fmt.Errorf("%w: %d bytes, %d announced", store.ErrInvalid, len(data), size)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// eachChunk cuts data and calls send for each part; an empty value has one.
func eachChunk(data []byte, send func(part []byte, first, last bool) error) error {
	for first := true; ; first = false {
		n := min(len(data), ChunkBytes)
		part := data[:n]
		data = data[n:]
		if err := send(part, first, len(data) == 0); err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
	}
}
