package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
)

// ingested makes a data set of so many rows.
func ingested(t testing.TB, rows int) string {
	t.Helper()
	dir := t.TempDir()
	var b bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&b, "l%d %d:1 %d:2\n", i%7, i%50+1, i%50+60)
	}
	in, out := filepath.Join(dir, "in.svm"), filepath.Join(dir, "data")
	if err := os.WriteFile(in, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Ingest(t.Context(), dataset.Options{Paths: []string{in}, Out: out, FS: fs.Local{}}); err != nil {
		t.Fatal(err)
	}
	return out
}

func fingerprint(t testing.TB, dir string) string {
	t.Helper()
	l, err := dataset.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l.Fingerprint
}

// counting counts what is put.
type counting struct {
	store.Store
	puts int
}

func (c *counting) Put(ctx context.Context, values []store.Value) error {
	c.puts += len(values)
	return c.Store.Put(ctx, values)
}

func TestUploadAndFetch(t *testing.T) {
	dir := ingested(t, 500)
	st := &counting{Store: memory.New(memory.Options{})}
	var done, total int64
	path, err := Upload(t.Context(), st, 1, dir, false, func(d, n int64) { done, total = d, n })
	if err != nil || !Uploaded(path) || done != total || done == 0 {
		t.Fatalf("upload: %q, %d of %d bytes, %v", path, done, total, err)
	}
	first := st.puts
	if again, err := Upload(t.Context(), st, 1, dir, false, nil); err != nil || again != path || st.puts != first+1 {
		// the manifest alone
		t.Errorf("upload again: %q, %d values more, %v", again, st.puts-first, err)
	}
	c := &Cache{Dir: t.TempDir(), Bytes: 1 << 30, Store: st}
	d := &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)}
	for range 2 {
		set, err := c.Open(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if set.Fingerprint != d.Fingerprint || set.Matrix.Rows != 500 {
			t.Errorf("opened %s with %d rows", set.Fingerprint, set.Matrix.Rows)
		}
		set.Close()
		c.Store = nothing{} // the second time it is there
	}
}

// flipped is a store with one value that its disk has changed.
type flipped struct {
	Reader
	key store.Key
}

func (f flipped) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	out, err := f.Reader.Get(ctx, keys)
	for i, k := range keys {
		if k == f.key && err == nil {
			out[i] = bytes.Clone(out[i])
			out[i][len(out[i])/2] ^= 1
		}
	}
	return out, err
}

// nothing is a store without values.
type nothing struct{}

func (nothing) Get(_ context.Context, keys []store.Key) ([][]byte, error) {
	return make([][]byte, len(keys)), nil
}

// What a job says about its data is not believed.
func TestOpenRefuses(t *testing.T) {
	dir := ingested(t, 100)
	st := memory.New(memory.Options{})
	path, err := Upload(t.Context(), st, 1, dir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	good := fingerprint(t, dir)
	other := strings.Repeat("ab", 32)
	for _, test := range []struct {
		name    string
		d       *taxonv1.Data
		refused bool
	}{
		{"no fingerprint", &taxonv1.Data{Path: path}, true},
		{"a path as fingerprint", &taxonv1.Data{Path: path, Fingerprint: "../../etc"}, true},
		{"another fingerprint", &taxonv1.Data{Path: path, Fingerprint: other}, false},
		{"another manifest", &taxonv1.Data{Path: uploaded + other, Fingerprint: good}, false},
		{"no manifest", &taxonv1.Data{Path: uploaded + "x", Fingerprint: good}, false},
		{"in place", &taxonv1.Data{Path: dir, Fingerprint: good}, true},
	} {
		c := &Cache{Dir: t.TempDir(), Bytes: 1 << 30, Store: st}
		set, err := c.Open(t.Context(), test.d)
		if err == nil {
			set.Close()
			t.Errorf("%s: opened", test.name)
		} else if Refused(err) != test.refused {
			t.Errorf("%s: %v (refused: %v)", test.name, err, Refused(err))
		}
	}
	small := &Cache{Dir: t.TempDir(), Bytes: 100, Store: st}
	if _, err := small.Open(t.Context(), &taxonv1.Data{Path: path, Fingerprint: good}); !Refused(err) ||
		!strings.Contains(err.Error(), "‹cache") {
		t.Errorf("a set larger than the cache: %v", err)
	}
}

// A value that is missing, or a file that is not what the manifest says, gives no set.
func TestFetchFindsDamage(t *testing.T) {
	dir := ingested(t, 100)
	whole := memory.New(memory.Options{})
	path, err := Upload(t.Context(), whole, 1, dir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)}
	var keys []store.Key
	if err := whole.List(t.Context(), "", func(i store.Info) error {
		keys = append(keys,
			i.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"missing", "flipped"} {
		for _, k := range keys {
			st := memory.New(memory.Options{})
			for _, other := range keys {
				v, err := whole.Get(t.Context(), []store.Key{other})
				if err != nil {
					t.Fatal(err)
				}
				data := bytes.Clone(v[0])
				if other == k && damage == "missing" {
					continue
				}
				if other == k {
					data[len(data)/2] ^= 1 // the shard takes no such value
				}
				err = st.Put(t.Context(), []store.Value{{Key: other, Data: data}})
				if flipped := other == k; flipped != errors.Is(err, store.ErrInvalid) {
					t.Fatalf("flipped %t: put %v", flipped, err)
				}
			}
			var bad Reader = st
			if damage == "flipped" {
				bad = flipped{whole, k}
			}
			c := &Cache{Dir: t.TempDir(), Bytes: 1 << 30, Store: bad}
			if set, err := c.Open(t.Context(), d); err == nil {
				set.Close()
				t.Errorf("%v %s: opened", k, damage)
			} else if Refused(err) || damage == "missing" && !errors.Is(err, ErrNotThere) {
				t.Errorf("%v %s: %v", k, damage, err)
			}
			if left, _ := filepath.Glob(filepath.Join(c.Dir, "*.part")); len(left) > 0 {
				t.Errorf("%v %s: left %v", k, damage, left)
			}
		}
	}
}

// The set used longest ago makes room.
func TestCacheIsBounded(t *testing.T) {
	st := memory.New(memory.Options{})
	c := &Cache{Dir: t.TempDir(), Store: st}
	var sets []*taxonv1.Data
	for i := range 3 {
		dir := ingested(t, 100+i)
		path, err := Upload(t.Context(), st, 1, dir, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)})
		c.Bytes = fs.FolderBytes(dir)*2 + 1000
	}
	open := func(i int) {
		t.Helper()
		set, err := c.Open(t.Context(), sets[i])
		if err != nil {
			t.Fatal(err)
		}
		set.Close()
	}
	open(0)
	open(1)
	open(0)
	open(2) // 1 goes
	for i, want := range []bool{true, false, true} {
		_, err := os.Stat(filepath.Join(c.Dir, sets[i].Fingerprint))
		if (err == nil) != want {
			t.Errorf("set %d is there: %v, want %v", i, err == nil, want)
		}
	}
	open(1) // fetched again
}

