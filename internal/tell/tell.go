// Package tell is the interface by which work that takes a while tells a user of notes, warnings
// and progress.
package tell

// Teller tells a user. Its methods may be called from several goroutines.
type Teller interface {
	// Note tells what was done, or what to try next.
	Note(format string, args ...any)
	// Warn tells something that the user may want to change.
	Warn(format string, args ...any)
	// Start opens a progress: what is done, and how many items there are (0: not known).
	Start(what string, total int64) Progress
	// StartBytes is Start for an amount of bytes.
	StartBytes(what string, total int64) Progress
}

// Progress is one running piece of work. Its Done must be called.
type Progress interface {
	Set(done int64, extra ...string)
	Total(total int64)
	// Resume says how much was done before this run.
	Resume(done int64)
	Done()
}
