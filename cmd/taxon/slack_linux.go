package main

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// slacks are how late the system may wake a sleeping thread of a process, by verb. Go's
// runtime has a thread that looks around every 20 microseconds while anything runs: in
// processes that are woken for a moment thousands of times a second it takes a fifth of
// their time, and each look pushes a worker's computing off its core. Where a thread waits
// for a disk it is this thread that lets others of its process go on.
var slacks = map[string]time.Duration{
	"coordinator": 5 * time.Millisecond,
	"store":       5 * time.Millisecond,
	"worker":      20 * time.Millisecond,
}

// slackSet tells the program that it has been begun anew.
const slackSet = "TAXON_SLACK_SET"

// slacken begins the program anew with its verb's slack, which the system hands on to each
// thread: those that are there already have theirs. Where that can't be, things are only
// slower.
func slacken(args []string) {
	if os.Getenv(slackSet) != "" {
		_ = os.Unsetenv(slackSet)
		return
	}
	if len(args) < 2 || slacks[args[1]] == 0 {
		return
	}
	self, err := os.Executable() // not /proc/self/exe, which ps would show
	if err != nil {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slacks[args[1]]), 0, 0, 0) == nil {
		_ = unix.Exec(self, args, append(os.Environ(), slackSet+"=1"))
	}
}
