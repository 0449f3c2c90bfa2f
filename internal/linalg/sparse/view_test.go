package sparse

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestView reads words at every alignment, because only mapped memory is always aligned.
func TestView(t *testing.T) {
	var b []byte
	for _, v := range []float64{1.5, -2, math.Inf(1)} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	for shift := range 8 {
		moved := append(make([]byte, shift), b...)[shift:]
		if got := View[float64](moved); !slices.Equal(got, []float64{1.5, -2, math.Inf(1)}) {
			t.Errorf("shift %d: %v", shift, got)
		}
		if got := View[uint32](moved[:8]); !slices.Equal(got, []uint32{0, 0x3ff80000}) {
			t.Errorf("shift %d: %x", shift, got)
		}
	}
	if got := View[uint64](nil); got == nil || len(got) != 0 {
		t.Errorf("no bytes give %v", got)
	}
}

// TestAppend checks that View reads what Append writes.
func TestAppend(t *testing.T) {
	b := Append([]byte{9}, []float32{1, -2})
	if want := []byte{9, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}; !bytes.Equal(b, want) {
		t.Errorf("%x, want %x", b, want)
	}
	values := []float64{1.5, -2, math.Inf(1)}
	if got := View[float64](Append(nil, values)); !slices.Equal(got, values) {
		t.Errorf("%v, want %v", got, values)
	}
	if got := Append[uint32]([]byte{7}, nil); !bytes.Equal(got, []byte{7}) {
		t.Errorf("nothing appended gives %x", got)
	}
}

func TestMap(t *testing.T) {
	for _, want := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("taxon"), 10_000)} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Map(f, len(want))
		f.Close()
		if err != nil || !bytes.Equal(b, want) {
			t.Errorf("%d bytes: %d, %v", len(want), len(b), err)
		}
		if err := Unmap(b); err != nil {
			t.Error(err)
		}
	}
}
