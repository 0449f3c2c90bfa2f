package machine

import (
	"fmt"
	"strings"

	"taxon/coordinator/method"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
)

// maxNamed bounds the classes that a failed task is described by: a block's.
const maxNamed = 16

// failedTask says which task a job failed at, in the user's words.
type failedTask struct {
	Sweep, Step, Task, Attempt uint32
	Worker                     string
	Phase                      string
	Nodes                      []string    `json:",omitempty"`
	Kind                       method.Kind `json:",omitempty"` // of its item, if Nodes is empty
	Item                       uint32      `json:",omitempty"`
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

// memberNames are the names of an item's nodes. It builds the tree: slow for large ones, and
// only done when a job fails.
func (p *prepared) memberNames(list int, item uint32) []string {
	members := p.plan.Items[list].Members
	if members == nil {
		return nil
	}
	tree, _, err := jobspec.Tree(p.spec)
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

// describe names a task for an error's text.
func (s *step) describe(n uint32) string {
	return fmt.Sprintf("sweep %d, step %d (%s), task %d", s.Sweep, s.number, s.Phase, n)
}
