package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"taxon/internal/fs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder reads all files of a folder. It removes the manifest's source, which may differ.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == manifestFile {
			b, _, _ = bytes.Cut(b, []byte(`"source"`))
		}
		out[e.Name()] = string(b)
	}
	return out
}

// TestDeterministic checks that the same content gives the same bytes, regardless of compression,
// path, threads, memory, temporary folder and the order of indices within a line.
func TestDeterministic(t *testing.T) {
	dir := t.TempDir()
	data := generate(3, 70_000, 6, 500)
	var shuffled bytes.Buffer
	rng := rand.New(rand.NewPCG(5, 5))
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		rng.Shuffle(len(f)-1, func(i, j int) { f[i+1], f[j+1] = f[j+1], f[i+1] })
		shuffled.WriteString(strings.Join(f, "  ") + "\r\n")
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(shuffled.Bytes())
	z.Close()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	half := bytes.LastIndexByte(data[:len(data)/2], '\n') + 1
	var first map[string]string
	for i, o := range []Options{
		{Paths: []string{write("a.svm", data)}},
		{Paths: []string{write("b.gz", packed.Bytes())}, MemoryBytes: 1 << 20, Threads: 5, TempDir: dir},
		{Paths: []string{"-"}, FS: fs.Local{In: &shuffled}, Threads: 1},
		{Paths: []string{write("1", data[:half]), write("2", data[half:])}},
	} {
		o.Out = filepath.Join(dir, fmt.Sprintf("set%d", i))
		if _, err := Ingest(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		got := folder(t, o.Out)
		if first == nil {
			first = got
		}
		for name, want := range first {
			if got[name] != want || len(got) != len(first) {
				t.Errorf("run %d: %s differs", i, name)
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*.part"))
	if len(left) > 0 || len(first) != 7 {
		t.Errorf("left behind: %v; files: %d", left, len(first))
	}
}

// TestIngestFails checks that a failed ingest leaves no files and returns the right error.
func TestIngestFails(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	os.WriteFile(good, []byte("a 1:1\n"), 0o666)
	os.WriteFile(bad, []byte("a 1:1\nb 0:1\n"), 0o666)
	other := filepath.Join(dir, "other")
	os.MkdirAll(filepath.Join(other, "precious"), 0o777)
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"broken line", Options{Paths: []string{bad}, Out: out}, bad + ":2: feature index 0"},
		{"second file broken", Options{Paths: []string{good, bad}, Out: out}, bad + ":2: feature index 0"},
		{"missing file", Options{Paths: []string{filepath.Join(dir, "none")}, Out: out}, "none: no such file"},
		{"directory", Options{Paths: []string{dir}, Out: out}, "is a directory"},
		{"no input", Options{Out: out}, "no input"},
		{"no output", Options{Paths: []string{good}}, "empty path"},
		{"output on HDFS", Options{Paths: []string{good}, Out: "hdfs://nn/x"}, "hdfs://"},
		{"output to stdout", Options{Paths: []string{good}, Out: "-"}, "standard output"},
		{"output is a file", Options{Paths: []string{good}, Out: bad}, "is a file"},
		{"output holds something", Options{Paths: []string{good}, Out: other}, "exists already"},
		{"output holds something else", Options{Paths: []string{good}, Out: other, Replace: true}, "other than a data set"},
		{"no temp folder", Options{Paths: []string{good}, Out: out, TempDir: filepath.Join(dir, "none")}, "no such file"},
		{"temp is a file", Options{Paths: []string{good}, Out: out, TempDir: good}, "is a file"},
		{"tiny memory", Options{Paths: []string{good}, Out: out, MemoryBytes: 1000}, "at least 1 MiB"},
		{"text", Options{Paths: []string{good}, Out: out, Text: true}, good + ":1: no tab"},
	} {
		_, err := Ingest(context.Background(), c.o)
		if !fs.IsInput(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*part*"))
		if _, err := os.Stat(out); !os.IsNotExist(err) || len(left) > 0 {
			t.Fatalf("%s: left behind %v", c.name, left)
		}
	}
	if _, err := os.Stat(filepath.Join(other, "precious")); err != nil {
		t.Error(err)
	}
}

// TestReplace checks that a data set replaces an older one.
func TestReplace(t *testing.T) {
	out := filepath.Join(t.TempDir(), "set")
	ingestString(t, out, "a 1:1\n", Options{}).Close()
	s := ingestString(t, out, "b 1:1\n", Options{Replace: true})
	defer s.Close()
	if s.Labels[0] != "b" {
		t.Errorf("labels %v", s.Labels)
	}
}

// cancelling is a reader that cancels its context after some bytes and then blocks like an open
// pipe.
type cancelling struct {
	n      int
	cancel func()
	block  chan struct{}
}

func (c *cancelling) Read(p []byte) (int, error) {
	if c.n == 0 {
		c.cancel()
		<-c.block
		return 0, io.EOF
	}
	c.n--
	return copy(p, "a 1:1\n"), nil
}

// TestCancel checks that a blocked standard input does not delay a cancelled ingest.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	in := &cancelling{n: 10, cancel: cancel, block: make(chan struct{})}
	defer close(in.block)
	_, err := Ingest(ctx, Options{Paths: []string{"-"}, FS: fs.Local{In: in}, Out: filepath.Join(dir, "set")})
	entries, _ := os.ReadDir(dir)
	if !errors.Is(err, context.Canceled) || len(entries) > 0 {
		t.Errorf("%v; left behind %v", err, entries)
	}
}

func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	data := generate(9, 10_000, 4, 100)
	os.WriteFile(path, data, 0o666)
	var seen []Progress
	_, err := Ingest(context.Background(), Options{Paths: []string{path}, Out: path + ".set",
		Progress: func(p Progress) { seen = append(seen, p) }})
	if err != nil {
		t.Fatal(err)
	}
	last := seen[len(seen)-1]
	if seen[0].Phase != "read" || seen[0].BytesTotal != int64(len(data)) || last.Phase != "write" || last.Rows != 10_000 ||
		last.RowsTotal != 10_000 || last.BytesRead != int64(len(data)) {
		t.Errorf("first %+v, last %+v", seen[0], last)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].Phase == seen[i-1].Phase && (seen[i].Rows < seen[i-1].Rows || seen[i].BytesRead < seen[i-1].BytesRead) {
			t.Errorf("progress fell: %+v after %+v", seen[i], seen[i-1])
		}
	}
}

// TestStrayFileIsNoPartOfTheSet checks that the fingerprint covers the data set's own files only.
// Another file in its folder, such as spilled rows that could not be removed, is an error.
func TestStrayFileIsNoPartOfTheSet(t *testing.T) {
	dir, err := fs.CreateDir(filepath.Join(t.TempDir(), "set"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Abort()
	sp, err := newSpill(dir, "", 1<<10, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{dir: dir, in: &intake{spill: sp}}
	if _, err := p.seal(context.Background()); err == nil || !strings.Contains(err.Error(), "taxon-spill-") {
		t.Errorf("with the rows on their way in the folder: %v", err)
	}
	if err := sp.remove(); err != nil {
		t.Error(err)
	}
	if err := sp.remove(); err == nil {
		t.Error("a file that can't be removed is no error")
	}
}
