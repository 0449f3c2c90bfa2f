package backup

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

var rewrite = flag.Bool("rewrite", false, "write the golden folder anew")

func cluster(t *testing.T, shards int) *storerpc.Client {
	t.Helper()
	var list []store.Shard
	for range shards {
		list = append(list, memory.New(memory.Options{}))
	}
	c, err := storerpc.Embedded(list, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values are of two jobs and some steps.
func values(job string, n int) []store.Value {
	var out []store.Value
	for i := range n {
		k := store.Key{Job: job, Step: uint32(i % 4), Task: uint32(i), Attempt: 1, Name: fmt.Sprintf("v/%d", i%3)}
		out = append(out, store.Value{Key: k, Data: bytes.Repeat([]byte{byte(i)}, i*i%5000)})
	}
	return out
}

func fill(t *testing.T, c store.Store, lists ...[]store.Value) {
	t.Helper()
	for _, v := range lists {
		if err := c.Put(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

func count(t *testing.T, c store.Store) int {
	t.Helper()
	n := 0
	if err := c.List(t.Context(), "", func(store.Info) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func write(t *testing.T, path string, src Placed) *Manifest {
	t.Helper()
	dir, err := Local(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Write(t.Context(), dir, src, Spec{Job: "a", Keep: func(k store.Key) bool { return k.Step != 2 },
		Extra: []Extra{{Name: "state", Data: []byte("the coordinator's")}}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOtherShards(t *testing.T) {
	src := cluster(t, 5)
	a := values("a", 200)
	fill(t, src, a, values("b", 50))
	path := filepath.Join(t.TempDir(), "deep", "snap")
	for range 2 { // the second replaces the first
		if m := write(t, path, src); m.Values != 150 || len(m.Parts) != 5 {
			t.Errorf("%d values in %d parts", m.Values, len(m.Parts))
		}
	}
	for _, shards := range []int{1, 3, 8} {
		dst := cluster(t, shards)
		s, err := Open(t.Context(), fs.Local{}, path+"/")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // again does no harm
			if err := s.Restore(t.Context(), dst); err != nil {
				t.Fatal(err)
			}
		}
		if n := count(t, dst); n != 150 {
			t.Errorf("%d values restored", n)
		}
		for _, v := range a {
			got, err := dst.Get(t.Context(), []store.Key{v.Key})
			if err != nil || v.Key.Step != 2 && !bytes.Equal(got[0], v.Data) {
				t.Fatalf("%s: %d bytes, %v", v.Key, len(got[0]), err)
			}
		}
		if state, err := s.ReadExtra(t.Context(), "state"); err != nil || string(state) != "the coordinator's" {
			t.Errorf("%q, %v", state, err)
		}
		if _, err := s.ReadExtra(t.Context(), "other"); !errors.Is(err, store.ErrSnapshot) {
			t.Errorf("a file that is not there: %v", err)
		}
	}
}

// TestDamaged: whichever file is damaged or lost, nothing is restored and the error
// names it.
func TestDamaged(t *testing.T) {
	src := cluster(t, 3)
	fill(t, src, values("a", 60))
	path := filepath.Join(t.TempDir(), "snap")
	write(t, path, src)
	files, err := os.ReadDir(path)
	if err != nil || len(files) != 5 {
		t.Fatalf("%v, %v", files, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range files {
		name := filepath.Join(path, f.Name())
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, damage := range []func() []byte{
			func() []byte { b := bytes.Clone(whole); b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b },
			func() []byte { return whole[:r.IntN(len(whole))] },
			func() []byte { return append(bytes.Clone(whole), 0) },
			func() []byte { return nil },
		} {
			for range 5 {
				if err := os.WriteFile(name, damage(), 0o600); err != nil {
					t.Fatal(err)
				}
				refused(t, path, f.Name(), store.ErrSnapshot)
			}
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		refused(t, path, f.Name(), os.ErrNotExist)
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func refused(t *testing.T, path, file string, want error) {
	t.Helper()
	dst := cluster(t, 2)
	s, err := Open(t.Context(), fs.Local{}, path)
	if err == nil {
		_, err = s.ReadExtra(t.Context(), "state")
	}
	if err == nil {
		err = s.Restore(t.Context(), dst)
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v", file, err)
	}
	if n := count(t, dst); n != 0 {
		t.Errorf("%s: %d values of a damaged snapshot are restored", file, n)
	}
}

// dropping loses a value between List and Get.
type dropping struct{ *storerpc.Client }

func (d dropping) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	out, err := d.Client.Get(ctx, keys)
	if err == nil && len(out) > 0 {
		out[0] = nil
	}
	return out, err
}

// TestFailedWrite leaves the snapshot that was there.
func TestFailedWrite(t *testing.T) {
	src := cluster(t, 3)
	fill(t, src, values("a", 60))
	path := filepath.Join(t.TempDir(), "snap")
	write(t, path, src)
	for what, c := range map[string]struct {
		src  Placed
		spec Spec
		err  error
	}{
		"lost value":     {dropping{src}, Spec{Job: "a"}, store.ErrMissing},
		"bad job":        {src, Spec{Job: "a b"}, store.ErrInvalid},
		"bad file":       {src, Spec{Job: "a", Extra: []Extra{{Name: "../x"}}}, store.ErrInvalid},
		"two files":      {src, Spec{Job: "a", Extra: []Extra{{Name: "x"}, {Name: "x"}}}, store.ErrInvalid},
		"takes manifest": {src, Spec{Job: "a", Extra: []Extra{{Name: "manifest"}}}, store.ErrInvalid},
	} {
		dir, err := Local(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Write(t.Context(), dir, c.src, c.spec); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", what, err)
		}
		s, err := Open(t.Context(), fs.Local{}, path)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := s.Verify(t.Context()); err != nil || s.Values != 45 {
			t.Errorf("%s: %d values, %v", what, s.Values, err)
		}
	}
}

// TestGolden reads a snapshot of version 1 and writes it again, byte for byte.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "snapshot-v1")
	src := cluster(t, 2)
	fill(t, src, values("a", 12))
	if *rewrite {
		write(t, golden, src)
	}
	s, err := Open(t.Context(), fs.Local{}, golden)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(t.Context(), cluster(t, 3)); err != nil {
		t.Fatal(err)
	}
	now := filepath.Join(t.TempDir(), "snap")
	write(t, now, src)
	for _, name := range []string{"manifest", "part-00000", "part-00001", "state"} {
		a, errA := os.ReadFile(filepath.Join(golden, name))
		b, errB := os.ReadFile(filepath.Join(now, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s has changed (%v, %v): raise the version", name, errA, errB)
		}
	}
}

// memorySource has one file.
type memorySource struct{ data []byte }

func (m memorySource) Open(context.Context, string) (io.ReadCloser, int64, error) {
	return io.NopCloser(bytes.NewReader(m.data)), int64(len(m.data)), nil
}

func FuzzManifest(f *testing.F) {
	m := Manifest{Job: "a", Values: 3, Parts: []File{{Name: "part-00000", Bytes: 10, Values: 3}},
		Extra: []File{{Name: "state"}}}
	b, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	_, body, _ := bytes.Cut(b, []byte("\n"))
	f.Add(body)
	f.Add([]byte(`{"job":"a","parts":[{"name":"../x"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := fmt.Appendf(nil, "%s%08x %d\n%s", manifestHead, store.Checksum(body), len(body), body)
		s, err := Open(t.Context(), memorySource{whole}, "x")
		if err != nil {
			if !errors.Is(err, store.ErrSnapshot) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		for _, f := range append(s.Parts, s.Extra...) {
			if strings.ContainsAny(f.Name, "/\\") || f.Name == ".." {
				t.Errorf("file name %q is taken", f.Name)
			}
		}
		if err := s.Restore(t.Context(), memory.New(memory.Options{})); err == nil && s.Values > 0 {
			t.Errorf("%d values were made of nothing", s.Values)
		}
	})
}
