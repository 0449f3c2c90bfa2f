package segment

import (
	"errors"
	"os"
	"syscall"
)

// syncData makes a file's bytes and its size durable, but not its times.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
