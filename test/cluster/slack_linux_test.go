package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Each process has the timer slack in all of its threads, as far as the system shows
// it (to root alone), and its name and arguments are as they were.
func TestTimerSlack(t *testing.T) {
	c := bench.Up(t, 1, 1)
	const want = "5000000"
	for _, p := range c.State(t).Processes {
		proc := filepath.Join("/proc", strconv.Itoa(p.PID))
		comm, err := os.ReadFile(filepath.Join(proc, "comm"))
		if err != nil || strings.TrimSpace(string(comm)) != "taxon" {
			t.Errorf("%s is called %q, %v", p.ID, comm, err)
		}
		args, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil || !strings.Contains(string(args), "\x00"+p.Role+"\x00") {
			t.Errorf("%s has the arguments %q, %v", p.ID, args, err)
		}
		threads, err := filepath.Glob(filepath.Join(proc, "task", "*"))
		if err != nil || len(threads) < 2 {
			t.Fatalf("%s has %d threads, %v", p.ID, len(threads), err)
		}
		for _, path := range threads {
			b, err := os.ReadFile(filepath.Join("/proc", filepath.Base(path), "timerslack_ns"))
			if err != nil && os.Getuid() == 0 && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
			if err == nil && strings.TrimSpace(string(b)) != want { // else the thread has ended
				t.Errorf("%s: a thread has a slack of %s ns, want %s", p.ID, b, want)
			}
		}
	}
}
