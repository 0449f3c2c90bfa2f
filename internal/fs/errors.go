package fs

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"syscall"

	"taxon/internal/fs/vfs"
)

// InputError is an error that only the user can mend.
type InputError = vfs.InputError

// Inputf returns an InputError. Line 0 stands for no line. A %w in the format becomes the cause.
func Inputf(path string, line int64, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &InputError{Path: path, Line: line, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// IsInput reports whether the user's input or command line caused err.
func IsInput(err error) bool {
	var in *InputError
	return errors.As(err, &in)
}

// AtLine adds a line number to an InputError that has none. Other errors are returned unchanged,
// and so is the error of a stream that is truncated before its first line: decoders return whole
// blocks, so the truncation may be thousands of lines further on.
func AtLine(err error, line int64) error {
	var in *InputError
	if !errors.As(err, &in) || in.Line != 0 || line == 1 && errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	at := *in
	at.Line = line
	return &at
}

// Explain adds the path to an error of the operating system. If another path fixes the error, it
// becomes an InputError; a full disk and every other error stays a failure.
func Explain(path string, err error) error {
	var in *InputError
	switch {
	case err == nil || errors.As(err, &in) && in.Path != "":
		return err
	case in != nil:
		return &InputError{Path: path, Line: in.Line, Msg: in.Msg, Err: err}
	}
	if msg := usage(err); msg != "" {
		return &InputError{Path: path, Msg: msg, Err: err}
	}
	if IsDiskFull(err) {
		return &failure{path + ": the disk is full: free some space and run the command again", err}
	}
	return fmt.Errorf("%s: %w", path, cause(err))
}

// failure is an error of the machine whose message needs no cause.
type failure struct {
	msg string
	err error
}

func (f *failure) Error() string { return f.msg }
func (f *failure) Unwrap() error { return f.err }

// IsDiskFull reports whether a write failed for lack of space or quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, vfs.ErrQuota)
}

// usage returns the message for an error that another path or permission fixes, and "" for other
// errors.
func usage(err error) string {
	switch {
	case errors.Is(err, vfs.ErrSpecial):
		return vfs.ErrSpecial.Error()
	case errors.Is(err, iofs.ErrNotExist):
		return "no such file or directory"
	case errors.Is(err, iofs.ErrPermission):
		return "permission denied: check the owner and mode of the file and its folders"
	case errors.Is(err, syscall.EISDIR):
		return "is a directory: give a file"
	case errors.Is(err, syscall.ENOTDIR):
		return "a part of the path is a file, not a directory"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: choose another place"
	case errors.Is(err, iofs.ErrExist):
		return "exists already"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "the name is too long"
	case errors.Is(err, syscall.ELOOP):
		return "too many levels of symbolic links"
	case errors.Is(err, syscall.EINVAL) && isPathError(err):
		return "not a usable path"
	}
	return ""
}

func isPathError(err error) bool {
	var p *iofs.PathError
	return errors.As(err, &p) && p.Op == "open"
}

// cause strips the operation and path that package os adds to an error number.
func cause(err error) error {
	var p *iofs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
