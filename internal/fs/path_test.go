package fs

import (
	"errors"
	iofs "io/fs"
	"path/filepath"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for path, want := range map[string]string{
		"hdfs://nn:8020/a": "hdfs://nn:8020/a", "hdfs:///a": "hdfs:///a", "hdfs:/a/b": "hdfs:///a/b",
		"HDFS:///a":       "hdfs:///a",
		"Hdfs://eve@NN/a": "hdfs://eve@NN/a", "hDfS:/a": "hdfs:///a", "file:///a/b": "/a/b", "FILE:/a": "/a",
		"hdfs://": "hdfs://",
		"":        "", "-": "-", "a/b": "a/b", "/a:b": "/a:b", "a:b": "a:b", "a:/b": "a:/b", "./s3://b": "./s3://b",
		"1a://b":         "1a://b",
		"127.0.0.1:7070": "127.0.0.1:7070", "[::1]:80": "[::1]:80", "host:80": "host:80", "hdfs": "hdfs", "file:a": "file:a",
	} {
		if got, err := Canonical(path); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]string{
		"s3://b/m": "s3:// is not read or written here: give hdfs://", "S3A://b": "S3A://", "viewfs:///x": "viewfs://",
		"http://h/x":    "http://",
		"file://host/x": "file://", "abfs+x.1-y://z": "abfs+x.1-y://", "hdfs:a/b": "begin at the root",
	} {
		if got, err := Canonical(path); !IsInput(err) || !strings.HasPrefix(err.Error(), path+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"hdfs:/a", "HDFS://a", "file:///a", "s3://x", "a:b", ":", "file:/hdfs:/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := Canonical(path)
		if err != nil {
			return
		}
		if again, err := Canonical(got); err != nil || again != got {
			t.Errorf("%q: %q, then %q (%v)", path, got, again, err)
		}
	})
}

// TestNewFileNamesTheMissingFolder checks that the error for a new file in a missing folder names
// the folder.
func TestNewFileNamesTheMissingFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	path := filepath.Join(dir, "wf")
	_, err := CreateFile(path)
	if !IsInput(err) || !errors.Is(err, iofs.ErrNotExist) || !strings.HasPrefix(err.Error(), path+": ") ||
		!strings.Contains(err.Error(), "directory as "+dir+": make it first") {
		t.Error(err)
	}
}
