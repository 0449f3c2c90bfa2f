//go:build unix

package fs

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSpecialFilesAreRefused checks that special files are refused at once in place of a file of
// taxon's, by every way of reading it.
func TestSpecialFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, path := range []string{pipe, socket, "/dev/zero", "/dev/null"} {
		for name, open := range map[string]func() error{
			"OpenRegular": func() error { _, err := OpenRegular(path); return err },
			"OpenRaw":     func() error { _, err := OpenRaw(path); return err },
			"ReadFile":    func() error { _, err := ReadFile(context.Background(), path); return err },
			"OpenRanges":  func() error { _, err := OpenRanges(context.Background(), path); return err },
		} {
			if err := open(); !IsInput(err) || !strings.Contains(err.Error(), "regular file") {
				t.Errorf("%s of %s: %v", name, path, err)
			}
		}
	}
	if b, err := ReadFile(context.Background(), os.Args[0]); err != nil || len(b) == 0 {
		t.Errorf("a regular file: %d bytes, %v", len(b), err)
	}
}

// TestReadEndsWithContext checks that reading returns when its context ends, from a pipe whose
// writer is silent and from an endless file.
func TestReadEndsWithContext(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"silent": pipe, "endless": "/dev/zero"} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			f, err := Open(ctx, Local{}, path)
			if err == nil {
				_, err = io.Copy(io.Discard, f)
				err = errors.Join(err, f.Close())
			}
			ended <- err
		}()
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it goes on", name)
		}
	}
	if err := writer.Close(); err != nil { // the abandoned read ends
		t.Error(err)
	}
}

// TestCompute checks that Compute returns when its context ends, and passes errors and panics on to
// the caller.
func TestCompute(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	wrong := errors.New("wrong")
	if err := Compute(ctx, func() error { return wrong }); err != wrong {
		t.Errorf("its error: %v", err)
	}
	func() {
		defer func() {
			if p := recover(); p != wrong {
				t.Errorf("its panic: %v", p)
			}
		}()
		_ = Compute(ctx, func() error { panic(wrong) })
	}()
	free := make(chan struct{})
	cancel()
	if err := Compute(ctx, func() error { <-free; return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("when the context ends: %v", err)
	}
	close(free)
}
