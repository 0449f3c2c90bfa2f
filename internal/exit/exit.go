// Package exit gives an error the exit status with which the command line ends.
package exit

import (
	"errors"
	"fmt"
)

// Exit statuses, fixed by the contract of the command line.
const (
	Done        = 0
	Failed      = 1   // it failed while running
	Usage       = 2   // the command line or the input is wrong
	Gap         = 3   // ended by a cap before the tolerance asked for with --require-gap
	Interrupted = 130 // Ctrl-C or SIGTERM
)

// ErrInterrupted is the cause of a context that a signal has cancelled.
var ErrInterrupted = errors.New("interrupted")

// Error carries the exit status that an error shall end in. An empty message
// prints nothing: the verb has said all there is.
type Error struct {
	Code int
	msg  string
	err  error // wrapped, may be nil
}

func (e *Error) Error() string { return e.msg }

func (e *Error) Unwrap() error { return e.err }

// Usagef is an error of the command line or the input: exit status 2. The format may
// use %w.
func Usagef(format string, args ...any) error { return Errorf(Usage, format, args...) }

// Gapf says that a run ended by a cap before the gap that --require-gap asks for:
// exit status 3.
func Gapf(format string, args ...any) error { return Errorf(Gap, format, args...) }

// Interruptedf is the clean end after a signal; say how to resume. Exit status 130.
func Interruptedf(format string, args ...any) error {
	return Errorf(Interrupted, format, args...)
}

// Errorf is an error that shall end in an exit status.
func Errorf(code int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, msg: err.Error(), err: errors.Unwrap(err)}
}
