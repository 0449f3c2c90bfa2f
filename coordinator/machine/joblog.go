package machine

import (
	"fmt"

	taxonv1 "taxon/proto/taxon/v1"
)

// maxLogLines bounds a job's log: the oldest lines are dropped. Lines keep their numbers, so a
// reader sees that some are missing.
const maxLogLines = 1000

// maxLineBytes bounds a line's text: errors come from workers.
const maxLineBytes = 2000

// Levels of log lines.
const (
	levelInfo  = "info"
	levelWarn  = "warn"
	levelError = "error"
)

// logLine is an event of a job as users read it. Task counts if Attempt is set.
type logLine struct {
	Number  uint64
	At      Tick
	Level   string
	Text    string
	Sweep   uint32 `json:",omitempty"`
	Step    uint32 `json:",omitempty"`
	Task    uint32 `json:",omitempty"`
	Attempt uint32 `json:",omitempty"`
	Worker  string `json:",omitempty"`
}

// jobLog is the last lines of a job, oldest first.
type jobLog struct {
	Lines []logLine `json:",omitempty"`
	Last  uint64    `json:",omitempty"`
}

// add appends a line. Amortised O(1): the list is cut when it is twice as long as kept.
func (l *jobLog) add(line logLine) {
	l.Last++
	line.Number, line.Text = l.Last, clip(line.Text, maxLineBytes)
	if len(l.Lines) >= 2*maxLogLines {
		n := copy(l.Lines, l.Lines[len(l.Lines)-maxLogLines:])
		clear(l.Lines[n:])
		l.Lines = l.Lines[:n]
	}
	l.Lines = append(l.Lines, line)
}

// kept are the lines that count.
func (l *jobLog) kept() []logLine { return l.Lines[max(len(l.Lines)-maxLogLines, 0):] }

// clip cuts a text to at most n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// note adds a line about a job.
func (j *job) note(at Tick, level, format string, args ...any) {
	line := logLine{At: at, Level: level, Text: fmt.Sprintf(format, args...), Sweep: j.progress().Sweep}
	if j.step != nil {
		line.Step = j.step.number
	}
	j.log.add(line)
}

// noteTask adds a line about an attempt of the step under way.
func (j *job) noteTask(at Tick, level string, l *lease, text string) {
	j.log.add(logLine{At: at, Level: level, Text: text, Sweep: j.progress().Sweep, Step: l.step, Task: l.task,
		Attempt: l.attempt, Worker: l.worker})
}

// Log returns a job's lines of numbers above after, at most max of them (0: all).
func (m *Machine) Log(id string, after uint64, most int) ([]*taxonv1.LogLine, error) {
	j, err := m.known(id)
	if err != nil {
		return nil, err
	}
	var out []*taxonv1.LogLine
	for _, l := range j.log.kept() {
		if l.Number > after && (most == 0 || len(out) < most) {
			out = append(out, l.message())
		}
	}
	return out, nil
}

func (l *logLine) message() *taxonv1.LogLine {
	return &taxonv1.LogLine{Number: l.Number, UnixMs: l.At.Milliseconds(), Level: l.Level, Text: l.Text,
		Sweep: l.Sweep, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Worker: l.Worker}
}
