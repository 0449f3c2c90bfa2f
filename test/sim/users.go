package sim

import (
	"errors"

	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// users cancel jobs and resume them, and take workers out: by draining, or by stopping them
// in good order.
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

// resume looks after jobs that were cancelled, again and again.
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

// ask tells the coordinator something on behalf of a user, until it answers.
func (c *cluster) ask(e machine.Event) {
	k := c.coord
	call(c.w, &c.users, &k.process, callTimeout, func(back func(answer)) { k.step(e, back) }, func(a answer, ok bool) {
		switch {
		case !ok:
			c.ask(e)
		case a.err == nil:
		case errors.Is(a.err, machine.ErrUnknownMember), errors.Is(a.err, machine.ErrBadMember):
			// killed, or killed and back under its name
		case errors.Is(a.err, machine.ErrUnknownJob), errors.Is(a.err, machine.ErrNotResumable):
			// not there yet, or done by now
		default:
			c.w.fail("%T %+v is refused: %v", e, e, a.err)
		}
	})
}

func (c *cluster) anyJob() string {
	jobs := c.coord.jobNames
	return jobs[c.w.rng.IntN(len(jobs))]
}

// leave ends a worker in good order; another one takes its place.
func (k *worker) leave() {
	if !k.up || k.id == "" {
		return
	}
	id := k.id
	k.w.say("%s leaves as %s", k.name, id)
	k.tell(machine.Leave{Worker: id}, func(answer, bool) {})
	k.w.after(&k.process, 100*ms, func() {
		k.up = false
		k.life++
		k.w.at(k.w.now+k.w.between(20*ms, second), k.start)
	})
}
