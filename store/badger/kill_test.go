package badger

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"taxon/store"
)

// killDir tells the test's own binary (TestMain) to be the process that is killed: the
// number of the first value and the shard's folder.
const killDir = "TAXON_TEST_KILL_DIR"

// killValue is value i of those that the process writes: most of them small.
func killValue(i int) store.Value {
	k := store.Key{Job: "kill", Step: uint32(i / 100), Task: uint32(i), Attempt: 1, Name: "v"}
	n := 500 + i%977
	if i%50 == 0 {
		n = 700 << 10
	}
	data := bytes.Repeat(fmt.Appendf(nil, "%d,", i*i), n/2+1)
	return store.Value{Key: k, Data: data[:n]}
}

// writeForever puts values in order and prints the number of each once it is
// acknowledged. It ends by being killed.
func writeForever(dir, from string) error {
	var i int
	if _, err := fmt.Sscan(from, &i); err != nil {
		return err
	}
	s, err := Open(Options{Dir: dir, Memory: minMemory})
	if err != nil {
		return err
	}
	s.waiting = 100 // so that it is killed in all parts of its work
	for ; ; i++ {
		if err := s.Put(context.Background(), []store.Value{killValue(i)}); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

// TestKill kills a writing process at some instants: every value that it had
// acknowledged is there when the shard is opened again, and is right.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	next := 0
	for round := range 3 {
		done := killAfter(t, dir, next, 20+150*round)
		s := mustOpen(t, dir)
		if !s.db.Opts().SyncWrites {
			t.Error("the log is not synced before an acknowledgement")
		}
		for i := 0; i <= done; i++ {
			v := killValue(i)
			got, err := s.Get(t.Context(), []store.Key{v.Key})
			if err != nil || !bytes.Equal(got[0], v.Data) {
				t.Fatalf("round %d: value %d of %d acknowledged: %d bytes, %v", round, i, done, len(got[0]), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		next = done + 1
	}
}

// killAfter lets the process write from a value on and kills it when it has
// acknowledged n of them; the last one that it acknowledged.
func killAfter(t *testing.T, dir string, from, n int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", killDir, from, dir))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last, seen := from-1, 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if seen++; seen == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || seen < n {
		t.Fatalf("%d values acknowledged, then: %v: %s", seen, err, stderr.String())
	}
	return last
}
