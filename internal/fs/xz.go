package fs

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz"
)

// xzReader decodes concatenated xz streams. The library takes a file that ends between
// two blocks, or within a block's header, for a whole one; so a clean end is believed
// only if the file's last bytes are the footer of a stream.
type xzReader struct {
	z   *xz.Reader
	raw *counter
}

func newXZReader(r io.Reader, raw *counter) (*xzReader, error) {
	z, err := xz.NewReader(r)
	return &xzReader{z, raw}, err
}

func (x *xzReader) Read(p []byte) (int, error) {
	n, err := x.z.Read(p)
	if err == io.EOF && !isXZFooter(x.raw.tail.bytes()) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// footerBytes is the length of a stream's footer: CRC32, size of the index, flags, YZ.
const footerBytes = 12

func isXZFooter(b []byte) bool {
	return len(b) == footerBytes && string(b[10:]) == "YZ" &&
		crc32.ChecksumIEEE(b[4:10]) == binary.LittleEndian.Uint32(b)
}

// tail keeps the last footerBytes bytes of a stream up to its last byte that is not
// zero: zeros are padding behind an xz stream.
type tail struct {
	last  []byte
	zeros int
}

func (t *tail) add(p []byte) {
	content := bytes.TrimRight(p, "\x00")
	if len(content) == 0 {
		t.zeros += len(p)
		return
	}
	if len(content) < footerBytes {
		t.last = append(t.last, make([]byte, min(t.zeros, footerBytes))...)
	}
	t.last = append(t.last, content[max(0, len(content)-footerBytes):]...)
	t.last = t.last[max(0, len(t.last)-footerBytes):]
	t.zeros = len(p) - len(content)
}

func (t *tail) bytes() []byte { return t.last }
