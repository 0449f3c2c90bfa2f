package main

import "fmt"

// These are the exit statuses, which are part of the command line's contract.
const (
	exitDone = 0
	// exitFailed reports a failure of the run.
	exitFailed = 1
	// exitUsage reports a mistake in the command line or the input.
	exitUsage = 2
	// exitGap reports that a cap ended the training before the tolerance required with
	// --require-gap.
	exitGap = 3
	// exitInterrupted reports Ctrl-C or SIGTERM.
	exitInterrupted = 130
)

// exitError is an error with an exit status that does not depend on its cause.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the error without the status.
func (e *exitError) Unwrap() error { return e.err }

// exitf returns an exitError.
func exitf(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}
