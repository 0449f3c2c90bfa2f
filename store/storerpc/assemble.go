package storerpc

import (
	"fmt"

	"taxon/store"
)

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
