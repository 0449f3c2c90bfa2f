//go:build unix

package fs

import "syscall"

// errQuota is the error number of a user whose share of the disk is used up.
var errQuota error = syscall.EDQUOT
