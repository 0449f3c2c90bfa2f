package badger

import (
	"bytes"
	"crypto/rand"
	"testing"

	"taxon/store"
)

// What does not shrink is not compressed for a while; other kinds of values are.
func TestCodecPasses(t *testing.T) {
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	noise, zeros := make([]byte, 1000), make([]byte, 1000)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	dual, text := kindOf(store.Key{Name: "dual"}), kindOf(store.Key{Name: "text/1"})
	if dual == text || text != kindOf(store.Key{Name: "text/2"}) {
		t.Fatalf("kinds %d and %d", dual, text)
	}
	tries := 0
	for i := range 3 * (passChunks + 1) {
		data := zeros
		if i == 0 {
			data = noise
		}
		encoding, stored := c.encode(dual, data)
		if encoding == encodingZstd {
			tries++
		} else if !bytes.Equal(stored, data) {
			t.Fatal("raw bytes are others")
		}
		if encoding, _ := c.encode(text, zeros); encoding != encodingZstd {
			t.Fatalf("call %d: another kind is not compressed", i)
		}
	}
	if want := 2 * (passChunks + 1); tries != want {
		t.Errorf("%d of the chunks are compressed, want %d", tries, want)
	}
}
