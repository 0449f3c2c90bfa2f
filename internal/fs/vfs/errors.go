package vfs

import "fmt"

// InputError is an error that only the user can mend: in a path, in a file or a line of it, or in what a
// file system needs, such as a name node that answers. It prints as "path:line: message", without the
// parts that are zero.
type InputError struct {
	// Path is the path as the user wrote it, "stdin" for -. It is empty if the error has none, or if
	// the caller knows it: fs.Explain adds it.
	Path string
	Line int64  // from 1; 0 if the error belongs to no line
	Msg  string // what is wrong and what to do, lower-case, one line
	Err  error  // the cause; may be nil
}

func (e *InputError) Error() string {
	switch {
	case e.Path == "":
		return e.Msg
	case e.Line == 0:
		return e.Path + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Msg)
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }
