//go:build unix

package secure

import (
	"fmt"
	"os"
	"syscall"
)

// checkPrivate refuses a secret file that others can read. If another user owns the file, the
// group may read it: that is how an orchestrator gives a secret to a process that is not root and
// could not change the permissions anyway.
func checkPrivate(path string, info os.FileInfo) error {
	mode := info.Mode().Perm()
	loose := mode&0o007 != 0
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || s.Uid == uint32(os.Geteuid()) {
		loose = loose || mode&0o070 != 0
	}
	if loose {
		return fmt.Errorf("%s: mode %04o lets others at a secret: chmod 600 it", path, mode)
	}
	return nil
}
