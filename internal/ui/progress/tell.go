// Package progress is the interface through which long-running work shows a user notes, warnings and
// progress.
package progress

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

// Silent shows nothing. It is for work within other work that is already shown.
type Silent struct{}

// Note implements Teller.
func (Silent) Note(string, ...any) {}

// Warn implements Teller.
func (Silent) Warn(string, ...any) {}

// Start implements Teller.
func (s Silent) Start(string, int64) Progress { return s }

// StartBytes implements Teller.
func (s Silent) StartBytes(string, int64) Progress { return s }

// Set implements Progress.
func (Silent) Set(int64, ...string) {}

// Total implements Progress.
func (Silent) Total(int64) {}

// Resume implements Progress.
func (Silent) Resume(int64) {}

// Done implements Progress.
func (Silent) Done() {}
