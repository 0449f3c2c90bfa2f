package fs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestRanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("0123456789"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := OpenRanges(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Size() != 10 {
		t.Errorf("size %d", f.Size())
	}
	for _, c := range []struct {
		at   int64
		want string
	}{{7, "789"}, {0, "01"}, {3, ""}, {10, ""}} {
		p := make([]byte, len(c.want))
		if err := f.ReadRange(p, c.at); err != nil || string(p) != c.want {
			t.Errorf("at %d: %q, %v, want %q", c.at, p, err, c.want)
		}
	}
	if err := f.ReadRange(make([]byte, 4), 8); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("beyond the end: %v", err)
	}
	if _, err := OpenRanges(t.Context(), path+"x"); !IsInput(err) {
		t.Errorf("no file: %v", err)
	}
}
