package fs

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxWindow bounds the history that a compressed stream may request. zstd --long and xz -9e need at
// most 128 MiB. It keeps a malicious header from allocating gigabytes.
const maxWindow = 128 << 20

// magics lists the first bytes of known kinds of files. The foreign kinds give an error with a
// remedy, instead of one about line 1.
var magics = append([]magic{
	{"gzip", "\x1f\x8b"},
	{"zstd", "\x28\xb5\x2f\xfd"},
	{"xz", "\xfd7zXZ\x00"},
	{"zip", "PK\x03\x04"},
	{"7z", "7z\xbc\xaf\x27\x1c"},
	{"lz4", "\x04\x22\x4d\x18"},
}, bzip2Magics()...)

type magic struct{ kind, magic string }

// bzip2Magics returns the possible headers of bzip2: "BZh", the block size, and the beginning of a
// block or of the end of an empty stream. Shorter prefixes could be text.
func bzip2Magics() (out []magic) {
	for size := range 9 {
		for _, block := range []string{"1AY&SY", "\x17\x72\x45\x38\x50\x90"} {
			out = append(out, magic{"bzip2", "BZh" + strconv.Itoa(size+1) + block})
		}
	}
	return out
}

// detect selects the decoder by the first bytes.
func (f *File) detect(r *bufio.Reader) error {
	var head []byte
	for n := 1; undecided(head); n++ {
		// read no more bytes than necessary, because later ones may take long to arrive
		var err error
		if head, err = r.Peek(n); err == io.EOF {
			break
		} else if err != nil {
			return f.explain(err)
		}
	}
	f.compression = kindOf(head)
	if f.compression == "zip" && strings.HasSuffix(strings.ToLower(f.name), ".npz") {
		f.compression = "none" // NumPy's archive, which table.Reader unpacks
	}
	switch f.compression {
	case "none":
		f.content = r
	case "bzip2":
		f.content = bzip2.NewReader(r) // bzip2.NewReader reads concatenated streams
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return f.explain(err)
		}
		f.content = z
	case "zstd":
		// the decoder has no goroutines of its own that could leak
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return f.explain(err)
		}
		f.content, f.release = z, z.Close
	case "xz":
		z, err := newXZReader(r, f.count)
		if err != nil {
			return f.explain(err)
		}
		f.content = z
	case "zip":
		return Inputf(f.name, 0, "is a zip archive, which is not read: export a workbook (.xlsx) as CSV, unpack "+
			"other archives, or pack with gzip, bzip2, zstd or xz; a matrix of SciPy's (.npz) must be a file of "+
			"that name, not standard input")
	default:
		return Inputf(f.name, 0, "%s compression is not supported: unpack it, or pack it with gzip, bzip2, zstd "+
			"or xz", f.compression)
	}
	return nil
}

// Compression returns the name of the compression that a file's first bytes show. It is empty if fs
// does not decompress the file.
func Compression(head []byte) string {
	switch kind := kindOf(head); kind {
	case "gzip", "bzip2", "zstd", "xz":
		return kind
	}
	return ""
}

// kindOf returns the compression that a file's first bytes show.
func kindOf(head []byte) string {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.kind
		}
	}
	// A zstd file may open with a skippable frame: 0x184D2A5?.
	if len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18" {
		return "zstd"
	}
	return "none"
}

// undecided reports whether further bytes may still show a compression.
func undecided(head []byte) bool {
	if kindOf(head) != "none" {
		return false
	}
	for _, m := range magics {
		if strings.HasPrefix(m.magic, string(head)) {
			return true
		}
	}
	const skippable = "\x2a\x4d\x18"
	return len(head) <= len(skippable) && head[0]&0xf0 == 0x50 && strings.HasPrefix(skippable, string(head[1:]))
}

// explain returns an error that says whether the file or the compressed stream is at fault.
func (f *File) explain(err error) error {
	switch {
	case f.count.err != nil:
		return Explain(f.name, f.count.err)
	case f.compression == "none":
		return Explain(f.name, err)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return &InputError{Path: f.name, Err: io.ErrUnexpectedEOF,
			Msg: "the " + f.compression + " stream is cut short: the file is incomplete, fetch or make it again"}
	}
	return Inputf(f.name, 0, "the %s stream is damaged: fetch or make the file again: %w", f.compression, err)
}

// xzReader decodes concatenated xz streams. The library accepts a file that ends between two
// blocks, or within a block's header, as complete. xzReader therefore accepts the end only if the
// file's last bytes are a stream's footer.
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

// tail keeps the last footerBytes bytes of a stream before any trailing zeros, because zeros may
// follow an xz stream as padding.
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
