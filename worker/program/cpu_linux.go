package program

import "golang.org/x/sys/unix"

// threadSeconds returns the CPU time of the calling thread, in seconds.
func threadSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return wallSeconds()
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
