package textio

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"taxon/internal/fs"
)

// foreign lists the first bytes of common files that are not UTF-8 text, and the kind of each.
var foreign = []struct{ magic, is string }{
	{"\xff\xfe\x00\x00", wide32}, {"\x00\x00\xfe\xff", wide32},
	{"\xff\xfe", wide16}, {"\xfe\xff", wide16},
	{"PAR1", "is a Parquet file, whatever its name: say ‹data-format=parquet›"},
	{"ARROW1", "is an Arrow file, whatever its name: say ‹data-format=arrow›"},
	{"FEA1", "is a Feather file of version 1, whatever its name: write version 2"},
	{"\xff\xff\xff\xff", "is a stream of Arrow record batches, whatever its name: write it anew with " +
		"pyarrow.ipc.new_file"},
	{"\x93NUMPY", "is a NumPy array, whatever its name: say ‹data-format=npy›"},
	{"PK\x03\x04", "is a zip archive, as workbooks (.xlsx) and SciPy's matrices (.npz) are: unpack it, export " +
		"the sheet as CSV"},
	{"\xd0\xcf\x11\xe0", "is an old workbook (.xls) or another Office file: export it as CSV"},
	{"\x89HDF", "is an HDF5 file: export it as CSV or Parquet"},
	{"SQLite format 3\x00", "is a SQLite database: export the table as CSV"},
	{"Obj\x01", "is an Avro file: convert it to Parquet or JSON lines"},
	{"ORC", "is an ORC file: convert it to Parquet"},
	{"%PDF-", "is a PDF file"},
}

// The first header of a tar archive has tarMagic at byte tarAt.
const (
	tarAt    = 257
	tarMagic = "ustar"
)

const (
	wide16 = "is UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
	wide32 = "is UTF-32: convert it to UTF-8 (iconv -f UTF-32 -t UTF-8)"
)

// Foreign returns an error that names the kind of a file if its first bytes show that it is not
// UTF-8 text. It returns nil if the file may be text.
func Foreign(head []byte) error {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) && (f.magic != "PAR1" && f.magic != "ORC" || bytes.ContainsFunc(head,
			isBinary)) {
			return errors.New("the file " + f.is)
		}
	}
	if len(head) >= tarAt+len(tarMagic) && string(head[tarAt:tarAt+len(tarMagic)]) == tarMagic {
		return errors.New("the file is a tar archive: unpack it (tar -xf FILE), and give what is within")
	}
	if kind := fs.Compression(head); kind != "" {
		return fmt.Errorf("the file was compressed twice, by %s within: unpack it once", kind)
	}
	// without a byte order mark, ASCII text in UTF-32 has three zero bytes of four, and in UTF-16
	// every other byte is zero
	if len(head) >= 4 && bytes.Count(head[:4], []byte{0}) == 3 && (head[0] == 0) != (head[3] == 0) {
		return errors.New("the file is UTF-32 without a byte order mark: convert it to UTF-8 (iconv -f UTF-32" +
			endian(head[0] != 0) + " -t UTF-8)")
	}
	if len(head) < 2 || bytes.Count(head[:2], []byte{0}) != 1 {
		return nil
	}
	zero := 0
	if head[1] == 0 {
		zero = 1
	}
	for i := range head[:min(len(head), 64)] {
		if i%2 == zero && head[i] != 0 && i < 8 {
			return nil
		}
	}
	return fmt.Errorf("the file is UTF-16 without a byte order mark: convert it to UTF-8 (iconv -f UTF-16%s -t "+
		"UTF-8)", endian(zero == 1))
}

// endian returns the suffix of an encoding's name for characters with the low byte first, or last.
func endian(low bool) string {
	if low {
		return "LE"
	}
	return "BE"
}

// isBinary reports whether a character occurs in binary files only.
func isBinary(c rune) bool { return c < '\t' || c > '\r' && c < ' ' || c == utf8.RuneError }
