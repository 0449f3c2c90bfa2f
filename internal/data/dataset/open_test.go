package dataset

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs"
)

const smallText = "a,b\tthe red dog\nb\tThe RED cat, the end\n\tno cat\nc\tdog! red\n"

// TestOpenDamaged flips a bit in every byte of every file and truncates every file. Open refuses
// each with an error that names the file.
func TestOpenDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	ingestString(t, dir, smallText, Options{Text: true}).Close()
	refused := func(name, what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err == nil {
			s.Close()
		}
		if !fs.IsInput(err) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s, %s: %v", name, what, err)
		}
	}
	for name := range folder(t, dir) {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << (i % 8)
			refused(name, "a bit changed", bad)
		}
		for _, n := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
			refused(name, "cut short", whole[:n])
		}
		refused(name, "longer", append(bytes.Clone(whole), 0))
		os.Remove(path)
		if _, err := Open(dir); !fs.IsInput(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s missing: %v", name, err)
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// reseal writes a manifest with the checksums of the files as they are.
func reseal(t testing.TB, dir string, edit func(*manifest)) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	m := new(manifest)
	if err := json.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
	for i := range m.Files {
		m.Files[i] = sealed(t, dir, m.Files[i].Name)
	}
	if edit != nil {
		edit(m)
	}
	m.Fingerprint = fingerprint(m.Files)
	if b, err = m.encode(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, manifestFile), b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestOpenInconsistent checks that files with correct checksums but inconsistent content are
// refused too. Nothing that Open returns may send a solver out of bounds.
func TestOpenInconsistent(t *testing.T) {
	for _, c := range []struct {
		file string
		at   int // offset of a byte to raise by one
	}{
		{"shard-00000.csr", 16}, {"shard-00000.csr", 24}, {"shard-00000.csr", 32},
		{"shard-00000.csr", 64}, {"shard-00000.csr", 64 + 8}, {"shard-00000.csr", 64 + 5*8 + 2},
		{"shard-00000.csr", 8}, {"shard-00000.csr", 12}, {"shard-00000.csr", 48},
		{"rowlabels.bin", 16}, {"rowlabels.bin", 64 + 8}, {"rowlabels.bin", 64 + 5*8 + 1},
		{"postings.bin", 64}, {"postings.bin", 64 + 4*8 + 1}, {"features.bin", 16}, {"idf.bin", 16},
		{"features.bin", 64 + 3}, {"features.bin", 64 + 16 + 3}, {"idf.bin", 64 + 7 + 8},
	} {
		dir := filepath.Join(t.TempDir(), "set")
		ingestString(t, dir, smallText, Options{Text: true}).Close()
		path := filepath.Join(dir, c.file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[c.at] += 0x80 // a sign, or a large number
		os.WriteFile(path, b, 0o666)
		reseal(t, dir, nil)
		if s, err := Open(dir); !fs.IsInput(err) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s, byte %d: opened: %v, %v", c.file, c.at, s != nil, err)
		}
	}
	for name, edit := range map[string]func(*manifest){
		"rows":     func(m *manifest) { m.Stats.Rows++ },
		"negative": func(m *manifest) { m.Stats.Rows = -1 },
		"huge":     func(m *manifest) { m.Stats.Rows = 1 << 60 },
		"columns":  func(m *manifest) { m.Stats.Columns-- },
		"nonzeros": func(m *manifest) { m.Stats.Nonzeros++ },
		"labels":   func(m *manifest) { m.Stats.Labels = 0 },
		"no files": func(m *manifest) { m.Files = nil },
		"escape":   func(m *manifest) { m.Files[0].Name = "../" + m.Files[0].Name },
		"twice":    func(m *manifest) { m.Files = append(m.Files, m.Files[0]) },
		"version":  func(m *manifest) { m.Version = 2 },
		"format":   func(m *manifest) { m.Format = "taxon-model" },
	} {
		dir := filepath.Join(t.TempDir(), "set")
		ingestString(t, dir, smallText, Options{Text: true}).Close()
		reseal(t, dir, edit)
		if _, err := Open(dir); !fs.IsInput(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenWrongPath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o666)
	for _, path := range []string{dir, file, filepath.Join(dir, "none"), ""} {
		if _, err := Open(path); !fs.IsInput(err) || LooksIngested(path) {
			t.Errorf("%q: %v, looks ingested: %v", path, err, LooksIngested(path))
		}
	}
	ingestString(t, dir+"/set", "a 1:1\n", Options{}).Close()
	if !LooksIngested(dir + "/set") {
		t.Error("a data set does not look like one")
	}
	manifest := filepath.Join(dir, "set", manifestFile)
	for _, size := range []int64{100, 0, -1} { // a truncated manifest, or none
		if size < 0 {
			os.Remove(manifest)
		} else if err := os.Truncate(manifest, size); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir + "/set"); !fs.IsInput(err) || !LooksIngested(dir+"/set") || size >= 0 &&
			!strings.Contains(err.Error(), "damaged") {
			t.Errorf("manifest of %d bytes: %v", size, err)
		}
	}
}
