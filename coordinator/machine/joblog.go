package machine

import (
	"fmt"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
)

// maxLogLines bounds a job's log. The oldest lines are dropped. Lines keep their numbers, so that a
// reader sees the gap.
const maxLogLines = 1000

// maxLineBytes bounds the text of a line, because errors come from workers.
const maxLineBytes = 2000

// These are the levels of log lines.
const (
	levelInfo  = "info"
	levelWarn  = "warn"
	levelError = "error"
)

// logLine is an event of a job in words. Task is valid if Attempt is not zero.
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

// jobLog holds the last lines of a job, oldest first. Last is the number of the last one.
type jobLog struct {
	Lines []logLine `json:",omitempty"`
	Last  uint64    `json:",omitempty"`
}

// add appends a line in amortised O(1): the list is cut when it has twice the lines that are kept.
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

// kept returns the last maxLogLines lines.
func (l *jobLog) kept() []logLine { return l.Lines[max(len(l.Lines)-maxLogLines, 0):] }

// clip cuts a text to at most n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// note adds a line about the job.
func (j *job) note(at Tick, level, format string, args ...any) {
	line := logLine{At: at, Level: level, Text: fmt.Sprintf(format, args...), Sweep: j.progress().Sweep}
	if j.step != nil {
		line.Step = j.step.number
	}
	j.log.add(line)
}

// noteTask adds a line about an attempt of the current step.
func (j *job) noteTask(at Tick, level string, l *lease, text string) {
	j.log.add(logLine{At: at, Level: level, Text: text, Sweep: j.progress().Sweep, Step: l.step, Task: l.task,
		Attempt: l.attempt, Worker: l.worker})
}

// Log returns the lines of a job with numbers above after, at most `most` of them. Zero `most`
// returns all.
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

// message returns the line as a message.
func (l *logLine) message() *taxonv1.LogLine {
	return &taxonv1.LogLine{Number: l.Number, UnixMs: l.At.Milliseconds(), Level: l.Level, Text: l.Text,
		Sweep: l.Sweep, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Worker: l.Worker}
}

// maxNamed bounds the classes that are named for a failed task. A block of nodes may have more.
const maxNamed = 16

// failedTask says which task a job failed at, in the user's terms.
type failedTask struct {
	Sweep, Step, Task, Attempt uint32
	Worker                     string
	Phase                      string
	Nodes                      []string `json:",omitempty"`
	// Kind is what the task's item is, if Nodes is empty.
	Kind method.Kind `json:",omitempty"`
	Item uint32      `json:",omitempty"`
}

// where names what the task was about.
func (f *failedTask) where() string {
	switch {
	case len(f.Nodes) > 0:
		return "classes " + strings.Join(f.Nodes, ", ")
	case f.Kind == method.Whole:
		return "the whole problem"
	}
	return fmt.Sprintf("%s %d", f.Kind, f.Item)
}

// message returns the failed task, with its error, as a message.
func (f *failedTask) message(err string) *taxonv1.FailedTask {
	if f == nil {
		return nil
	}
	return &taxonv1.FailedTask{Sweep: f.Sweep, Step: f.Step, Task: f.Task, Attempt: f.Attempt, Worker: f.Worker,
		Phase: f.Phase, Nodes: f.Nodes, Range: f.Item, Error: err}
}

// failTask fails a job at an attempt.
func (m *Machine) failTask(l *lease, reason string) {
	j := l.job
	f := &failedTask{Step: l.step, Task: l.task, Attempt: l.attempt, Worker: l.worker}
	if w := m.worker(l.worker); w != nil && w.name != "" {
		f.Worker = w.name
	}
	s := j.step
	if p := j.past(l.step); p != nil && l.step != s.number {
		s = p.step()
	}
	f.Sweep, f.Phase = s.Sweep, s.Phase
	p, item := s.part(l.task)
	f.Nodes = j.memberNames(p.Items, item)
	f.Kind, f.Item = j.plan.Items[p.Items].Kind, item
	m.decide(Record{Kind: recordFail, Job: j.ID, Reason: reason, Failed: f})
}

// memberNames returns the names of an item's nodes. It builds the tree, which is slow for large
// ones, and is called only when a job fails.
func (p *prepared) memberNames(list int, item uint32) []string {
	members := p.plan.Items[list].Members
	if members == nil {
		return nil
	}
	tree, _, err := registry.Tree(p.spec)
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range members(int(item)) {
		if int(n) < tree.Len() && len(out) < maxNamed {
			out = append(out, clip(tree.Name[n], 200))
		}
	}
	return out
}

// describe names a task for the text of an error.
func (s *step) describe(n uint32) string {
	return fmt.Sprintf("sweep %d, step %d (%s), task %d", s.Sweep, s.number, s.Phase, n)
}
