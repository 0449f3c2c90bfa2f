package model

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"os"
)

// shardFile is a new file that a goroutine of its own digests and writes while the next records
// are made. Digesting a shard takes as long as everything else.
type shardFile struct {
	file *os.File
	sum  hash.Hash
	buf  []byte      // being filled
	full chan []byte // to the goroutine
	free chan []byte // back from it
	err  error       // of writing; valid once done is closed
	done chan struct{}
}

// shardBuffer is the size of each of the two buffers.
const shardBuffer = 1 << 20

func createShard(path string) (*shardFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	s := &shardFile{file: f, sum: sha256.New(), buf: make([]byte, 0, shardBuffer),
		full: make(chan []byte), free: make(chan []byte, 2), done: make(chan struct{})}
	s.free <- make([]byte, 0, shardBuffer)
	go s.run()
	return s, nil
}

// run writes buffers until full is closed.
func (s *shardFile) run() {
	defer close(s.done)
	for b := range s.full {
		s.sum.Write(b)
		if s.err == nil {
			_, s.err = s.file.Write(b)
		}
		s.free <- b[:0]
	}
}

// write takes a copy of b. Errors are reported by close.
func (s *shardFile) write(b []byte) {
	for len(b) > 0 {
		n := min(len(b), cap(s.buf)-len(s.buf))
		s.buf, b = append(s.buf, b[:n]...), b[n:]
		if len(s.buf) == cap(s.buf) {
			s.full <- s.buf
			s.buf = <-s.free
		}
	}
}

// close makes the file durable and returns its digest.
func (s *shardFile) close() (sum string, err error) {
	s.full <- s.buf
	close(s.full)
	<-s.done
	return hex.EncodeToString(s.sum.Sum(nil)), errors.Join(s.err, s.file.Sync(), s.file.Close())
}

// abort leaves the file as it is.
func (s *shardFile) abort() {
	close(s.full)
	<-s.done
	s.file.Close()
}
