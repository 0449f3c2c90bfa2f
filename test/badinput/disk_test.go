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

// outputs are commands that write into a folder named disk.
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

// big adds files that outgrow a small disk.
func big(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "big.svm"), []byte(strings.Repeat(goodFiles()["good.svm"], 40)), 0o666); err != nil {
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

// TestFullDisk fills a small file system of its own. It needs the right to mount one.
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

// TestReadOnlyDisk writes where nothing can be written. It needs the right to mount.
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

// TestFileSizeLimit is the same failure for those who may not mount: files of at most 2 KiB.
func TestFileSizeLimit(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	for _, args := range outputs {
		if strings.Contains(args, "good.svm") {
			continue // its files are small
		}
		t.Run(args, func(t *testing.T) {
			trial{argv: []string{"bash", "-c", "ulimit -f 2; exec " + binary + " " + args}, exit: 1, says: "disk/", prep: func(t *testing.T, dir string) {
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
		"eval --model model --data good.svm", "predict --model model --data good.svm --out -", "export --model model --out -"} {
		trials = append(trials, trial{argv: []string{"sh", "-c", "exec " + binary + " " + args + " >" + full}, at: "standard output: the disk is full"})
	}
	for i := range trials {
		trials[i].exit = 1
		trials[i].name = trials[i].args + strings.Join(trials[i].argv, " ")
	}
	runAll(t, trials)
}
