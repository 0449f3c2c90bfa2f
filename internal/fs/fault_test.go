//go:build unix

package fs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCatchFault: a mapped file that is cut off is an error, other panics stay panics.
func TestCatchFault(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	size := 8 * os.Getpagesize()
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	read := func() (last byte, err error) {
		defer CatchFault(&err)()
		return b[size-1], nil
	}
	if _, err := read(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); !errors.Is(err, ErrFault) {
		t.Fatalf("error %v", err)
	}
	defer func() {
		if p := recover(); p == nil || IsFault(p) {
			t.Errorf("panicked with %v", p)
		}
	}()
	func() {
		var err error
		defer CatchFault(&err)()
		var nothing *[4]int
		nothing[1] = 3
	}()
}
