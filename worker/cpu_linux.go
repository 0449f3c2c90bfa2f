package worker

import "golang.org/x/sys/unix"

// threadSeconds is the CPU time of the calling thread, and which thread that is.
func threadSeconds() (seconds float64, thread int) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return wallSeconds(), 0
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9, unix.Gettid()
}
