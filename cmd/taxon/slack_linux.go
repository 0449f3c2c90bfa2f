package main

import (
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// slack is how late the system may wake a sleeping thread of a cluster's process. Go's
// runtime has a thread that looks around every 20 microseconds while anything runs: in
// processes that are woken for a moment thousands of times a second it takes a fifth of
// their time, and each look pushes a worker's computing off its core. Where a thread waits
// for a disk it is this thread that lets others of its process go on, and where one takes
// over what another made ready it sleeps a moment first: so not longer than that.
const slack = 5 * time.Millisecond

// slackened are the verbs whose processes have it.
var slackened = []string{"coordinator", "store", "worker"}

// slackSet tells the program that it has been begun anew.
const slackSet = "TAXON_SLACK_SET"

// slacken begins the program anew with the slack, which the system hands on to each
// thread: those that are there already have theirs. Where that can't be, things are only
// slower.
func slacken(args []string) {
	if os.Getenv(slackSet) != "" {
		_ = os.Unsetenv(slackSet)
		return
	}
	if len(args) < 2 || !slices.Contains(slackened, args[1]) {
		return
	}
	self, err := os.Executable() // not /proc/self/exe, which ps would show
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) == nil {
		_ = unix.Exec(self, args, append(os.Environ(), slackSet+"=1"))
	}
}
