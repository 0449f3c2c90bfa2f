//go:build !unix

package sparse

import (
	"io"
	"os"
)

// Map reads the whole file, because this system has no memory maps.
func Map(f *os.File, size int) ([]byte, error) {
	b := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), b); err != nil {
		return nil, err
	}
	return b, nil
}

// Unmap does nothing: the garbage collector frees what Map read.
func Unmap([]byte) error { return nil }
