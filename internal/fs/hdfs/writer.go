package hdfs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"taxon/internal/fs/vfs"
	"taxon/internal/retry"
)

// fullTries is the number of times a file is begun with all its replicas. Each further try asks for
// one replica less, because the name node may take minutes to notice a dead data node.
const fullTries = 4

// Writer writes a file that appears under its name when it is committed. The library cannot
// continue after a data node has failed, so a Writer also keeps everything written (in memory,
// beyond 1 MiB in a temporary file), in order to write it again.
type Writer struct {
	fs     *FS
	target string
	temp   string
	file   *hdfs.FileWriter
	kept   spool
	done   bool
	tries  int
	fixed  bool // temp is the final name
}

// Create creates a file next to target. The Writer owns f and closes it.
func (f *FS) Create(target string) (*Writer, error) {
	if info, err := f.Stat(target); err == nil && info.IsDir() {
		return nil, inputf("is a directory: give a file to write")
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	w := &Writer{fs: f, target: target, temp: tempName(target)}
	if err := w.begin(); err != nil {
		return nil, explain(err)
	}
	return w, nil
}

// tempName returns a unique name next to target that Hadoop's tools ignore.
func tempName(target string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	dir, base := path.Split(target)
	return dir + "." + base + "." + hex.EncodeToString(b[:]) + ".part"
}

// drop abandons the temporary file.
func (w *Writer) drop() {
	if w.file == nil {
		return
	}
	w.file.Close() // ends its goroutines; its error no longer matters
	w.file = nil
	_ = w.fs.RemoveAll(w.temp)
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, os.ErrClosed
	}
	if len(p) == 0 {
		// the library would add an empty block, which never completes
		return 0, nil
	}
	if _, err := w.kept.Write(p); err != nil {
		return 0, &vfs.InputError{Msg: "no room to keep what is written until it is committed: set TMPDIR to " +
			"a larger disk than " + os.TempDir(), Err: err}
	}
	_, err := w.file.Write(p)
	return w.rewrite(len(p), err)
}

// rewrite writes the file again if err means that it is lost.
func (w *Writer) rewrite(n int, err error) (int, error) {
	began := time.Now()
	for wait := firstPause; err != nil; wait = min(2*wait, longPause) {
		if w.fs.ctx.Err() != nil {
			return 0, w.fs.ctx.Err()
		}
		if settled(err) || w.fs.lastTry(err, time.Since(began)) {
			return 0, explain(err)
		}
		if retry.For(w.fs.ctx, wait) != nil {
			return 0, w.fs.ctx.Err()
		}
		if err = w.begin(); err != nil {
			return 0, explain(err)
		}
		err = w.kept.copyTo(w.file)
	}
	return n, nil
}

// Commit completes the file and renames it. It replaces an existing one.
func (w *Writer) Commit() error {
	defer w.Abort()
	for {
		err := w.finish()
		if err == nil {
			break
		}
		if _, err = w.rewrite(0, err); err != nil {
			return err
		}
	}
	w.file = nil
	if err := w.check(); err != nil {
		return err
	}
	if err := w.fs.Rename(w.temp, w.target); err != nil {
		return err
	}
	w.temp = ""
	return nil
}

// finish closes the file, and waits until its blocks have as many replicas as the name node
// requires.
func (w *Writer) finish() error {
	began := time.Now()
	for wait := firstPause / 4; ; wait = min(2*wait, longPause) {
		err := w.file.Close()
		if err == nil || !hdfs.IsErrReplicating(err) || time.Since(began) > w.fs.wait {
			return err
		}
		if retry.For(w.fs.ctx, wait) != nil {
			return w.fs.ctx.Err()
		}
	}
}

// check compares the length that the name node reports with the number of bytes written.
func (w *Writer) check() error {
	info, err := w.fs.Stat(w.temp)
	if err == nil && info.Size() != w.kept.size {
		err = fmt.Errorf("%d bytes written, the name node has %d: run the command again", w.kept.size, info.Size())
	}
	return err
}

// Abort removes an uncommitted file and closes the file system. After Commit it does nothing.
func (w *Writer) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.drop()
	if w.temp != "" {
		_ = w.fs.RemoveAll(w.temp)
	}
	w.kept.close()
	w.fs.Close()
}

// spool keeps the written bytes, in memory and then in a temporary file.
type spool struct {
	buf  []byte
	file *os.File
	drop func() error // closes and removes file
	size int64
}

const spoolMemory = 1 << 20

func (s *spool) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	if s.file == nil && len(s.buf)+len(p) <= spoolMemory {
		s.buf = append(s.buf, p...)
		return len(p), nil
	}
	if s.file == nil {
		var err error
		if s.file, s.drop, err = vfs.ScratchFile("", "hdfs"); err != nil {
			return 0, err
		}
		if _, err := s.file.Write(s.buf); err != nil {
			return 0, err
		}
		s.buf = nil
	}
	return s.file.Write(p)
}

func (s *spool) copyTo(w io.Writer) error {
	if s.size == 0 {
		return nil
	}
	if s.file == nil {
		_, err := w.Write(s.buf)
		return err
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(s.file, 0, s.size), make([]byte, spoolMemory))
	return err
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.drop()
	}
	s.buf, s.file = nil, nil
}
