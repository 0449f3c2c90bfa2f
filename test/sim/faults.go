package sim

import "taxon/coordinator/machine"

// Faults says which faults occur, and for how long. Times are means between two faults of a kind; a
// kind with time 0 never occurs.
type Faults struct {
	// For is the time at which faults end. The rest of the run is calm.
	For machine.Tick

	// Skew gives clocks different rates, and makes them jump at restarts.
	Skew bool

	// Lose, Double and Late are probabilities for each message.
	Lose, Double, Late float64

	// Straggle is the probability that a task takes very long.
	Straggle float64

	KillCoordinator, KillWorker, KillShard machine.Tick

	// Cut partitions two processes for a while.
	Cut machine.Tick

	// Pause stops a process, often for longer than a lease.
	Pause machine.Tick

	// Stand stops the coordinator for a lease or more.
	Stand machine.Tick

	// Jam delays the sync of the coordinator's journal as long.
	Jam machine.Tick

	// Slow slows down a disk for a while.
	Slow machine.Tick

	// Rot corrupts a stored value.
	Rot machine.Tick

	// Wipe replaces a shard by an empty one.
	Wipe machine.Tick

	// Archive keeps checkpoints on another file system.
	Archive bool

	// Users cancels and resumes jobs, and drains and stops workers.
	Users machine.Tick
}

// Draw chooses faults by a seed: usually several kinds, sometimes few, so that each kind occurs
// alone and together with others.
func Draw(seed uint64) Faults {
	r := newWorld(seed^0xfa017, Faults{})
	f := Faults{For: r.between(2*second, 6*second), Skew: r.chance(0.5)}
	share := func(p, most float64) float64 {
		if !r.chance(p) {
			return 0
		}
		return most * r.rng.Float64()
	}
	every := func(p float64, lo, hi machine.Tick) machine.Tick {
		if !r.chance(p) {
			return 0
		}
		return r.between(lo, hi)
	}
	f.Lose, f.Double, f.Late = share(0.6, 0.1), share(0.6, 0.1), share(0.5, 0.05)
	f.Straggle = share(0.5, 0.05)
	f.KillCoordinator = every(0.7, 200*ms, 2*second)
	f.KillWorker = every(0.7, 200*ms, 2*second)
	f.KillShard = every(0.6, 200*ms, 2*second)
	f.Cut = every(0.4, 200*ms, 2*second)
	f.Pause = every(0.5, 300*ms, 2*second)
	f.Slow = every(0.3, 500*ms, 2*second)
	f.Rot = every(0.35, 100*ms, second)
	f.Wipe = every(0.2, second, 4*second)
	f.Archive = r.chance(0.5)
	f.Users = every(0.3, 300*ms, 2*second)
	f.Stand = every(0.3, second, 4*second)
	f.Jam = every(0.3, second, 4*second)
	return f
}

// disturb starts the faults.
func (c *cluster) disturb() {
	f := c.w.faults
	c.every(f.KillCoordinator, func() { c.kill(&c.coord.process, c.coord.crash, c.restartCoordinator) })
	c.every(f.KillWorker, func() {
		k := c.workers[c.w.rng.IntN(len(c.workers))]
		c.kill(&k.process, func() {}, k.start)
	})
	c.every(f.KillShard, func() {
		s := c.anyShard()
		c.kill(&s.process, s.crash, func() { s.up = true })
	})
	c.every(f.Cut, func() {
		all := c.processes()
		a, b := all[c.w.rng.IntN(len(all))], all[c.w.rng.IntN(len(all))]
		c.w.cuts[[2]*process{a, b}] = c.w.now + c.w.between(100*ms, 3*second)
	})
	c.every(f.Pause, func() {
		all := c.processes()
		c.pause(all[c.w.rng.IntN(len(all))], c.w.between(50*ms, 2*second))
	})
	c.every(f.Stand, func() { c.pause(&c.coord.process, c.w.between(second, 4*second)) })
	c.every(f.Jam, func() {
		c.coord.jam = c.w.now + c.w.between(second, 4*second)
		c.w.say("the journal is stuck until %.3f", (c.coord.jam - 1000*second).Seconds())
	})
	c.every(f.Slow, func() {
		slow := &c.coord.slow
		if n := c.w.rng.IntN(len(c.shards) + 1); n > 0 {
			slow = &c.shards[n-1].slow
		}
		*slow = c.w.between(20*ms, 500*ms)
		c.w.at(c.w.now+second, func() { *slow = 0 })
	})
	c.interfere()
	c.every(f.Rot, c.rot)
	c.every(f.Wipe, c.wipe)
}

// pause stops a process for about d.
func (c *cluster) pause(p *process, d machine.Tick) {
	p.paused = max(p.paused, c.w.now+d)
	if p == &c.coord.process {
		c.coord.check.stands(p.paused)
	}
	c.w.say("%s is stopped until %.3f", p.name, (p.paused - 1000*second).Seconds())
}

// every calls do again and again until the faults end.
func (c *cluster) every(mean machine.Tick, do func()) {
	if mean == 0 {
		return
	}
	at := c.w.now + c.w.between(1, 2*mean)
	if at < 1000*second+c.w.faults.For {
		c.w.at(at, func() { do(); c.every(mean, do) })
	}
}

func (c *cluster) anyShard() *shard { return c.shards[c.w.rng.IntN(len(c.shards))] }

func (c *cluster) processes() []*process {
	out := []*process{&c.coord.process}
	for _, s := range c.shards {
		out = append(out, &s.process)
	}
	for _, k := range c.workers {
		out = append(out, &k.process)
	}
	return out
}

// kill ends a process at once and restarts it after a while.
func (c *cluster) kill(p *process, crash, start func()) {
	if !p.up {
		return
	}
	c.kills++
	c.w.say("%s is killed", p.name)
	p.up, p.paused = false, 0
	p.life++
	crash()
	c.w.at(c.w.now+c.w.between(20*ms, 1500*ms), func() {
		c.w.say("%s is back", p.name)
		start()
	})
}

// restartCoordinator restarts the coordinator, perhaps with another wall time.
func (c *cluster) restartCoordinator() {
	c.coord.restarts++
	if c.w.faults.Skew {
		c.coord.offset += c.w.between(-3*second, 3*second)
	}
	c.coord.start()
}

// vulnerable reports whether no job is writing its final values, whose loss would go unnoticed
// until the export.
func (c *cluster) vulnerable() bool {
	if !c.coord.up {
		return false
	}
	for _, j := range c.coord.machine.Jobs(c.coord.clock()) {
		if _, emitting := c.coord.check.emitting[j.Job]; emitting || j.Phase == "emit" || j.Phase == "end" {
			return false
		}
	}
	return true
}

// rot corrupts a value.
func (c *cluster) rot() {
	s := c.anyShard()
	keys := s.keys()
	if len(keys) == 0 || !c.vulnerable() {
		return
	}
	k := keys[c.w.rng.IntN(len(keys))]
	v := s.values[k]
	v.hash ^= 1 << c.w.rng.IntN(64)
	s.values[k] = v
	c.w.say("%s: %v rots", s.name, k)
}

// wipe replaces a shard by an empty one.
func (c *cluster) wipe() {
	if !c.vulnerable() {
		return
	}
	s := c.anyShard()
	c.w.say("%s is wiped", s.name)
	c.kill(&s.process, func() { s.values = map[key]value{} }, func() { s.up = true })
}
