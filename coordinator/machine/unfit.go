package machine

import "fmt"

// A worker may be unable to work for a job that others can work for: its cache is too small
// for the data, or it does not see the folder where the data lies. Such a worker gets no
// more of the job's tasks; the job fails only if it finds no worker at all to begin with.

// unfit decides what it means that a worker can't work for a job.
func (m *Machine) unfit(l *lease, e Report) {
	j, w := l.job, m.worker(l.worker)
	if j.unfit == nil {
		j.unfit = map[string]bool{}
	}
	if !j.unfit[w.id] {
		j.unfit[w.id] = true
		m.decide(Record{Kind: recordNote, Job: j.ID, Reason: clip(fmt.Sprintf("worker %s gets no tasks of this job, as it can't do them: %s", w.name, e.Error), maxLineBytes)})
	}
	if j.Committed == 0 && j.step.done == 0 && j.step.number == 1 && !m.anyFit(j) {
		m.failTask(l, e.Error)
		return
	}
	m.decide(Record{Kind: recordLost, Job: j.ID, Step: l.step, Task: l.task, Epoch: l.epoch, Loss: lossReturned, Reason: e.Error})
}

// anyFit says whether some worker may do a job's tasks.
func (m *Machine) anyFit(j *job) bool {
	for _, w := range m.workers {
		if !w.draining && m.suits(j, w) {
			return true
		}
	}
	return false
}

// suits says whether a worker may get tasks of a job.
func (m *Machine) suits(j *job, w *workerState) bool { return !j.unfit[w.id] && m.fits(j, w) }
