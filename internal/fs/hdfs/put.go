package hdfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"taxon/internal/retry"
)

const putBuffer = 1 << 20

// Put copies a local file to a new name, and starts again after a data node has failed. The name
// should be in a folder that nobody else reads yet.
func (f *FS) Put(local, name string) error {
	in, err := os.Open(local)
	if err != nil {
		return err
	}
	defer in.Close()
	w := &Writer{fs: f, target: name, temp: name, fixed: true}
	err = w.put(func(out io.Writer) (n int64, err error) {
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		return io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, putBuffer))
	})
	if err != nil {
		return err
	}
	return w.check()
}

// WriteNew writes a small file that appears complete, as a new file or in place of an old one, with
// as few calls as possible.
func (f *FS) WriteNew(name string, data []byte) error {
	w := &Writer{fs: f, target: name, temp: tempName(name), fixed: true}
	err := w.put(func(out io.Writer) (int64, error) {
		if len(data) == 0 {
			// the library would add an empty block, which never completes
			return 0, nil
		}
		n, err := out.Write(data)
		return int64(n), err
	})
	if err != nil {
		return err
	}
	if err = f.Rename(w.temp, name); err != nil {
		_ = f.RemoveAll(w.temp)
		if info, e := f.Stat(name); e == nil && info.IsDir() {
			return inputf("is a directory: give a file to write")
		}
	}
	return err
}

// put writes the file under its temporary name, and starts again after a data node has failed.
func (w *Writer) put(write func(out io.Writer) (int64, error)) error {
	f, began := w.fs, time.Now()
	for {
		err := w.begin()
		if err != nil {
			return explain(err)
		}
		n, err := write(w.file)
		if err == nil {
			err = w.finish()
		}
		if err == nil {
			w.file = nil
			w.kept.size = n
			return nil
		}
		if settled(err) || f.ctx.Err() != nil || f.lastTry(err, time.Since(began)) {
			w.drop()
			return explain(err)
		}
		if retry.For(f.ctx, min(longPause, firstPause<<w.tries)) != nil {
			return f.ctx.Err()
		}
	}
}

// create creates the temporary file with all replicas, or with fewer after many tries.
func (w *Writer) create(c *hdfs.Client) (*hdfs.FileWriter, error) {
	less := w.tries - fullTries
	if less <= 0 {
		return c.Create(w.temp)
	}
	d, err := c.ServerDefaults()
	if err != nil {
		return nil, err
	}
	return c.CreateFile(w.temp, max(d.Replication-less, 1), d.BlockSize, 0o644)
}

var errTaken = errors.New("temporary name taken")

// begin creates the temporary file, replacing one that failed.
func (w *Writer) begin() error {
	w.drop()
	w.tries++
	return w.fs.retry(func(c *hdfs.Client) error {
		file, err := w.create(c)
		if errors.Is(err, os.ErrExist) { // created by a call whose answer was lost, or open
			if w.fixed {
				if e := c.Remove(w.temp); e != nil && !errors.Is(e, os.ErrNotExist) {
					return e
				}
			} else {
				w.temp = tempName(w.target)
			}
			return fmt.Errorf("%w: %s", errTaken, w.temp)
		}
		if err == nil {
			w.file = file
		}
		return err
	})
}
