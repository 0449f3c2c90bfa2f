package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonfs "taxon/internal/fs"
	"taxon/internal/train"
)

// Exit statuses, fixed by the contract of the command line.
const (
	exitDone        = 0
	exitFailed      = 1   // it failed while running
	exitUsage       = 2   // the command line or the input is wrong
	exitGap         = 3   // ended by a cap before the tolerance asked for with --require-gap
	exitInterrupted = 130 // Ctrl-C or SIGTERM
)

// statusError carries the exit status that an error shall end in. An empty message
// prints nothing: the verb has said all there is.
type statusError struct {
	code int
	msg  string
	err  error // wrapped, may be nil
}

func (e *statusError) Error() string { return e.msg }
func (e *statusError) Unwrap() error { return e.err }

// usagef is an error of the command line or the input: exit status 2. The format may
// use %w.
func usagef(format string, args ...any) error { return withStatus(exitUsage, format, args...) }

// gapf says that a run ended by a cap before the gap that --require-gap asks for:
// exit status 3.
func gapf(format string, args ...any) error { return withStatus(exitGap, format, args...) }

// interruptedf is the clean end after a signal; say how to resume. Exit status 130.
func interruptedf(format string, args ...any) error {
	return withStatus(exitInterrupted, format, args...)
}

func withStatus(code int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &statusError{code: code, msg: err.Error(), err: errors.Unwrap(err)}
}

// describe turns the error of a verb into its exit status and its one line (without
// the leading "taxon: "). Errors that carry no status of their own are failures of
// the run (1), but for those that only the user can mend: a wrong path (2).
func describe(ctx context.Context, err error) (code int, line string) {
	line = oneLine(plainPath(err))
	switch code := statusOf(err); {
	case code != 0:
		return code, line
	case isCancelled(err) && errors.Is(context.Cause(ctx), errInterrupted):
		return exitInterrupted, "interrupted"
	case taxonfs.IsInput(err), isPathError(err):
		return exitUsage, line
	}
	return exitFailed, line
}

// statusOf is the exit status that an error carries of its own; 0: none.
func statusOf(err error) int {
	var s *statusError
	switch {
	case errors.As(err, &s):
		return s.code
	case errors.As(err, new(train.Interrupted)):
		return exitInterrupted
	}
	return 0
}

// isCancelled reports whether the error is a cancellation, here or behind a service.
func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
}

// isPathError reports whether the user named a path that cannot serve. A full or
// broken disk is not the command line's fault.
func isPathError(err error) bool {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return false
	}
	for _, e := range []error{fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, syscall.EISDIR,
		syscall.ENOTDIR, syscall.EROFS, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.ENOTEMPTY} {
		if errors.Is(p.Err, e) {
			return true
		}
	}
	return false
}

// pathCause is the error without the path that it happened at.
func pathCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// plainPath is the error's text with "open F: no such file" put as "F: no such
// file": the system call is no news to the user.
func plainPath(err error) string {
	msg := err.Error()
	var p *fs.PathError
	if errors.As(err, &p) {
		short := p.Path + ": " + p.Err.Error()
		msg = strings.Replace(msg, p.Error(), short, 1)
		msg = strings.Replace(msg, p.Path+": "+p.Path+": ", p.Path+": ", 1)
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		msg = strings.Replace(msg, l.Error(), l.New+": "+l.Err.Error(), 1)
	}
	return msg
}

// oneLine joins the lines of a text and takes control characters out of it, which
// input quoted in an error may hold.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ReplaceAll(strings.Join(lines, "; "), "\t", " "))
}
