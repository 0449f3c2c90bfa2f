package supervise

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// timerSlack is how late, in nanoseconds, the system may wake a thread of a process from a
// sleep. Go's runtime has a thread that looks around every 20 microseconds while anything
// runs; in processes that are woken for a moment thousands of times a second it took a fifth
// of their time.
const timerSlack = 1_000_000

// start starts a process with timerSlack. It hands it on to its threads.
func start(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Where it can't be set things are only slower.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0)
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }() // the usual one again
	return cmd.Start()
}
