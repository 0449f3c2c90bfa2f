package hdfs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/colinmarc/hdfs/v2"

	"taxon/internal/fs/vfs"
)

// inputf makes an error that only the user can mend. The caller knows the path.
func inputf(format string, args ...any) error {
	return &vfs.InputError{Msg: fmt.Sprintf(format, args...)}
}

// remote returns the exception with which a name node or data node answered, or "" for other
// errors.
func remote(err error) (exception, message string) {
	var r hdfs.Error
	if !errors.As(err, &r) {
		return "", ""
	}
	message, _, _ = strings.Cut(r.Message(), "\n")
	exception = r.Exception()
	return exception[strings.LastIndex(exception, ".")+1:], message
}

// settled reports whether a repeated call would give the same error.
func settled(err error) bool {
	for _, e := range []error{os.ErrNotExist, os.ErrExist, os.ErrPermission, os.ErrInvalid, os.ErrClosed,
		syscall.ENOTEMPTY, syscall.ENOTDIR, syscall.EISDIR} {
		if errors.Is(err, e) {
			return true
		}
	}
	var u *vfs.InputError
	if errors.As(err, &u) {
		return true
	}
	switch exception, message := remote(err); exception {
	case "":
		return false
	case "RetriableException", "StandbyException", "NotReplicatedYetException", "SafeModeException",
		"LeaseExpiredException", "RecoveryInProgressException":
		return false
	default:
		return !noNodes(message)
	}
}

func isSafeMode(err error) bool {
	exception, message := remote(err)
	return exception == "SafeModeException" || exception == "RetriableException" && strings.Contains(message, "safe mode")
}

// noNodes reports whether a name node's answer says that no data node can take a block: they are
// full, dead, or not known yet after a restart.
func noNodes(message string) bool { return strings.Contains(message, "could only be written to") }

// explain replaces an error of the library by one that says how to fix it.
func explain(err error) error {
	var u *vfs.InputError
	if err == nil || errors.As(err, &u) {
		return err
	}
	exception, message := remote(err)
	switch {
	case exception == "":
		return err
	case isSafeMode(err):
		return &vfs.InputError{Msg: "the name node is in safe mode and takes no changes: wait until it has left it (hdfs " +
			"dfsadmin -safemode get)", Err: err}
	case strings.HasSuffix(exception, "QuotaExceededException"):
		return &vfs.InputError{Msg: "the folder's HDFS quota is used up: free some space, or ask for more (hdfs dfs " +
			"-count -q)", Err: err}
	case noNodes(message):
		return &vfs.InputError{Msg: "no data node has room for a block: HDFS is full, or its data nodes are down " +
			"(hdfs dfsadmin -report)", Err: err}
	case exception == "ParentNotDirectoryException":
		return &os.PathError{Op: "open", Path: "", Err: syscall.ENOTDIR}
	case exception == "AccessControlException" || exception == "AuthorizationException":
		return &vfs.InputError{Msg: "the name node refuses this user: " + message, Err: err}
	}
	return &vfs.InputError{Msg: "the name node answers " + exception + ": " + message, Err: err}
}
