package fs

import (
	"errors"
	"runtime/debug"
)

// ErrFault is a mapped file that could not be read where it once could.
var ErrFault = errors.New("a file that is mapped into memory got shorter or can't be read any more (changed while in use, or its disk fails): start again when it is whole")

// CatchFault makes a fault of the calling goroutine in mapped memory end the calling
// function with ErrFault in place of the process:
//
//	defer fs.CatchFault(&err)()
//
// Other panics go on.
func CatchFault(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		switch p := recover(); {
		case p == nil:
		case IsFault(p):
			*err = ErrFault
		default:
			panic(p)
		}
	}
}

// IsFault says whether what a goroutine panicked with is a fault at an address, as under
// debug.SetPanicOnFault; a nil pointer is none.
func IsFault(p any) bool {
	e, ok := p.(interface {
		error
		Addr() uintptr
	})
	return ok && e.Addr() >= 1<<16
}
