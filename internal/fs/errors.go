package fs

import "strconv"

// InputError says what is wrong with an input and where. It is the caller's
// input that must change, not the machine: commands exit with status 2 on it.
type InputError struct {
	Path string // as the caller named it ("-" for standard input)
	Line int    // 1-based; 0: the input as a whole
	Msg  string // what is wrong and what to do, one line
}

// Error renders "path:line: msg", or "path: msg" when no line is to blame.
func (e *InputError) Error() string {
	if e.Line <= 0 {
		return e.Path + ": " + e.Msg
	}
	return e.Path + ":" + strconv.Itoa(e.Line) + ": " + e.Msg
}
