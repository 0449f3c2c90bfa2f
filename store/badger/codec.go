package badger

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"taxon/store"
)

// codec decompresses the chunks of values in layout 1. Its methods may be called from
// several goroutines.
type codec struct{ dec *zstd.Decoder }

func newCodec() (*codec, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(4*chunkBytes))
	if err != nil {
		return nil, err
	}
	return &codec{dec: dec}, nil
}

func (c *codec) close() { c.dec.Close() }

// decode appends a chunk's data to dst, at most chunkBytes of them.
func (c *codec) decode(dst []byte, encoding byte, stored []byte) ([]byte, error) {
	from := len(dst)
	switch encoding {
	case encodingRaw:
		dst = append(dst, stored...)
	case encodingZstd:
		// Into the room behind dst: the decoder's memory limit counts the
		// whole of what it appends to.
		out, err := c.dec.DecodeAll(stored, dst[from:from])
		if err != nil {
			return nil, fmt.Errorf("%w: %s", store.ErrCorrupt, err.Error())
		}
		if len(out) > 0 && cap(dst) > from && &out[0] == &dst[:from+1][from] {
			dst = dst[:from+len(out)]
		} else {
			dst = append(dst, out...)
		}
	default:
		return nil, fmt.Errorf("%w: chunk in encoding %d", store.ErrCorrupt, encoding)
	}
	if len(dst)-from > chunkBytes {
		return nil, fmt.Errorf("%w: chunk of %d bytes", store.ErrCorrupt, len(dst)-from)
	}
	return dst, nil
}
