package sim

import (
	"fmt"

	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// Options configures a run.
type Options struct {
	Faults   Faults
	Jobs     []*taxonv1.JobSpec
	Workers  int
	Shards   int
	Replicas int
	Bug      string // bug of the simulated shell or store; may be empty
}

// Outcome is the result of a run. Broken lists the invariants that were violated.
type Outcome struct {
	Weights    [][]uint64 // weights of each job, in task order
	Objectives []float64
	Sweeps     []uint32
	StoppedBy  []string
	Broken     []string
	History    []string
	Seconds    float64 // simulated seconds

	Kills, Restarts, Compacts, Replayed, Resumed        int
	Batches                                             int // leases of several tasks
	Speculated, Remade, Rollbacks, Retried, WorkersLost uint32
}

// cluster holds everything of a run.
type cluster struct {
	w       *world
	coord   *coord
	shards  []*shard
	workers []*worker
	users   process
	kills   int
	resumed int
}

// calmSeconds bounds the simulated time of a run after its faults, in seconds.
const calmSeconds = 300

// Run runs jobs on a cluster until they end.
func Run(seed uint64, o Options) (out Outcome) {
	w := newWorld(seed, o.Faults)
	c := &cluster{w: w, users: process{name: "users", up: true, rate: 1}}
	defer func() {
		if p := recover(); p != nil {
			out = Outcome{Broken: []string{fmt.Sprintf("panic: %v", p)}, History: w.history}
		}
	}()
	c.build(o)
	for i, spec := range o.Jobs {
		c.coord.jobNames = append(c.coord.jobNames, fmt.Sprintf("j%d", i))
		c.submit(c.coord.jobNames[i], spec)
	}
	c.disturb()
	done := w.run(1000*second+o.Faults.For+calmSeconds*second, func() bool { return c.ended(o) })
	if !done && len(w.broken) == 0 {
		w.fail("the jobs did not end: %s", c.describe())
	}
	out = c.outcome(o)
	out.Broken, out.History, out.Seconds = w.broken, w.history, (w.now - 1000*second).Seconds()
	return out
}

// build starts all processes.
func (c *cluster) build(o Options) {
	proc := func(name string) process { return process{name: name, rate: c.rate()} }
	for i := range o.Shards {
		s := &shard{process: proc(fmt.Sprintf("s%d", i)), w: c.w, id: fmt.Sprintf("s%d", i), values: map[key]value{},
			bug: o.Bug}
		s.up = true
		c.shards = append(c.shards, s)
	}
	store := func(p *process) *client {
		return &client{w: c.w, self: p, shards: c.shards, replicas: max(o.Replicas, 1)}
	}
	c.coord = &coord{process: proc("coordinator"), w: c.w, bug: o.Bug, archive: map[string]checkpoint{},
		check: newChecker(c.w),
		limits: machine.Limits{Lease: second, MaxSilenceStep: second / 8, Backoff: 20 * ms, MaxBackoff: 200 * ms,
			MaxErrors: 1000, MaxLosses: 1000,
			MaxOutage: 1000 * second, MaxRollbacks: 1000, Straggler: 300 * ms, KeepInputs: o.Faults.Rot+o.Faults.Wipe > 0,
			Digests: true, Checkpoints: o.Faults.Archive, CheckpointEvery: 500 * ms}}
	c.coord.store = store(&c.coord.process)
	c.coord.start()
	for i := range o.Workers {
		k := &worker{process: proc(fmt.Sprintf("worker%d", i)), w: c.w, slots: 1 + i%2, coord: c.coord}
		k.store = store(&k.process)
		c.workers = append(c.workers, k)
		k.start()
	}
}

// rate returns the rate of a process's clock.
func (c *cluster) rate() float64 {
	if !c.w.faults.Skew {
		return 1
	}
	return 0.8 + 0.4*c.w.rng.Float64()
}

// submit submits a job until the coordinator has answered.
func (c *cluster) submit(id string, spec *taxonv1.JobSpec) {
	k := c.coord
	call(c.w, &c.users, &k.process, callTimeout, func(back func(answer)) {
		k.step(machine.Submit{ID: id, Spec: spec}, back)
	}, func(a answer, ok bool) {
		switch {
		case !ok:
			c.submit(id, spec)
		case a.err != nil:
			c.w.fail("job %s is refused: %v", id, a.err)
		}
	})
}

// ended reports whether all jobs have ended, and records those that failed.
func (c *cluster) ended(o Options) bool {
	k := c.coord
	if !k.up || k.synced < len(k.file) {
		return false
	}
	jobs := k.machine.Jobs(k.clock())
	done := 0
	for _, j := range jobs {
		switch j.State {
		case taxonv1.JobState_JOB_STATE_DONE:
			done++
		case taxonv1.JobState_JOB_STATE_FAILED:
			c.w.fail("job %s ended %v: %s", j.Job, j.State, j.Error)
		}
	}
	return done == len(o.Jobs) && len(c.w.broken) == 0
}

func (c *cluster) describe() string {
	out := ""
	for _, j := range c.coord.machine.Jobs(c.coord.clock()) {
		st, err := c.coord.machine.Status(j.Job, c.coord.clock(), 0)
		out += fmt.Sprintf("%v %v; ", st, err)
	}
	for _, w := range c.coord.machine.Workers() {
		out += fmt.Sprintf("%v; ", w)
	}
	return out
}

// outcome collects the results of the jobs.
func (c *cluster) outcome(o Options) Outcome {
	k := c.coord
	out := Outcome{Kills: c.kills, Resumed: c.resumed, Restarts: k.restarts, Compacts: k.compacts, Batches: k.batches,
		Replayed: k.check.replayed}
	if k.machine == nil {
		return out
	}
	for i := range o.Jobs {
		st, err := k.machine.Status(fmt.Sprintf("j%d", i), k.clock(), 0)
		if err != nil {
			continue
		}
		out.Speculated += st.Speculated
		out.Remade += st.Remade
		out.Rollbacks += st.Rollbacks
		out.Retried += st.Tasks.Retried
		out.WorkersLost += st.WorkersLost
		if st.State != taxonv1.JobState_JOB_STATE_DONE {
			continue
		}
		var weights []uint64
		for task, attempt := range st.FinalAttempts {
			v, ok := c.final(key{st.Job, st.FinalStep, uint32(task), attempt})
			if !ok {
				c.w.fail("job %s: weights of task %d are not in the store", st.Job, task)
			}
			weights = append(weights, v)
		}
		out.Weights = append(out.Weights, weights)
		out.Objectives = append(out.Objectives, st.Certificate.GetObjective())
		out.Sweeps = append(out.Sweeps, st.Sweep)
		out.StoppedBy = append(out.StoppedBy, st.StoppedBy)
	}
	return out
}

// final reads a value as an export would.
func (c *cluster) final(k key) (uint64, bool) {
	for _, s := range c.coord.store.place(k) {
		if v, ok := s.values[k]; ok && (v.good() || s.bug == "read without checksum") {
			return v.hash, true
		}
	}
	return 0, false
}
