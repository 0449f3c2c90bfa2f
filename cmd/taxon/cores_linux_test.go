package main

import (
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCores: workers of one slot take different cores, all threads are kept to them, and
// what is given back can be taken again.
func TestCores(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if got := takeCores(all.Count()); got != nil {
		got.release()
		t.Error("a worker that fills the machine was kept to part of it")
	}
	first := takeCores(1)
	if first == nil { // one core, or all taken by workers that run beside the tests
		return
	}
	defer first.release()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(id, &set); err == nil && set.Count() != 1 {
			t.Errorf("thread %d may run on %d cores, must be kept to 1", id, set.Count())
		}
	}
	if again := takeCores(1); again != nil {
		again.release()
		t.Error("a process that is kept to a core already took another")
	}
	other := &cores{}
	for core := range 1024 {
		if all.IsSet(core) && other.take(core) {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &set); err == nil && set.IsSet(core) {
				t.Errorf("core %d was taken twice", core)
			}
		}
	}
	for _, fd := range other.taken {
		_ = unix.Close(fd)
	}
	first.release()
	var after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != all {
		t.Errorf("%v: %d cores after giving them back, must be %d", err, after.Count(), all.Count())
	}
	var next *cores
	for end := time.Now().Add(time.Minute); next == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		next = takeCores(1) // a worker that runs beside the tests may have taken it meanwhile
	}
	if next == nil {
		t.Error("a core that was given back can't be taken")
	}
	next.release()
}
