// Package exitcode attaches to an error the exit status of the command line.
package exitcode

import (
	"errors"
	"fmt"
	"strings"
)

// Exit statuses. They are part of the command line's contract.
const (
	Done        = 0
	Failed      = 1   // it failed while running
	Usage       = 2   // the command line or the input is wrong
	Gap         = 3   // ended by a cap before the tolerance asked for with --require-gap
	Interrupted = 130 // Ctrl-C or SIGTERM
)

// ErrInterrupted is the cause of a context that a signal cancelled.
var ErrInterrupted = errors.New("interrupted")

// Error has an exit status. If its message is empty nothing is printed: the verb has said it all.
type Error struct {
	Code  int
	Lines []string // for Join: one line each
	msg   string
	err   error // wrapped, may be nil
}

func (e *Error) Error() string { return e.msg }

func (e *Error) Unwrap() error { return e.err }

// Usagef is an error of the command line or the input: exit status 2. The format may
// use %w.
func Usagef(format string, args ...any) error { return Errorf(Usage, format, args...) }

// Gapf says that a run ended by a cap before it reached the gap of --require-gap: exit status 3.
func Gapf(format string, args ...any) error { return Errorf(Gap, format, args...) }

// Interruptedf is the clean end after a signal, with exit status 130. The message must say how to
// resume.
func Interruptedf(format string, args ...any) error {
	return Errorf(Interrupted, format, args...)
}

// Join is an error of the command line or the input that shows each of errs on its own line; nil:
// there are none.
func Join(errs ...error) error {
	var lines []string
	for _, err := range errs {
		if e := (*Error)(nil); errors.As(err, &e) && e.Lines != nil {
			lines = append(lines, e.Lines...)
		} else if err != nil {
			lines = append(lines, err.Error())
		}
	}
	if lines == nil {
		return nil
	}
	return &Error{Code: Usage, Lines: lines, msg: strings.Join(lines, "; "), err: errors.Join(errs...)}
}

// Errorf is an error that shall end in an exit status.
func Errorf(code int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, msg: err.Error(), err: errors.Unwrap(err)}
}
