package jobs

import (
	"errors"
	"fmt"
)

// ErrInterrupted is the cause of a context that a signal cancelled. Every error of Interruptedf
// wraps it.
var ErrInterrupted = errors.New("interrupted")

// interruption is the error of work that a signal ended cleanly.
type interruption struct{ msg string }

func (i *interruption) Error() string { return i.msg }

// Is reports whether the target is ErrInterrupted.
func (i *interruption) Is(target error) bool { return target == ErrInterrupted }

// Interruptedf is the error of work that a signal ended cleanly. The message must say how to resume.
func Interruptedf(format string, args ...any) error {
	return &interruption{fmt.Sprintf(format, args...)}
}
