package badinput

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// outputs lists commands that write into a folder named disk.
var outputs = []string{
	"train --data big.svm --out disk/m",
	"train --data good.svm --out disk/deep/m",
	"ingest --data big.svm --out disk/s",
	"ingest --data good.svm --out disk/deep/s",
	"predict --model model --data big.svm --top 4 --scores --out disk/p.txt",
	"export --model wide --out disk/w.txt",
	"export --model wide --out disk/w/",
	"demo --keep disk/d",
}

// big adds files that are too large for a small disk.
func big(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "big.svm"), []byte(strings.Repeat(goodFiles()["good.svm"], 40)),
		0o666); err != nil {
		t.Fatal(err)
	}
	var wide strings.Builder
	for i := range 2000 {
		wide.WriteString(fmt.Sprintf("a %d:1\nb %d:1\n", 2*i+1, 2*i+2))
	}
	if err := os.WriteFile(filepath.Join(dir, "wide.svm"), []byte(wide.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	c := trial{args: "train --data wide.svm --out wide --quiet"}
	if code, _, stderr := c.run(t, dir); code != 0 {
		t.Fatal(stderr)
	}
}

// TestFullDisk fills a small file system of its own. It needs the permission to mount one.
func TestFullDisk(t *testing.T) {
	for _, args := range outputs {
		t.Run(args, func(t *testing.T) {
			trial{args: args, exit: 1, says: "the disk is full: free some space", prep: func(t *testing.T, dir string) {
				big(t, dir)
				disk := filepath.Join(dir, "disk")
				mkdir("disk")(t, dir)
				if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=12k"); err != nil {
					t.Skipf("no small disk can be mounted: %v", err)
				}
				t.Cleanup(func() {
					if err := unix.Unmount(disk, 0); err != nil {
						t.Error(err)
					}
				})
			}}.check(t)
		})
	}
}

// TestReadOnlyDisk writes to a read-only file system. It needs the permission to mount one.
func TestReadOnlyDisk(t *testing.T) {
	for _, args := range outputs {
		t.Run(args, func(t *testing.T) {
			trial{args: args, at: "disk/", says: "read-only", prep: func(t *testing.T, dir string) {
				big(t, dir)
				disk := filepath.Join(dir, "disk")
				mkdir("disk")(t, dir)
				if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_RDONLY, ""); err != nil {
					t.Skipf("no read-only disk can be mounted: %v", err)
				}
				t.Cleanup(func() {
					if err := unix.Unmount(disk, 0); err != nil {
						t.Error(err)
					}
				})
			}}.check(t)
		})
	}
}

// TestFileSizeLimit causes the same failure without mounting: files are limited to 2 KiB.
func TestFileSizeLimit(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	for _, args := range outputs {
		if strings.Contains(args, "good.svm") {
			continue // its files are small
		}
		t.Run(args, func(t *testing.T) {
			trial{argv: []string{"bash", "-c", "ulimit -f 2; exec " + binary + " " + args}, exit: 1, says: "disk/",
				prep: func(t *testing.T, dir string) {
					big(t, dir)
					mkdir("disk")(t, dir)
				}}.check(t)
		})
	}
}

// TestFullDevice writes to a device that is always full.
func TestFullDevice(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	trials := []trial{
		{args: "predict --model model --data good.svm --out /dev/full", at: "/dev/full: the disk is full"},
		{args: "export --model model --out /dev/full", at: "/dev/full: the disk is full"},
	}
	for _, args := range []string{"version", "version --json", "help train", "info model", "info good.svm --json",
		"eval --model model --data good.svm", "predict --model model --data good.svm --out -",
		"export --model model --out -"} {
		trials = append(trials, trial{argv: []string{"sh", "-c", "exec " + binary + " " + args + " >" + full},
			at: "standard output: the disk is full"})
	}
	for i := range trials {
		trials[i].exit = 1
		trials[i].name = trials[i].args + strings.Join(trials[i].argv, " ")
	}
	runAll(t, trials)
}

