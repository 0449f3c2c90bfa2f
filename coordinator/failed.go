package coordinator

import (
	"fmt"
	"strings"

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
	Nodes                      []string `json:",omitempty"`
	Range                      uint32   `json:",omitempty"`
}

// where names what the task was about.
func (f *failedTask) where() string {
	if len(f.Nodes) == 0 {
		return fmt.Sprintf("feature range %d", f.Range)
	}
	return "classes " + strings.Join(f.Nodes, ", ")
}

func (f *failedTask) message(err string) *taxonv1.FailedTask {
	if f == nil {
		return nil
	}
	return &taxonv1.FailedTask{Sweep: f.Sweep, Step: f.Step, Task: f.Task, Attempt: f.Attempt, Worker: f.Worker,
		Phase: f.Phase, Nodes: f.Nodes, Range: f.Range, Error: err}
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
		s = p.bringBack()
	}
	f.Sweep, f.Phase = s.spec.Sweep, s.spec.Phase
	if isMap, i := s.item(l.task); isMap {
		f.Nodes = blockNames(j.prepared, i)
	} else {
		f.Range = i
	}
	m.decide(Record{Kind: recordFail, Job: j.ID, Reason: reason, Failed: f})
}

// blockNames are the names of a block's terminals. It builds the tree: slow for large
// ones, and only done when a job fails.
func blockNames(p *prepared, block uint32) []string {
	tree, _, err := jobspec.Tree(p.spec)
	if err != nil || int(block)+1 >= len(p.plan.BlockBegin) {
		return nil
	}
	var out []string
	for _, n := range p.plan.BlockTerminals[p.plan.BlockBegin[block]:p.plan.BlockBegin[block+1]] {
		if int(n) < tree.Len() && len(out) < maxNamed {
			out = append(out, clip(tree.Name[n], 200))
		}
	}
	return out
}

// describe names a task for an error's text.
func (s *step) describe(n uint32) string {
	return fmt.Sprintf("sweep %d, step %d (%s), task %d", s.spec.Sweep, s.number, s.spec.Phase, n)
}
