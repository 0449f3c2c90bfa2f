package storerpc

import (
	"fmt"

	"taxon/store"
)

const (
	// messageBytes and messageChunks bound one message. By default gRPC refuses messages over 4
	// MiB, and it copies each as a whole. 1 MiB is large against a message's overhead and far below
	// that bound. The heads of 1024 chunks take less than 256 KiB.
	messageBytes  = 1 << 20
	messageChunks = 1024
)

// wholeValue lets a chunk be as large as its value. Within one process chunks are not copied, so
// splitting a value only costs time.
const wholeValue = int(^uint(0) >> 1)

// packer gathers chunks into messages.
type packer[C any] struct {
	// chunkBytes is the size of the largest chunk.
	chunkBytes int
	send       func(chunks []C) error
	chunks     []C
	bytes      int
}

// value splits data into chunks, one for an empty value, and adds them.
func (p *packer[C]) value(data []byte, chunk func(part []byte, first, last bool) C) error {
	for first := true; ; first = false {
		n := min(len(data), p.chunkBytes)
		part := data[:n]
		data = data[n:]
		if err := p.add(chunk(part, first, len(data) == 0), n); err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
	}
}

// add appends a chunk of n bytes, and sends full messages.
func (p *packer[C]) add(c C, n int) error {
	if p.bytes > 0 && p.bytes+n > messageBytes || len(p.chunks) == messageChunks {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.chunks = append(p.chunks, c)
	p.bytes += n
	return nil
}

// flush sends what is left. The receiver may keep the slice.
func (p *packer[C]) flush() error {
	if len(p.chunks) == 0 {
		return nil
	}
	chunks := p.chunks
	p.chunks, p.bytes = nil, 0
	return p.send(chunks)
}

// trustBytes bounds how much is allocated because of an announced size. Beyond it the buffer grows
// as bytes arrive.
const trustBytes = 16 << 20

// assembler joins the chunks of one value. The zero value is ready for use.
type assembler struct {
	data  []byte
	size  uint64
	begun bool
	// copied says that data is a copy. Otherwise it is the slice of the only chunk.
	copied bool
}

// add takes the next chunk. Only the size of the first chunk counts. A value that fits into one
// chunk is not copied.
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

// finish returns the value's bytes, which are never nil, and resets the assembler.
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
