// Package vfstest runs code that uses a disk against one that fails at every call, and checks the
// disk after every kind of crash. A run takes milliseconds, because the disk is in memory.
package vfstest

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"taxon/internal/fs/vfs"
)

// faults are the kinds of faults that Sweep tries at every call.
var faults = []struct {
	name string
	vfs.Fault
}{
	{"ends the process", vfs.Fault{Err: syscall.EIO, Ever: true}},
	{"ends the process in a write", vfs.Fault{Err: syscall.EIO, Ever: true, Short: true}},
	{"fails once", vfs.Fault{Err: syscall.EIO}},
	{"finds the disk full for once", vfs.Fault{Err: syscall.ENOSPC, Short: true}},
	{"finds the disk full for good", vfs.Fault{Err: syscall.ENOSPC, Short: true, Ever: true}},
}

// most bounds the number of calls of a run, and thus the number of runs of Sweep.
const most = 5000

// Sweep runs use on a disk whose first call fails, then on one whose second call fails, and so on
// until a run meets no fault; it does so for each kind of fault. A Truncate cannot fail for lack of
// space. prepare, which may be nil, creates the initial content of the disk for each run, all of
// which is durable. use returns a description of the operations that were reported as complete.
// After each run, check inspects the disk once for each kind of crash. It returns an error if a
// completed operation is lost, or if the content is damaged. check may change the disk.
func Sweep[T any](t *testing.T, prepare func(fs vfs.FS) error, use func(fs vfs.FS) T,
	check func(fs vfs.FS, done T) error) {
	t.Helper()
	begin := vfs.NewMem()
	if prepare != nil {
		if err := prepare(begin); err != nil {
			t.Fatal(err)
		}
	}
	runs := 0
	for _, f := range faults {
		for at := 1; ; at++ {
			if at > most {
				t.Fatalf("more than %d calls", most)
			}
			disk := begin.Crash(vfs.LoseNothing)
			fault := f.Fault
			fault.At = at
			faulty := vfs.NewFaulty(disk, fault)
			done := use(faulty)
			for _, loss := range vfs.Losses {
				found := disk.Crash(loss)
				before := found.String()
				if err := check(found, done); err != nil {
					t.Fatalf("call %d %s, then a crash (%v): %v\nfound %s", at, f.name, loss, err, before)
				}
			}
			runs++
			if !faulty.Met() {
				break
			}
		}
	}
	if runs <= len(faults) {
		t.Fatal("no call could fail: does the code use the file system that it is given?")
	}
	t.Logf("%d runs, each looked at after %d crashes", runs, len(vfs.Losses))
}

// Publishes uses Sweep to check code that publishes a folder in place of an older one. At every
// moment the folder must be in the state in which old or next leaves it, and in the latter once
// next has returned nil. next can be called again. aside is the name of a file that is harmless in
// the folder.
func Publishes(t *testing.T, dir, aside string, old, next func(fs vfs.FS) error) {
	t.Helper()
	content := func(fs vfs.FS) string {
		list, err := fs.ReadDir(dir)
		out := fmt.Sprint(err)
		for _, e := range list {
			if e.Name() != aside {
				data, err := vfs.ReadFile(fs, filepath.Join(dir, e.Name()))
				out += fmt.Sprintf(" %s: %x %v", e.Name(), data, err)
			}
		}
		return out
	}
	clean := vfs.NewMem()
	if err := old(clean); err != nil {
		t.Fatal(err)
	}
	before := content(clean)
	if err := next(clean); err != nil {
		t.Fatal(err)
	}
	after := content(clean)
	if before == after {
		t.Fatal("the two folders are the same")
	}
	Sweep(t, old, next, func(fs vfs.FS, err error) error {
		if got := content(fs); got != after && (got != before || err == nil) {
			return fmt.Errorf("after %v the folder holds %s", err, got)
		}
		if err := next(fs); err != nil {
			return fmt.Errorf("once more: %w", err)
		}
		if got := content(fs); got != after {
			return fmt.Errorf("once more, and the folder holds %s", got)
		}
		return nil
	})
}
