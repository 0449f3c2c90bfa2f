package hadoop

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"taxon/internal/fs"
)

// TestConformance checks the requirements for every kind of file system that taxon reads and
// writes. Each part gets an empty folder.
func TestConformance(t *testing.T) {
	parts := []struct {
		name string
		run  func(t *testing.T, root string)
	}{
		{"files", testFiles}, {"replace", testReplace}, {"abort", testAbort}, {"race", testRace},
		{"compression", testCompression},
		{"parts", testParts}, {"expand", testExpand}, {"errors", testErrors}, {"folders", testFolders},
		{"refusals", testRefusals},
		{"fetch", testFetch}, {"cancel", testCancel}, {"remove", testRemove}, {"ranges", testRanges}, {"kept", testKept},
	}
	t.Run("local", func(t *testing.T) {
		for _, p := range parts {
			t.Run(p.name, func(t *testing.T) { p.run(t, t.TempDir()) })
		}
	})
	t.Run("hdfs", func(t *testing.T) {
		c := startCluster(t, Options{DataNodes: 1, Replication: 1, HDFS: map[string]string{"dfs.blocksize": "1048576"}})
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		for _, p := range parts {
			t.Run(p.name, func(t *testing.T) {
				root := c.URL("/suite/" + p.name)
				d, err := fs.CreateDir(root+"/seed", false) // this creates the folder
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := fs.RemoveAll(root + "/seed"); err != nil {
					t.Fatal(err)
				}
				p.run(t, root)
			})
		}
	})
}

