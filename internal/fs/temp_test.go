package fs

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const envHolds = "TAXON_TEST_HOLDS_TEMP"

// TestTempDirHolder is the second process of TestTempDir: it creates a folder and waits.
func TestTempDirHolder(t *testing.T) {
	if os.Getenv(envHolds) == "" {
		t.Skip("is run by TestTempDir")
	}
	dir, _, err := TempDir("held")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	fmt.Println(dir)
	select {}
}

// TestTempDir checks that the folder of a killed process in TMPDIR is removed by the next one, but
// neither that of a living process nor the files of others.
func TestTempDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	mine, done, err := TempDir("mine")
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(os.Args[0], "-test.run=^TestTempDirHolder$")
	holder.Env = append(os.Environ(), envHolds+"=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer holder.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	held := line[:len(line)-1]
	foreign := []string{filepath.Join(os.TempDir(), "taxon-hdfs-1"), filepath.Join(os.TempDir(), "other.tmp")}
	for _, dir := range foreign {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	next := func() {
		t.Helper()
		_, done, err := TempDir("next")
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	next()
	for _, dir := range append(foreign, mine, held) {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("a folder in use, or another's, was removed: %v", err)
		}
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed
	next()
	if _, err := os.Stat(held); !os.IsNotExist(err) {
		t.Errorf("the killed process's folder is still there (%v)", err)
	}
	done()
	if left, _ := os.ReadDir(os.TempDir()); len(left) != len(foreign) {
		t.Errorf("left behind: %v", left)
	}
}
