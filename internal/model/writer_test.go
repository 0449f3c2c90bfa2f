package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"taxon/internal/fs/vfs"
)

// What is written piece by piece is what the file holds and what the digest is of, wherever
// buffers end.
func TestShardFile(t *testing.T) {
	for _, size := range []int{0, 1, shardBuffer - 1, shardBuffer, shardBuffer + 1, 4*shardBuffer + 7} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * i >> 8)
		}
		disk := vfs.NewMem()
		f, err := disk.OpenFile("shard", os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		s := newShard(f)
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+len(rest)/2) // from more than a buffer to a byte
			piece := bytes.Clone(rest[:n])
			s.write(piece)
			clear(piece) // it is the caller's again
			rest = rest[n:]
		}
		sum, err := s.close()
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(want)
		if got, err := vfs.ReadFile(disk.Crash(vfs.LoseContent), "shard"); err != nil || !bytes.Equal(got, want) ||
			sum != hex.EncodeToString(hash[:]) {
			t.Errorf("%d bytes: %d came, digest %s, %v", size, len(got), sum, err)
		}
	}
}

// A write that fails is told at the end, once.
func TestShardFileFails(t *testing.T) {
	f, err := vfs.NewMem().OpenFile("shard", os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	s := newShard(f)
	s.file.Close()
	s.write(make([]byte, 3*shardBuffer))
	if _, err := s.close(); err == nil {
		t.Error("writing to a closed file is no error")
	}
}
