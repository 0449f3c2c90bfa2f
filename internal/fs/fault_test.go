//go:build unix

package fs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCatchFault checks that a truncated mapped file is an error, and that other panics continue.
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
	_, err = read()
	if !errors.Is(err, ErrFault) {
		t.Fatalf("error %v", err)
	}
	if runtime.GOOS == "linux" && !strings.HasPrefix(err.Error(), name+": ") {
		t.Errorf("error %q names no %s", err, name)
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

func TestMappedAt(t *testing.T) {
	maps := []byte("00400000-00452000 r-xp 00000000 08:02 173521   /usr/bin/x\n7f00-8000 r--s 00000000 08:02 1   /a b/c " +
		"(deleted)\nnonsense\n9000-a000 rw-p 00000000 00:00 0 [heap]\n")
	for addr, want := range map[uint64]string{
		0x400000: "/usr/bin/x", 0x451fff: "/usr/bin/x", 0x452000: "", 0x7f80: "/a b/c", 0x9000: "", 0: "",
	} {
		if got := mappedAt(maps, addr); got != want {
			t.Errorf("%x: %q, want %q", addr, got, want)
		}
	}
}
