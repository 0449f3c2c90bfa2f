package fs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pack(t testing.TB, kind string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch kind {
	case "none":
		return data
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	case "xz":
		w, err = xz.NewWriter(&b)
	case "bzip2": // Go has no writer: these come from Python, by content
		packed, ok := bzip2Of[string(data)]
		if !ok {
			t.Fatalf("no bzip2 of %d bytes", len(data))
		}
		content, err := base64.StdEncoding.DecodeString(packed)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read opens the bytes as standard input and reads them to the end.
func read(packed []byte) (content []byte, compression string, err error) {
	f, err := Open(context.Background(), Local{In: bytes.NewReader(packed)}, Stdin)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	content, err = io.ReadAll(f)
	return content, f.compression, err
}

var kinds = []string{"none", "gzip", "zstd", "xz", "bzip2"}

// headOf is the number of bytes that show a kind.
var headOf = map[string]int{"gzip": 6, "zstd": 6, "xz": 6, "bzip2": 10}

// bzip2Of maps contents to the output of Python's bz2.compress.
var bzip2Of = map[string]string{
	"":              "QlpoORdyRThQkAAAAAA=",
	openData:        "QlpoOTFBWSZTWRMQh3YAfvPZAAAQQAVykDAAIACQIGgaAUqgBtTsQqMEKj0QqMEKj0QqMEKjwQqNhCo+EKjcQqNCFRghUaEKjBCo/F3JFOFCQExCHdg=",
	openData[:1000]: "QlpoOTFBWSZTWbdplcAAAaxZAAAQQAVykDAAIAB0ClUMgyBSqAaPU7qGCNVDBGqhlQ8EbVD6oc1DVQ3UOMaqGxH4u5IpwoSFu0yuAA==",
	openData[1000:]: "QlpoOTFBWSZTWVUeuzQAOcHZAAAQQAVykDAAIACQIGgaAUqmgD1OoEowCUeQJRgEo8gSjAJR12BKNQJR7AlGoEo+AlGQJRyBKMAlH4u5IpwoSCqPXZoA",
	cutData:         "QlpoOTFBWSZTWfPYibwAAWfZAAAQQAVysDgAIABwQAAApUiB6j2qeRPQnBPgmCYJ9EwJsTQn4ToJsTBME4JgmhP4u5IpwoSHnsRN4A==",
}

var (
	openData = strings.Repeat("a,b 1:0.5 7:2\n", 5000)
	cutData  = strings.Repeat("a,b 1:0.5 7:2\nc 9:1\n", 40)
)

func TestOpenByContent(t *testing.T) {
	data := []byte(openData)
	for _, kind := range kinds {
		got, compression, err := read(pack(t, kind, data))
		if err != nil || compression != kind || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes as %s, error %v", kind, len(got), compression, err)
		}
		twice := append(pack(t, kind, data[:1000]), pack(t, kind, data[1000:])...)
		if got, _, err := read(twice); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s, two members: %d bytes, error %v", kind, len(got), err)
		}
		if got, _, err := read(pack(t, kind, nil)); err != nil || len(got) != 0 {
			t.Errorf("%s, empty: %d bytes, error %v", kind, len(got), err)
		}
	}
}

// TestTruncatedBlocks truncates a stream of many blocks, as xz -T writes it.
func TestTruncatedBlocks(t *testing.T) {
	var b bytes.Buffer
	w, err := xz.WriterConfig{BlockSize: 100}.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Repeat([]byte("c 9:1\n"), 100)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for n := 6; n < b.Len(); n++ {
		if _, _, err := read(b.Bytes()[:n]); !IsInput(err) {
			t.Fatalf("cut at %d of %d: error %v", n, b.Len(), err)
		}
	}
	padded := append(bytes.Clone(b.Bytes()), 0, 0, 0, 0)
	padded = append(padded, b.Bytes()...)
	if got, _, err := read(append(padded, make([]byte, 8)...)); err != nil || len(got) != 1200 {
		t.Errorf("padded: %d bytes, %v", len(got), err)
	}
}

// TestTruncated truncates a compressed stream at every byte. The loss must never be silent.
func TestTruncated(t *testing.T) {
	data := []byte(cutData)
	for _, kind := range kinds[1:] {
		packed := pack(t, kind, data)
		for n := headOf[kind]; n < len(packed); n++ { // shorter prefixes may be text
			got, _, err := read(packed[:n])
			var in *InputError
			if err == nil || !errors.As(err, &in) || in.Path != "stdin" {
				t.Fatalf("%s cut at %d of %d: %d bytes, error %v", kind, n, len(packed), len(got), err)
			}
		}
	}
}

