package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// ErrFault is the error for a mapped file that has become unreadable.
var ErrFault = errors.New("a file that is mapped into memory got shorter or can't be read any more (changed while in " +
	"use, or its disk fails): start again when it is whole")

// CatchFault turns a fault in mapped memory, in the calling goroutine, into the error ErrFault of
// the calling function:
//
//	defer fs.CatchFault(&err)()
//
// Other panics continue.
func CatchFault(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		switch p := recover(); {
		case p == nil:
		case IsFault(p):
			*err = Fault(p)
		default:
			panic(p)
		}
	}
}

// Guarded wraps f in CatchFault. A goroutine that reads mapped memory needs a wrapper of its own.
func Guarded(f func() error) func() error {
	return func() (err error) {
		defer CatchFault(&err)()
		return f()
	}
}

// Compute calls f and returns when f or ctx ends. If ctx ends first, f continues without effect
// until it returns, so it must do nothing but compute. A panic of f, including a fault in mapped
// memory, is raised again in the caller.
func Compute(ctx context.Context, f func() error) error {
	done := make(chan func() error, 1)
	go func() {
		debug.SetPanicOnFault(true)
		defer func() {
			if p := recover(); p != nil {
				done <- func() error { panic(p) }
			}
		}()
		err := f()
		done <- func() error { return err }
	}()
	select {
	case end := <-done:
		return end()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fault returns ErrFault, with the name of the file if the system reports it.
func Fault(p any) error {
	if !IsFault(p) {
		return ErrFault
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return ErrFault
	}
	if name := mappedAt(maps, uint64(p.(interface{ Addr() uintptr }).Addr())); name != "" {
		return fmt.Errorf("%s: %w", name, ErrFault)
	}
	return ErrFault
}

// mappedAt finds the file that is mapped at an address, in a list of mappings in Linux's format. A
// line has the first address, the address after the last, four more words, and the path. mappedAt
// returns "" if no file is mapped there.
func mappedAt(maps []byte, addr uint64) string {
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil || addr < from || addr >= to {
			continue
		}
		_, path, ok := strings.Cut(line, "/")
		if !ok {
			return ""
		}
		return "/" + strings.TrimSuffix(strings.TrimSuffix(path, "\n"), " (deleted)")
	}
	return ""
}

// IsFault reports whether a panic is a memory fault at an address, as raised under
// debug.SetPanicOnFault. A nil pointer dereference is not.
func IsFault(p any) bool {
	e, ok := p.(interface {
		error
		Addr() uintptr
	})
	return ok && e.Addr() >= 1<<16
}
