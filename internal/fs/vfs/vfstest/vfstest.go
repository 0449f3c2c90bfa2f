// Package vfstest runs code that uses a disk against one that fails at every call, and looks at what is
// on it after every kind of crash. A run takes milliseconds, as the disk is in memory.
package vfstest

import (
	"fmt"
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

// most bounds the calls of a run, which Sweep repeats for each of them.
const most = 5000

// Sweep runs use on a disk whose first call fails, then on one whose second call fails, and so on until a
// run meets no fault, for each kind of fault. A Truncate can't be lost for lack of room. prepare, which
// may be nil, makes the disk on which each run begins, and all that it leaves is durable. use returns what
// it was told is done. After each run check looks at the disk once for each kind of crash, and returns an
// error if something that was done is lost, or something that is there is broken. check may change the
// disk.
func Sweep[T any](t *testing.T, prepare func(fs vfs.FS) error, use func(fs vfs.FS) T, check func(fs vfs.FS, done T) error) {
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
	t.Log(fmt.Sprintf("%d runs, each looked at after %d crashes", runs, len(vfs.Losses)))
}
