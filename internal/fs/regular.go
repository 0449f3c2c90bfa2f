package fs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// OpenRegular opens a file of this machine that taxon has made, or that must be as it made it. A pipe,
// a device or a socket in its place is refused at once, as opening or reading one can wait for ever.
func OpenRegular(path string) (*os.File, error) {
	special := Inputf(path, 0, "is a pipe, a device or a socket: give a regular file")
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil, special
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = special
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readRegular is os.ReadFile with OpenRegular.
func readRegular(path string) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