// noise returns n random bytes, which depend on the seed.
func noise(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	b := make([]byte, n)
	_, _ = r.Read(b) // never fails
	return b
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := fs.WriteFile(path, data); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) []byte {
	t.Helper()
	f, err := fs.Open(t.Context(), fs.Local{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func testFiles(t *testing.T, root string) {
	for i, size := range []int{0, 1, 511, 1<<20 - 1, 1 << 20, 1<<20 + 1, 4<<20 + 3, 21 << 20} {
		path := fs.Join(root, fmt.Sprint("f", size))
		data := noise(uint64(i), size)
		put(t, path, data)
		if got := get(t, path); !bytes.Equal(got, data) {
			t.Errorf("%d bytes written, %d read, or others", size, len(got))
		}
		info, err := fs.Stat(path)
		if err != nil || info.Size() != int64(size) || info.IsDir() {
			t.Errorf("stat: %v, %v", info, err)
		}
		if b, err := fs.ReadFile(t.Context(), path); err != nil || !bytes.Equal(b, data) {
			t.Errorf("ReadFile: %d bytes, %v", len(b), err)
		}
	}
	// unusual names
	for _, name := range []string{"with blank", "per%cent?", "größe", "a:b", "#x"} {
		path := fs.Join(root, name)
		if strings.HasPrefix(root, "hdfs://") && strings.Contains(name, ":") {
			continue // HDFS has no names with colons
		}
		put(t, path, []byte(name))
		if got := get(t, path); string(got) != name {
			t.Errorf("%q: read %q", name, got)
		}
	}
}

func testReplace(t *testing.T, root string) {
	path := fs.Join(root, "out")
	put(t, path, []byte("old"))
	f, err := fs.CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	for range 3 {
		if _, err := f.Write(noise(1, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, path); string(got) != "old" {
		t.Errorf("seen before it was committed: %d bytes", len(got))
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, path); len(got) != 3<<20 {
		t.Errorf("%d bytes after commit", len(got))
	}
	nothingBut(t, root, "out")
}

func testAbort(t *testing.T, root string) {
	f, err := fs.CreateFile(fs.Join(root, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(noise(1, 3<<20)); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	nothingBut(t, root)
}

// testRace writes the same name several times concurrently. One of the files must win, complete.
func testRace(t *testing.T, root string) {
	path := fs.Join(root, "out")
	var group sync.WaitGroup
	for i := range 6 {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := fs.WriteFile(path, bytes.Repeat([]byte{byte('a' + i)}, 100_000)); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	got := get(t, path)
	if len(got) != 100_000 || !bytes.Equal(got, bytes.Repeat(got[:1], 100_000)) {
		t.Errorf("%d bytes, a mixture", len(got))
	}
	nothingBut(t, root, "out")
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func testCompression(t *testing.T, root string) {
	data := bytes.Repeat(noise(3, 1000), 3000)
	packed := zipped(t, data)
	path := fs.Join(root, "data")
	put(t, path, packed)
	if got := get(t, path); !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes", len(got), len(data))
	}
	put(t, path, packed[:len(packed)-5])
	f, err := fs.Open(t.Context(), fs.Local{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	wantInput(t, err, path, "cut short")
}

// testParts reads a folder of part files, and a pattern, as one text.
func testParts(t *testing.T, root string) {
	put(t, fs.Join(root, "part-00000"), []byte("a 1:1\n"))
	put(t, fs.Join(root, "part-00001.gz"), zipped(t, []byte("b 2:2"))) // without a final newline
	put(t, fs.Join(root, "part-00002"), nil)
	put(t, fs.Join(root, "part-00003"), []byte("c 3:3\n"))
	put(t, fs.Join(root, "_SUCCESS"), nil)
	put(t, fs.Join(root, ".hidden"), []byte("x"))
	const want = "a 1:1\nb 2:2\nc 3:3\n"
	for _, path := range []string{root, fs.Join(root, "part-*"), fs.Join(root, "*")} {
		f, err := fs.Open(t.Context(), fs.Local{}, path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if f.Size() != f.BytesRead() || f.Name() != path {
			t.Errorf("%s: %d of %d bytes", f.Name(), f.BytesRead(), f.Size())
		}
		f.Close()
	}
	if got := get(t, fs.Join(root, "part-0000[03]")); string(got) != "a 1:1\nc 3:3\n" {
		t.Errorf("%q", got)
	}
}

func testExpand(t *testing.T, root string) {
	for _, name := range []string{"x/part-1", "x/part-0", "y/part-0", "z", "_h/part-0", "_z"} {
		dir := fs.Dir(fs.Join(root, name))
		if dir != root && !fs.Exists(dir) {
			d, err := fs.CreateDir(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		put(t, fs.Join(root, name), nil)
	}
	for _, c := range []struct{ pattern, want string }{
		{"z", "z"}, {"x", "x/part-0 x/part-1"}, {"*", "z"}, {"?/part-0", "x/part-0 y/part-0"},
		{"[xy]/part-[1-9]", "x/part-1"}, {"*/part-0", "x/part-0 y/part-0"}, {"_*", "_z"}, {"_*/part-0", "_h/part-0"},
	} {
		got, err := fs.Expand(t.Context(), fs.Join(root, c.pattern))
		text := strings.ReplaceAll(strings.Join(got, " "), root+"/", "")
		if err != nil || text != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.pattern, text, c.want, err)
		}
	}
	path := fs.Join(root, "q*")
	_, err := fs.Expand(t.Context(), path)
	wantInput(t, err, path, "no file matches")
}

func testErrors(t *testing.T, root string) {
	put(t, fs.Join(root, "file"), []byte("x"))
	for _, c := range []struct{ name, want string }{{"none", "no such file"}, {"", "is a directory"},
		{"file/below", "not a directory"}} {
		path := fs.Join(root, c.name)
		_, err := fs.Open(t.Context(), fs.Local{}, path)
		if c.name == "file/below" && fs.Shared(root) {
			c.want = "" // the name node says that access is denied
		}
		wantInput(t, err, path, c.want)
	}
	for _, c := range []struct{ name, want string }{{"", "is a directory"}, {"none/out", "no such"}, {"file/out", ""}} {
		path := fs.Join(root, c.name)
		wantInput(t, fs.WriteFile(path, []byte("x")), path, c.want)
	}
	if _, err := fs.Stat(fs.Join(root, "none")); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("stat: %v", err)
	}
	nothingBut(t, root, "file")
}

func testFolders(t *testing.T, root string) {
	dir := fs.Join(root, "a/b/out")
	fill := func(content string, replace bool) *fs.OutDir {
		d, err := fs.CreateDir(dir, replace)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			if err := os.WriteFile(d.Join(name), []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	d := fill("first", false)
	if fs.Exists(dir) {
		t.Error("there before it was committed")
	}
	d.Abort()
	nothingBut(t, root) // the parents are removed too
	if err := fill("first", false).Commit(); err != nil {
		t.Fatal(err)
	}
	want := []string{"one", "two"}
	if fs.Shared(root) {
		want = []string{"_SUCCESS", "one", "two"}
	}
	nothingBut(t, dir, want...)
	nothingBut(t, fs.Dir(dir), "out")
	if _, err := fs.CreateDir(dir, false); !fs.IsInput(err) || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over a folder: %v", err)
	}
	if err := fill("second", true).Commit(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, fs.Join(dir, "one")); string(got) != "second" {
		t.Errorf("replaced: %q", got)
	}
	nothingBut(t, fs.Dir(dir), "out")
}

func testRefusals(t *testing.T, root string) {
	put(t, fs.Join(root, "file"), []byte("x"))
	for _, c := range []struct{ name, want string }{{"file", "is a file"}, {"file/below", ""}} {
		path := fs.Join(root, c.name)
		_, err := fs.CreateDir(path, true)
		wantInput(t, err, path, c.want)
	}
	nothingBut(t, root, "file")
}

func testFetch(t *testing.T, root string) {
	dir := fs.Join(root, "set")
	d, err := fs.CreateDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	big := noise(9, 5<<20)
	for name, data := range map[string][]byte{"big": big, "empty": nil} {
		if err := os.WriteFile(d.Join(name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	local, done, err := fs.Fetch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	nothingBut(t, local, "big", "empty")
	if b, err := os.ReadFile(filepath.Join(local, "big")); err != nil || !bytes.Equal(b, big) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	err = fs.Renamed(fs.Inputf(filepath.Join(local, "big"), 3, "bad"), local, dir)
	if want := fs.Join(dir, "big") + ":3: bad"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	done()
	if fs.Shared(root) == fs.Exists(local) {
		t.Error("done must remove a copy and nothing else")
	}
}

func testCancel(t *testing.T, root string) {
	path := fs.Join(root, "long")
	put(t, path, noise(5, 30<<20))
	ctx, cancel := context.WithCancel(t.Context())
	f, err := fs.Open(ctx, fs.Local{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if n, err := io.Copy(io.Discard, f); fs.Shared(root) && !errors.Is(err, context.Canceled) {
		t.Errorf("%d more bytes, %v", n, err)
	}
	if _, err := fs.Open(ctx, fs.Local{}, path); fs.Shared(root) && !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
}

// testRanges: a file may be read in order and by ranges at the same time, whichever comes first.
func testRanges(t *testing.T, root string) {
	path, data := fs.Join(root, "long"), noise(6, 20<<20)
	put(t, path, data)
	for _, first := range []string{"order", "range"} {
		f, err := fs.For(t.Context(), path).Open(path)
		if err != nil {
			t.Fatal(err)
		}
		ranges := func() {
			for _, at := range []int{0, 17 << 20, 5<<20 + 1, len(data) - 1000} {
				p := make([]byte, 1000)
				if n, err := f.ReadAt(p, int64(at)); n != len(p) || !bytes.Equal(p, data[at:at+len(p)]) {
					t.Errorf("%s first: %d bytes at %d, %v", first, n, at, err)
				}
			}
		}
		if first == "range" {
			ranges()
		}
		var got bytes.Buffer
		_, err = io.CopyN(&got, f, 9<<20)
		ranges()
		_, rest := io.Copy(&got, f)
		if err != nil || rest != nil || !bytes.Equal(got.Bytes(), data) || f.Size() != int64(len(data)) {
			t.Errorf("%s first: %d bytes, %v, %v", first, got.Len(), err, rest)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// testKept: calls that share a connection do what they do alone.
func testKept(t *testing.T, root string) {
	disk, done := fs.Keep(t.Context(), root)
	a, b := fs.Join(root, "d", "a"), fs.Join(root, "d", "b")
	err := errors.Join(disk.MkdirAll(fs.Dir(a)), disk.WriteFile(a, []byte("one")), disk.WriteFile(a, []byte("two")),
		disk.Rename(a, b))
	if err != nil {
		t.Fatal(err)
	}
	if names, err := fs.NamesOn(disk, fs.Dir(a)); err != nil || len(names) != 1 || names[0] != "b" {
		t.Errorf("%q, %v", names, err)
	}
	if got, err := fs.ReadFileOn(disk, b); err != nil || string(got) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	wantInput(t, disk.WriteFile(fs.Dir(a), nil), fs.Dir(a), "is a directory")
	if _, err := disk.Stat(a); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := errors.Join(disk.RemoveAll(fs.Dir(a)), done()); err != nil || fs.Exists(b) {
		t.Error(err)
	}
}

func testRemove(t *testing.T, root string) {
	put(t, fs.Join(root, "x"), []byte("x"))
	for range 2 { // the second time it does not exist
		if err := fs.RemoveAll(fs.Join(root, "x")); err != nil {
			t.Fatal(err)
		}
	}
	nothingBut(t, root)
}
