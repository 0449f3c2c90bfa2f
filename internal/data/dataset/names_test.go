package dataset

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// TestOpenNames checks that OpenNames needs only the files of names and returns the same names as
// Open.
func TestOpenNames(t *testing.T) {
	dir := t.TempDir()
	in, whole := filepath.Join(dir, "in.txt"), filepath.Join(dir, "whole")
	text := "a\tred fox\nb\tred dog\na,b\tfox dog cat\nc\tcat fish\nc\tfish cow\n"
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ingest(t.Context(), Options{Paths: []string{in}, Out: whole, Text: true, FS: fs.Local{}}); err != nil {
		t.Fatal(err)
	}
	l, err := List(whole)
	if err != nil {
		t.Fatal(err)
	}
	names := t.TempDir()
	for _, f := range l.Files {
		if !HoldsNames(f.Name) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(whole, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(names, f.Name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(names, ManifestName), l.Manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	got, err := OpenNames(names)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if !reflect.DeepEqual(got.Labels, want.Labels) || !reflect.DeepEqual(got.Vocabulary, want.Vocabulary) ||
		!reflect.DeepEqual(got.Feature, want.Feature) || !reflect.DeepEqual(got.IDF, want.IDF) ||
		got.Fingerprint != want.Fingerprint || got.Matrix.Rows != want.Matrix.Rows || got.Matrix.NNZ != want.Matrix.NNZ {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Matrix.Shards != nil || got.PosRows != nil {
		t.Error("names hold instances")
	}
	if _, err := Open(names); err == nil {
		t.Error("Open took a folder without instances")
	}
}

// TestParseManifestRefuses checks that a manifest from another host may not name files outside its
// folder.
func TestParseManifestRefuses(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc/passwd", "x\x00y", "manifest.json", ".hidden"} {
		m := manifest{Format: manifestFormat, Version: version,
			Files: []manifestItem{{Name: name, SHA256: strings.Repeat("0", 64)}}}
		m.Fingerprint = fingerprint(m.Files)
		doc, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest(doc); err == nil {
			t.Errorf("file name %q was taken", name)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	m := manifest{Format: manifestFormat, Version: version, Files: []manifestItem{{Name: "labels.txt", Bytes: 3,
		SHA256: strings.Repeat("a", 64)}}}
	m.Fingerprint = fingerprint(m.Files)
	doc, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Fuzz(func(t *testing.T, doc []byte) {
		l, err := ParseManifest(doc)
		if err != nil {
			return
		}
		for _, file := range l.Files {
			if !filepath.IsLocal(file.Name) || filepath.Base(file.Name) != file.Name {
				t.Errorf("file name %q was taken", file.Name)
			}
		}
	})
}
