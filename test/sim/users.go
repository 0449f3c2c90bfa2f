package sim

import (
	"errors"

	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// interfere lets users cancel and resume jobs, and remove workers: by draining, or by stopping them
// in an orderly way.
func (c *cluster) interfere() {
	c.every(c.w.faults.Users, func() {
		switch c.w.rng.IntN(3) {
		case 0:
			c.ask(machine.Cancel{Job: c.anyJob()})
		case 1:
			c.ask(machine.Drain{Worker: c.workers[c.w.rng.IntN(len(c.workers))].name})
		case 2:
			c.workers[c.w.rng.IntN(len(c.workers))].leave()
		}
	})
	if c.w.faults.Users > 0 {
		c.resume()
	}
}

// resume resumes cancelled jobs at intervals.
func (c *cluster) resume() {
	c.w.after(&c.users, 300*ms, func() {
		if c.coord.up {
			for _, j := range c.coord.machine.Jobs(c.coord.clock()) {
				if j.State == taxonv1.JobState_JOB_STATE_CANCELLED {
					c.resumed++
					c.ask(machine.Resume{Job: j.Job})
				}
			}
		}
		c.resume()
	})
}

// ask sends an event to the coordinator on behalf of a user, until it answers.
func (c *cluster) ask(e machine.Event) {
	k := c.coord
	call(c.w, &c.users, &k.process, callTimeout, func(back func(answer)) { k.step(e, back) }, func(a answer, ok bool) {
		switch {
		case !ok:
			c.ask(e)
		case a.err == nil:
		case errors.Is(a.err, machine.ErrUnknownMember), errors.Is(a.err, machine.ErrBadMember):
			// killed, or restarted under its name
		case errors.Is(a.err, machine.ErrUnknownJob), errors.Is(a.err, machine.ErrNotResumable):
			// not there yet, or finished already
		default:
			c.w.fail("%T %+v is refused: %v", e, e, a.err)
		}
	})
}

func (c *cluster) anyJob() string {
	jobs := c.coord.jobNames
	return jobs[c.w.rng.IntN(len(jobs))]
}

// leave stops a worker in an orderly way. Another one replaces it.
func (k *worker) leave() {
	if !k.up || k.id == "" {
		return
	}
	id := k.id
	k.w.say("%s leaves as %s", k.name, id)
	k.notify(machine.Leave{Worker: id}, func(answer, bool) {})
	k.w.after(&k.process, 100*ms, func() {
		k.up = false
		k.life++
		k.w.at(k.w.now+k.w.between(20*ms, second), k.start)
	})
}