func TestRoots(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(root, "in"), filepath.Join(root, "bad"), filepath.Join(root+"x", "twin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.RemoveAll(root + "x") })
	link := func(to, at string) {
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, filepath.Join(root, "out"))
	link(filepath.Join(root, "in"), filepath.Join(outside, "back"))
	link("/etc/passwd", filepath.Join(root, "bad", "shard"))
	r, err := MakeRoots([]string{root})
	if err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		filepath.Join(root, "in"):           true,
		filepath.Join(outside, "back"):      true, // it ends below the root
		filepath.Join(root, "out"):          false,
		filepath.Join(root, "bad"):          false, // a file in it leads out
		filepath.Join(root, "nothing"):      false,
		outside:                             false,
		root + "/in/../../":                 false,
		filepath.Join(root+"x", "twin"):     false,
		"/":                                 false,
		"relative":                          false,
		"":                                  false,
		filepath.Join(outside, "not/there"): false,
	} {
		if err := r.Check(path); (err == nil) != ok {
			t.Errorf("%q: %v, want allowed %v", path, err, ok)
		}
	}
	remote, err := MakeRoots([]string{"hdfs:///wiki/", root, "hdfs://nn:8020/a/b"})
	if err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		"hdfs:///wiki":             true,
		"hdfs:///wiki/set":         true,
		"hdfs://nn:8020/a/b/c":     true,
		filepath.Join(root, "in"):  true,
		"hdfs:///wikis/set":        false,
		"hdfs:///wiki/../etc":      false,
		"hdfs:///wiki/":            false, // not clean: one folder has one name
		"hdfs://eve@nn:8020/a/b/c": false, // no other user's rights
		"hdfs://nn:8020/a":         false,
		"hdfs://other/wiki/set":    false,
		"hdfs://x y/wiki":          false,
	} {
		if err := remote.Check(path); (err == nil) != ok {
			t.Errorf("%q: %v, want allowed %v", path, err, ok)
		}
	}
	if err := r.Check("hdfs:///wiki/set"); err == nil {
		t.Error("a local root allows a path in HDFS")
	}
	if err := (Roots{}).Check(root); err == nil {
		t.Error("no roots allow a path")
	}
	if _, err := MakeRoots([]string{filepath.Join(root, "nothing")}); err == nil {
		t.Error("a root that is not there was taken")
	}
}

// Submissions from the network are checked before anything is done with them.
func TestGuard(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for _, test := range []struct {
		job, path, fingerprint string
		ok                     bool
	}{
		{"j", uploaded + sum, sum, true},
		{"", uploaded + sum, sum, true},
		{"../j", uploaded + sum, sum, false},
		{"data-j", uploaded + sum, sum, false},
		{"j", uploaded + sum, "x", false},
		{"j", uploaded + "x", sum, false},
		{"j", uploaded, sum, false},
		{"j", "/etc", sum, false},
		{"j", "", sum, false},
		{"j", strings.Repeat("/x", 4000), sum, false},
	} {
		d := &taxonv1.Data{Path: test.path, Fingerprint: test.fingerprint}
		if err := (&guardedJobs{}).check(test.job, d); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if (&guardedJobs{}).check("j", nil) == nil {
		t.Error("a job without data was taken")
	}
}

// Nobody can fill an upload's keys beforehand with other bytes, whatever of it is there.
func TestUploadIsNotForestalled(t *testing.T) {
	dir := ingested(t, 500)
	whole := memory.New(memory.Options{})
	path, err := Upload(t.Context(), whole, 1, dir, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := memory.New(memory.Options{})
	err = whole.List(t.Context(), "", func(i store.Info) error {
		wrong := bytes.Repeat([]byte{7}, int(i.Bytes))
		if err := st.Put(t.Context(), []store.Value{{Key: i.Key, Data: wrong}}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%v was filled with other bytes: %v", i.Key, err)
		}
		other := i.Key
		other.Name = store.ContentName(wrong)
		return st.Put(t.Context(), []store.Value{{Key: other, Data: wrong}}) // rubbish beside it
	})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Upload(t.Context(), st, 1, dir, false, nil); err != nil || again != path {
		t.Fatalf("%q, %v", again, err)
	}
	c := &Cache{Dir: t.TempDir(), Bytes: 1 << 30, Store: st}
	set, err := c.Open(t.Context(), &taxonv1.Data{Path: path, Fingerprint: fingerprint(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	set.Close()
}
