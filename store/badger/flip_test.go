package badger

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"taxon/store"
)

// flipValues are in segments; the heads of a part of them are in Badger's tables, of
// others in its log.
func flipValues() (inTables, inLog []store.Value) {
	r := rand.NewChaCha8([32]byte{1})
	for i := range 40 {
		data := make([]byte, 100+i*i*300)
		_, _ = r.Read(data) // never fails
		v := store.Value{Key: store.Key{Job: "flip", Step: uint32(i % 3), Task: uint32(i), Attempt: 1, Name: "v"}, Data: data}
		if i < 30 {
			inTables = append(inTables, v)
		} else {
			inLog = append(inLog, v)
		}
	}
	return inTables, inLog
}

// closedShard writes a shard, as one leaves it that was killed after its second start.
func closedShard(t *testing.T) string {
	t.Helper()
	dir, killed := t.TempDir(), t.TempDir()
	inTables, inLog := flipValues()
	s := mustOpen(t, dir)
	if err := s.Put(t.Context(), inTables); err != nil {
		t.Fatal(err)
	}
	indexAll(t, s)
	if err := s.Close(); err != nil { // flushes the log to a table
		t.Fatal(err)
	}
	s = mustOpen(t, dir)
	defer s.Close()
	if err := s.Put(t.Context(), inLog[:5]); err != nil {
		t.Fatal(err)
	}
	indexAll(t, s)
	if err := s.Put(t.Context(), inLog[5:]); err != nil {
		t.Fatal(err)
	}
	copyShard(t, dir, killed)
	return killed
}

// flipCount says how many bits TestFlippedBits flips; it tells the process that does it,
// too, as Badger leaves goroutines behind when it refuses to open.
const (
	flipCount = "TAXON_TEST_FLIPS"
	flipChild = "TAXON_TEST_FLIP_CHILD"
)

// TestFlippedBits: whatever bit of a closed shard's files is flipped, each value reads
// back right, or missing, or corrupt; or the shard is refused with one clear line.
func TestFlippedBits(t *testing.T) {
	n := os.Getenv(flipCount)
	if n == "" {
		n = "18"
	}
	if os.Getenv(flipChild) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlippedBits$", "-test.v")
		cmd.Env = append(os.Environ(), flipChild+"=1", flipCount+"="+n)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		} else {
			t.Logf("%s", out)
		}
		return
	}
	flips, err := strconv.Atoi(n)
	if err != nil {
		t.Fatal(err)
	}
	flipBits(t, flips)
}

// flipBits flips bits in the kinds of files in turn.
func flipBits(t *testing.T, flips int) {
	dir := closedShard(t)
	inTables, inLog := flipValues()
	values := append(inTables, inLog...)
	kinds := []string{"segments/*.seg", "*.sst", "*.mem", "segments/*.seg", "MANIFEST", "*.mem", "*.sst", "*.vlog",
		store.IDFile}
	r := rand.New(rand.NewPCG(1, 2))
	var refused, bad, right int
	for i := range flips {
		name := kinds[i%len(kinds)]
		paths, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s: %v", name, err)
		}
		flipped := flippedCopy(t, dir, paths[r.IntN(len(paths))], r)
		s, err := Open(Options{Dir: flipped, Memory: minMemory})
		if err != nil {
			refused++
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the refusal has several lines: %v", name, err)
			}
			continue
		}
		for _, v := range values {
			got, err := s.Get(t.Context(), []store.Key{v.Key})
			switch {
			case errors.Is(err, store.ErrCorrupt), err == nil && got[0] == nil:
				bad++
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case !bytes.Equal(got[0], v.Data):
				t.Errorf("%s: wrong bytes are returned for %s", name, v.Key)
			default:
				right++
			}
		}
		if err := s.Close(); err != nil {
			t.Logf("%s: close: %v", name, err)
		}
	}
	t.Logf("%d times refused; %d values missing or corrupt, %d right", refused, bad, right)
	if flips >= 18 && (refused == 0 || bad == 0 || right == 0) {
		t.Error("the flips hit nothing, or everything")
	}
}

// flippedCopy copies a shard with one bit of a file flipped.
func flippedCopy(t *testing.T, dir, path string, r *rand.Rand) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "shard")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	name, err := filepath.Rel(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(to, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(b, "\x00")) // logs are longer than what is in them
	b[r.IntN(max(used, 1))] ^= 1 << r.IntN(8)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}
