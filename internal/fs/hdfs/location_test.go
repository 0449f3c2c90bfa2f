package hdfs

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		path string
		want Location
	}{
		{"hdfs://nn:8020/a/b", Location{Host: "nn:8020", Path: "/a/b"}},
		{"hdfs:///a//b/../c/", Location{Path: "/a/c"}},
		{"hdfs://prod", Location{Host: "prod", Path: "/"}},
		{"hdfs://alice@nn/x", Location{User: "alice", Host: "nn", Path: "/x"}},
		{"hdfs://[::1]:9000/x", Location{Host: "[::1]:9000", Path: "/x"}},
		{"hdfs:///a%20b?c#d", Location{Path: "/a%20b?c#d"}},
		{"hdfs:///a@b", Location{Path: "/a@b"}},
		{"hdfs:///../../x", Location{Path: "/x"}},
	} {
		got, err := Parse(c.path)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.path, got, err)
		}
	}
	for _, path := range []string{"", "/a", "hdfs:/a", "HDFS://nn/a", "hdfs://nn:/a", "hdfs://:80/a", "hdfs://nn:99999/a",
		"hdfs://nn:0/", "hdfs://@nn/a",
		"hdfs://a:b@nn/x", "hdfs://:80:1/a", "hdfs://[::1/a", "hdfs://n n/a", "hdfs://nn/a\nb", "hdfs://nn/a\x00"} {
		if l, err := Parse(path); err == nil {
			t.Errorf("%q: %+v, want an error", path, l)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Join("hdfs://nn/a/", "b", "../c"), "hdfs://nn/a/c"},
		{Join("hdfs:///", "b"), "hdfs:///b"},
		{Join("hdfs://u@nn:1", "b"), "hdfs://u@nn:1/b"},
		{Dir("hdfs://nn:1/a/b"), "hdfs://nn:1/a"},
		{Dir("hdfs://nn:1/a"), "hdfs://nn:1/"},
		{Dir("hdfs:///"), "hdfs:///"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// FuzzParse checks that an accepted path is written and parsed to the same location, and stays
// below its root.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"hdfs://nn:8020/a", "hdfs:///a/../b", "hdfs://u@[::1]:1/x", "hdfs://:1", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		l, err := Parse(raw)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("%q: more than a line", err)
			}
			return
		}
		again, err := Parse(l.With(l.Path))
		if err != nil || again != l {
			t.Errorf("%q: %+v, then %+v, %v", raw, l, again, err)
		}
		if !strings.HasPrefix(l.Path, "/") || strings.Contains(l.Path+"/", "/../") {
			t.Errorf("%q: path %q", raw, l.Path)
		}
	})
}
