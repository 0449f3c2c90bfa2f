package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// binaryKinds describes the binary formats, by their names in Formats: their first bytes and their
// names in messages.
var binaryKinds = map[string]struct{ magic, name string }{
	"parquet": {"PAR1", "Parquet file"},
	"arrow":   {"ARROW1", "Arrow file"},
	"npy":     {"\x93NUMPY", "NumPy array (.npy)"},
	"npz":     {"PK\x03\x04", ".npz file"},
}

// kindBytes is the number of bytes by which a file's kind is recognised.
const kindBytes = 1 << 10

// checkKind returns an error if a file does not begin as its format does. It consumes no bytes.
func checkKind(in *bufio.Reader, format string) error {
	kind := binaryKinds[format]
	head, err := in.Peek(len(kind.magic))
	if string(head) == kind.magic {
		return nil
	}
	if err == nil {
		head, err = in.Peek(kindBytes)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("is no %s: %w", kind.name, kindOf(head))
}

// kindOf recognises a file by its first bytes. The error names its kind and the option with which
// to read it.
func kindOf(head []byte) error {
	if len(head) == 0 {
		return errors.New("the file is empty")
	}
	if err := textio.Foreign(head); err != nil {
		return err
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte(byteOrderMark)), " \t\r\n")
	whole := head[:max(0, len(head)-utf8.UTFMax)] // the last character may be incomplete
	if bytes.ContainsFunc(whole, func(c rune) bool { return c < ' ' && (c < '\t' || c > '\r') }) {
		return errors.New("its first bytes are of no kind that is known: is it damaged, or another file?")
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case bytes.HasPrefix(head, []byte("{")):
		return errJSON
	case bytes.HasPrefix(head, []byte("[")):
		return errors.New("the file looks like a list in JSON: write an object a line (jq -c '.[]' FILE), and say " +
			"‹data-format=jsonl›")
	case bytes.HasPrefix(head, []byte("<")):
		return errors.New("the file looks like HTML or XML: was a page saved in its place?")
	case bytes.IndexByte(line, '\t') >= 0:
		return errors.New("the file is text, with tabs: say ‹data-format=tsv› if line 1 names columns, else " +
			"‹data-format=lines›")
	}
	return errors.New("the file is text: say ‹data-format=csv› if line 1 names columns, else ‹data-format=lines›")
}

// seekable returns a file of a binary format with random access. It opens path if the file there
// begins as the format does. Otherwise it copies the content of f, if that does.
func seekable(f *fs.File, path, format string) (*os.File, int64, error) {
	if info, err := fs.Stat(path); err == nil && info.Mode()&os.ModeDevice != 0 {
		return nil, 0, errors.New("is a device, not a file")
	}
	magic := binaryKinds[format].magic
	file, err := fs.OpenRegular(path)
	head := make([]byte, len(magic))
	if err == nil {
		_, err = file.ReadAt(head, 0)
	}
	if err != nil || string(head) != magic {
		if file != nil {
			file.Close()
		}
		in := bufio.NewReaderSize(f, bufferBytes)
		if err := checkKind(in, format); err != nil {
			return nil, 0, err
		}
		if file, _, err = vfs.ScratchFile("", "table"); err != nil {
			return nil, 0, err
		}
		if _, err := io.Copy(file, in); err != nil {
			file.Close()
			return nil, 0, err
		}
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}