// TestDamaged flips each byte. The result is an error or the right content (if the byte is in a
// name or time field).
func TestDamaged(t *testing.T) {
	data := []byte(cutData)
	for _, kind := range kinds[1:] {
		packed := pack(t, kind, data)
		for i := range packed {
			bad := bytes.Clone(packed)
			bad[i] ^= 0x10
			got, compression, err := read(bad)
			if err == nil && compression == kind && !bytes.Equal(got, data) {
				t.Errorf("%s: byte %d changed, wrong content without an error", kind, i)
			}
			if err != nil && !IsInput(err) {
				t.Errorf("%s: byte %d changed: %v is no input error", kind, i, err)
			}
		}
	}
}

func TestForeignCompression(t *testing.T) {
	for _, head := range []string{"PK\x03\x04......", "7z\xbc\xaf\x27\x1c....", "\x04\x22\x4d\x18...."} {
		_, _, err := read([]byte(head))
		if !IsInput(err) || !strings.Contains(err.Error(), "not supported") && !strings.Contains(err.Error(), "zip archive") {
			t.Errorf("%q: %v", head, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HADOOP_HOME", "")
	dir := t.TempDir()
	file := filepath.Join(dir, "plain")
	if err := os.WriteFile(file, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, nil, 0o000); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "is a directory"},
		{filepath.Join(file, "below"), "not a directory"},
		{secret, "permission denied"},
		{"", "empty path"},
		{Stdin, "a matrix of SciPy's (.npz) must be a file"},
		{"hdfs://127.0.0.1:1/a", "no HDFS name node answers"},
		{"hdfs:///a", "names no host"},
		{"hdfs://:80:1/a", "expected hdfs://host:port/path"},
		{"a\x00b", "not a usable path"},
	} {
		if c.path == secret && os.Geteuid() == 0 {
			continue // root may read everything
		}
		_, err := Open(context.Background(), Local{In: strings.NewReader("PK\x03\x04")}, c.path)
		if !IsInput(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", c.path, err, c.want)
		}
	}
}

func TestProgress(t *testing.T) {
	packed := pack(t, "gzip", []byte(strings.Repeat("x", 1<<20)))
	path := filepath.Join(t.TempDir(), "x.gz")
	if err := os.WriteFile(path, packed, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(context.Background(), Local{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Fatal(err)
	}
	if f.Size() != int64(len(packed)) || f.BytesRead() != f.Size() || f.Waits() || f.Name() != path {
		t.Errorf("size %d, read %d of %d", f.Size(), f.BytesRead(), len(packed))
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestDeviceError checks that a failing disk is not reported as a broken archive.
func TestDeviceError(t *testing.T) {
	packed := pack(t, "gzip", []byte(strings.Repeat("x", 1<<10)))
	device := errors.New("input/output error")
	in := io.MultiReader(bytes.NewReader(packed[:20]), failing{device})
	f, err := Open(context.Background(), Local{In: in}, Stdin)
	if err == nil {
		_, err = io.ReadAll(f)
	}
	if IsInput(err) || !errors.Is(err, device) {
		t.Errorf("got %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	for _, kind := range kinds {
		f.Add(pack(f, kind, []byte(cutData)))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		in, err := Open(context.Background(), Local{In: bytes.NewReader(packed)}, Stdin)
		if err == nil {
			_, err = io.Copy(io.Discard, io.LimitReader(in, 1<<20))
			in.Close()
		}
		if err != nil && !IsInput(err) {
			t.Errorf("%v is no input error", err)
		}
	})
}

// TestEndless checks that reading returns when its context ends, even from endless input, that
// small files are bounded, and that a pipe without a writer does not block.
func TestEndless(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f, err := Open(ctx, Local{}, "/dev/zero")
	if err != nil {
		t.Skip(err) // this is another kind of system
	}
	defer f.Close()
	if n, err := f.Read(make([]byte, 10)); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := ReadBounded(ctx, "/dev/zero", 1000); !IsInput(err) || !strings.Contains(err.Error(),
		"has more than 1000 bytes") {
		t.Errorf("/dev/zero: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	silent, err := os.OpenFile(pipe, os.O_RDWR, 0) // a writer that writes nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	done := make(chan error)
	go func() {
		_, err := ReadBounded(ctx, pipe, 1000)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := io.Copy(io.Discard, f); !errors.Is(err, context.Canceled) {
		t.Errorf("/dev/zero, cancelled: %v", err)
	}
}
