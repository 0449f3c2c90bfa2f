// Package progress is the interface through which long-running work shows notes, warnings and
// progress to a user.
package progress

// Reporter shows messages to a user. Its methods may be called concurrently.
type Reporter interface {
	// Note shows what was done, or what to try next.
	Note(format string, args ...any)
	// Warn shows something that the user may want to change.
	Warn(format string, args ...any)
	// Start starts a progress display. what describes the work, and total is the number of items.
	// Zero means unknown.
	Start(what string, total int64) Progress
	// StartBytes is Start for an amount of bytes.
	StartBytes(what string, total int64) Progress
}

// Progress is the display of one piece of work. Its Done must be called.
type Progress interface {
	Set(done int64, extra ...string)
	Total(total int64)
	// Resume sets the amount that earlier runs have done.
	Resume(done int64)
	Done()
}

// Discard is a Reporter that shows nothing. It is used for work within other work that is shown.
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
