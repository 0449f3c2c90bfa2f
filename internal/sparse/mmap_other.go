//go:build !unix

package sparse

import (
	"io"
	"os"
)

// Map reads the file whole, on systems where it is not mapped.
func Map(f *os.File, size int) ([]byte, error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), b); err != nil {
		return nil, err
	}
	return b, nil
}

// Unmap leaves what Map read to the garbage collector.
func Unmap([]byte) error { return nil }
