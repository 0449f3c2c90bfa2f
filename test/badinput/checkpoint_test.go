package badinput

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// longTraining takes 1,000 sweeps, as there is no such gap; it checkpoints at once, so that it can be broken off.
const longTraining = "train --data long.svm --hierarchy tree.txt --out m --x schedule=jacobi --gap 1e-300 " +
	"--max-sweeps " +
	"1000 --x checkpoint-every=1 --x checkpoint-seconds=0.001"

// TestCheckpoints interrupts a training, damages its checkpoint, and runs it again. The run must
// fail with one line and change nothing.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	dir := brokenOff(t)
	bad := func(name string, prep func(*testing.T, string), at, says string) trial {
		return trial{name: name, prep: prep, args: longTraining, at: at, says: says}
	}
	trials := []trial{
		{name: "other options", args: longTraining + " --C 2", at: "m.train: holds the checkpoint of a training with other " +
			"options (C 1, not 2)"},
		{name: "other hierarchy", prep: edit("tree.txt", func(b []byte) []byte { return append(b, "q t\n"...) }),
			args: longTraining, at: "m.train: holds the checkpoint of a training on other data"},
		{name: "other data", prep: edit("long.svm", func(b []byte) []byte { return append(b, "a 1:1\n"...) }),
			args: longTraining, at: "m.train: holds the checkpoint of a training on other data"},
		{name: "missing data", args: strings.Replace(longTraining, "long.svm", "no.svm", 1), at: "no.svm: no such file"},
		bad("job cut", half("m.train/job.json"), "m.train: holds a damaged checkpoint", "--force"),
		bad("job lost", lose("m.train/job.json"), "m.train: holds a damaged checkpoint", "--force"),
		bad("job empty", edit("m.train/job.json", func([]byte) []byte { return nil }), "m.train: holds a damaged checkpoint",
			"--force"),
		bad("state cut", half("m.train/checkpoint/state"), "m.train/checkpoint: the checkpoint is damaged", "--force"),
		bad("state flipped", flip("m.train/checkpoint/state"), "m.train/checkpoint: the checkpoint is damaged",
			"--force"),
		bad("state lost", lose("m.train/checkpoint/state"), "m.train/checkpoint: the checkpoint", "--force"),
		bad("manifest flipped", flip("m.train/checkpoint/manifest"), "m.train/checkpoint: the checkpoint", "--force"),
		bad("manifest lost", lose("m.train/checkpoint/manifest"), "m.train/checkpoint: the checkpoint", "--force"),
		bad("state junk", edit("m.train/checkpoint/state", func([]byte) []byte { return []byte(junk(999)) }),
			"m.train/checkpoint: the checkpoint is damaged", "--force"),
		bad("values cut", half("m.train/checkpoint/part-00000"), "m.train/checkpoint: the checkpoint is damaged",
			"--force"),
		bad("values flipped", flip("m.train/checkpoint/part-00000"), "m.train/checkpoint: the checkpoint is damaged",
			"--force"),
		bad("values empty", edit("m.train/checkpoint/part-00000", func([]byte) []byte { return nil }),
			"m.train/checkpoint: the checkpoint is damaged", "--force"),
		bad("values lost", lose("m.train/checkpoint/part-00000"), "m.train/checkpoint: the checkpoint", "--force"),
	}
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			work := t.TempDir()
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if c.prep != nil {
				c.prep(t, work)
			}
			c.checkIn(t, work)
		})
	}
	t.Run("sound", func(t *testing.T) { finishes(t, dir, longTraining) })
}

// finishes runs a command to its end and checks that only the model remains.
func finishes(t *testing.T, dir, args string) {
	t.Helper()
	if code, _, stderr := (trial{args: args}).run(t, dir); code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "m?*")); err != nil || len(left) > 0 {
		t.Errorf("left beside the model: %v (%v)", left, err)
	}
}

// brokenOff returns a folder in which a training was interrupted by Ctrl-C.
func brokenOff(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var rows strings.Builder
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		fmt.Fprintf(&rows, "%c", "abcd"[r.IntN(4)])
		for f := range 40 {
			if r.IntN(4) == 0 {
				fmt.Fprintf(&rows, " %d:%.3f", f+1, 0.1+0.3*r.Float64())
			}
		}
		rows.WriteByte('\n')
	}
	for name, text := range map[string]string{"long.svm": rows.String(), "tree.txt": goodFiles()["tree.txt"]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, strings.Fields(longTraining)...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	checkpoint := filepath.Join(dir, "m.train", "checkpoint")
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(checkpoint); err == nil {
			break
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatalf("no checkpoint after %v", limit)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != 130 || stdout.Len() > 0 ||
		!strings.HasPrefix(stderr.String(), "taxon: interrupted after sweep ") || strings.Count(stderr.String(), "\n") != 1 {
		t.Fatalf("interrupted: %v; stdout %q, stderr %q", err, stdout.String(), stderr.String())
	}
	return dir
}
