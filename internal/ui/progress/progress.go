// Package progress is the interface through which long-running work shows a user notes, warnings and
// progress.
package progress

// Reporter tells a user. Its methods may be called from several goroutines.
type Reporter interface {
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

// Discard shows nothing. It is for work within other work that is already shown.
type Discard struct{}

// Note implements Reporter.
func (Discard) Note(string, ...any) {}

// Warn implements Reporter.
func (Discard) Warn(string, ...any) {}

// Start implements Reporter.
func (s Discard) Start(string, int64) Progress { return s }

// StartBytes implements Reporter.
func (s Discard) StartBytes(string, int64) Progress { return s }

// Set implements Progress.
func (Discard) Set(int64, ...string) {}

// Total implements Progress.
func (Discard) Total(int64) {}

// Resume implements Progress.
func (Discard) Resume(int64) {}

// Done implements Progress.
func (Discard) Done() {}
