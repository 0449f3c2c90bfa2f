package main

import "fmt"

// Exit statuses. They are part of the command line's contract.
const (
	exitDone   = 0
	exitFailed = 1 // it failed while running
	exitUsage  = 2 // the command line or the input is wrong
	// ended by a cap before the tolerance asked for with --require-gap
	exitGap         = 3
	exitInterrupted = 130 // Ctrl-C or SIGTERM
)

// exitError is an error that has an exit status whatever its cause is.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the error without the status.
func (e *exitError) Unwrap() error { return e.err }

// exitf makes an exitError.
func exitf(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}