// TestFullDiskInSweeps fills a disk with checkpoints, or with the model after them, on disks of
// growing size until the training succeeds. A failure says what remains, and the same command does
// what the message says. A checkpoint that does not fit does not end a training that has an older
// one: there is a single warning.
func TestFullDiskInSweeps(t *testing.T) {
	spared := false // a training succeeded after such a warning
	for _, args := range []string{
		"train --data set --hierarchy tree.txt --gap 1e-9 --max-sweeps 12",
		"train --data set --hierarchy tree.txt --method hblr-m3 --x tolerance=1e-9 --max-sweeps 12",
	} {
		t.Run(args, func(t *testing.T) {
			dir, seen, warned := t.TempDir(), map[bool]bool{}, false // seen: whether a checkpoint was kept
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			disk := filepath.Join(dir, "disk")
			mkdir("disk")(t, dir)
			c := trial{args: args + " --out disk/m --x checkpoint-every=1 --x checkpoint-seconds=1e-9"}
			for kib, done := 12, false; !done; kib += 4 {
				if err := unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dk", kib)); err != nil {
					t.Skipf("no small disk can be mounted: %v", err)
				}
				code, _, said := c.run(t, dir)
				done = code == 0 || kib > 1000
				if n := strings.Count(said, "the disk is full: free some space; the older checkpoint is kept, and "+
					"the training goes on\n"); n > 1 {
					t.Errorf("%d KiB: %d warnings: %s", kib, n, said)
				} else if n == 1 {
					warned, spared = true, spared || code == 0
				}
				if !done && (code != 1 || !strings.Contains(said, "the disk is full: free some space")) {
					t.Errorf("%d KiB: exit status %d: %s", kib, code, said)
				}
				on, anew := strings.HasSuffix(said, " is kept: the same command continues from there\n"), strings.HasSuffix(said,
					"; nothing is kept: the same command begins anew\n")
				if strings.Contains(said, "training failed in sweep") && !on && !anew {
					t.Errorf("%d KiB: says not what is left: %s", kib, said)
				}
				if (on || anew) && !seen[on] {
					seen[on] = true
					if err := unix.Mount("", disk, "", unix.MS_REMOUNT, "size=10m"); err != nil {
						t.Error(err)
					}
					again, _, told := c.run(t, dir)
					if again != 0 || strings.Contains(told, "resumes after sweep") != on {
						t.Errorf("%d KiB: %s; the same command: exit status %d: %s", kib, said, again, told)
					}
				}
				if err := unix.Unmount(disk, 0); err != nil {
					t.Fatal(err)
				}
			}
			if !seen[true] || !seen[false] || !warned {
				t.Errorf("of trainings that kept a checkpoint and that kept nothing, seen: %v; of a checkpoint "+
					"that did not fit: %v", seen, warned)
			}
		})
	}
	if !spared {
		t.Error("no training ended well after a checkpoint that did not fit")
	}
}

// TestFullStore checks that shards on a full disk are reported once and not by each task, and that
// the final error says that nothing is left.
func TestFullStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
		t.Fatal(err)
	}
	mkdir("disk")(t, dir)
	if err := unix.Mount("tmpfs", filepath.Join(dir, "disk"), "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no small disk can be mounted: %v", err)
	}
	defer func() {
		if err := unix.Unmount(filepath.Join(dir, "disk"), 0); err != nil {
			t.Error(err)
		}
	}()
	code, _, said := trial{args: "train --data set --hierarchy tree.txt --method hblr-m1 --x " +
		"store=badger --out disk/m"}.run(t, dir)
	if code != 1 || strings.Count(said, "\n") != 2 || strings.Count(said, "store is full") != 2 ||
		!strings.Contains(said, "\ntaxon: training failed in sweep 1: ") || !strings.HasSuffix(said,
		"free some or give the shard a larger disk; nothing is kept: the same command begins anew\n") {
		t.Errorf("exit status %d: %s", code, said)
	}
}
