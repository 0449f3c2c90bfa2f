package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnnounce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "coordinator")
	if _, err := ReadPlace(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("without a file: %v", err)
	}
	first := &Announcer{Path: path, Addr: "one:1"}
	second := &Announcer{Path: path, Addr: "two:2"}
	for i, a := range []*Announcer{first, second} {
		if err := a.Announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		p, err := ReadPlace(t.Context(), path)
		if err != nil || p.Coordinator != a.Addr || p.Epoch != uint64(i+1) {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if err := first.Announce(t.Context()); !errors.Is(err, ErrMoved) {
		t.Errorf("the first one announces itself over the second: %v", err)
	}
	first.Every = time.Millisecond
	if err := first.Watch(t.Context()); !errors.Is(err, ErrMoved) {
		t.Errorf("the first one does not notice: %v", err)
	}
	if p, _ := ReadPlace(t.Context(), path); p.Coordinator != "two:2" {
		t.Errorf("%+v", p)
	}
}

func TestReadPlaceRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"no JSON":       "label 1:2\n",
		"other version": `{"version":2,"coordinator":"a:1","epoch":1}`,
		"no address":    `{"version":1,"coordinator":"a","epoch":1}`,
		"too long":      strings.Repeat(" ", maxPlaceBytes+1),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPlace(t.Context(), path); err == nil || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadPlace(t.Context(), dir); err == nil {
		t.Error("a folder is no place")
	}
}

// TestFinder: a caller that comes back after a while is sent to where the coordinator is
// then, and one that comes at once does not read the file again.
func TestFinder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "coordinator")
	f := &finder{path: path}
	want := func(addr string) {
		t.Helper()
		if got, err := f.addr(t.Context()); got != addr || (err == nil) != (addr != "") {
			t.Errorf("%q %v, want %q", got, err, addr)
		}
	}
	want("")
	if err := (&Announcer{Path: path, Addr: "one:1"}).Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("")
	f.read = f.read.Add(-time.Minute)
	want("one:1")
	if err := (&Announcer{Path: path, Addr: "two:2"}).Announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("one:1")
	f.read = f.read.Add(-time.Minute)
	want("two:2")
}
