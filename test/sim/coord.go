package sim

import (
	"encoding/json"
	"fmt"

	"taxon/coordinator/journal"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// coord is the coordinator's shell around the real machine, with the file of its journal.
type coord struct {
	process
	w       *world
	limits  machine.Limits
	machine *machine.Machine
	offset  machine.Tick // offset of its wall clock
	slow    machine.Tick // delay of the disk
	jam     machine.Tick // nothing becomes durable before this time
	bug     string

	file    []byte // the journal as the process wrote it
	synced  int    // bytes that survive a crash
	syncing bool
	held    []held // actions that wait for a sync
	records uint64 // records that this process has written
	durable uint64

	jobNames []string
	store    *client
	effects  map[string][]func(next func())
	archive  map[string]checkpoint // checkpoints on another file system, which does not fail
	check    *checker
	restarts int
	compacts int
	batches  int // grants of several tasks
}

// held is an action to take once the journal is durable up to a length.
type held struct {
	upto int
	do   func()
}

// checkpoint is the data that SaveJob stores.
type checkpoint struct {
	state  []byte
	values map[key]uint64
}

// answer is the answer to an event.
type answer struct {
	err       error
	worker    string
	leases    []*taxonv1.Lease
	lost      []*taxonv1.LeaseId
	accepted  bool
	dismissed bool
}

// clock returns the coordinator's wall time.
func (c *coord) clock() machine.Tick {
	return 1000*second + c.offset + machine.Tick(float64(c.w.now-1000*second)*c.rate)
}

// start rebuilds the machine from the journal's file.
func (c *coord) start() {
	c.up, c.syncing, c.held, c.effects = true, false, nil, map[string][]func(func()){}
	c.records, c.durable = 0, 0
	c.check.begins(c)
	m, whole, err := rebuild(c.limits, c.file)
	if err != nil {
		c.w.fail("the journal can't be read: %v", err)
		return
	}
	c.machine, c.file = m, c.file[:whole]
	c.synced = min(c.synced, len(c.file))
	if whole == 0 { // the journal is synced when it is opened
		c.file = journal.Encode(nil)
		c.synced = len(c.file)
	}
	c.execute(m.Recover(c.clock()))
	c.tick()
}

// rebuild builds the machine from a journal's bytes.
func rebuild(limits machine.Limits, file []byte) (*machine.Machine, int64, error) {
	snapshot, records, whole, err := journal.Decode(file)
	if err != nil {
		return nil, 0, err
	}
	m := machine.New(limits)
	if snapshot != nil {
		if err := m.LoadSnapshot(snapshot); err != nil {
			return nil, 0, err
		}
	}
	for n, data := range records {
		var r machine.Record
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, 0, err
		}
		if err := m.Replay(r); err != nil {
			return nil, 0, fmt.Errorf("record %d: %w", n, err)
		}
	}
	return m, whole, nil
}

// crash drops the bytes that were not synced, except for a prefix that the disk has already
// written.
func (c *coord) crash() {
	end := c.synced + c.w.rng.IntN(len(c.file)-c.synced+1)
	c.file = c.file[:end:end]
	if c.w.chance(0.3) { // the file was extended before its bytes arrived
		c.file = append(c.file, make([]byte, c.w.rng.IntN(40))...)
	}
	c.synced = end
}

// tick advances the machine's time, and compacts a long journal.
func (c *coord) tick() {
	c.w.after(&c.process, 50*ms, func() {
		c.execute(c.machine.Step(c.clock(), machine.Time{Pending: c.records - c.durable}))
		c.sync()
		if len(c.file) > 24<<10 && c.synced == len(c.file) && len(c.held) == 0 && c.w.chance(0.2) {
			c.check.replays(c)
			c.file = journal.Encode(c.machine.Snapshot())
			c.synced = len(c.file)
			c.compacts++
		}
		c.check.progress(c)
		c.check.missed(c)
		c.tick()
	})
}

// step gives the machine an event. then is called when the records before the answer are durable.
func (c *coord) step(e machine.Event, then func(answer)) {
	a := c.execute(c.machine.Step(c.clock(), e))
	c.check.hears(e)
	if _, ok := e.(machine.Renew); ok { // the answer contains nothing that must be durable
		then(a)
		return
	}
	c.hold(func() {
		if _, ok := e.(machine.Register); ok {
			c.check.answered(a.worker)
		}
		if len(a.leases) > 1 {
			c.batches++
		}
		for _, l := range a.leases {
			c.check.granted(l)
		}
		if r, ok := e.(machine.Report); ok && a.accepted && r.Error == "" && !r.Returned {
			c.check.accepted(r.Lease)
		}
		then(a)
	})
}

// execute runs the machine's actions as the real shell would.
func (c *coord) execute(actions []machine.Action) (a answer) {
	for _, action := range actions {
		switch x := action.(type) {
		case machine.Persist:
			data, err := json.Marshal(&x.Record)
			if err != nil {
				c.w.fail("record %s: %v", x.Record.Kind, err)
				return a
			}
			c.file = journal.Append(c.file, data)
			c.records++
			c.check.decided(c, &x.Record)
		case machine.Registered:
			a.worker = x.Worker
		case machine.Grant:
			a.leases = append(a.leases, x.Lease)
		case machine.Lost:
			a.lost = x.Leases
		case machine.Accepted:
			a.accepted = true
		case machine.WorkerDrained:
			a.dismissed = true
		case machine.Refused:
			a.err = x.Err
		case machine.CommitStep:
			c.effect(x.Job, func(next func()) {
				c.check.committed(x)
				c.all(func(s *shard) { s.commit(x.Job, x.Step, x.Attempts) }, next)
			})
		case machine.DropSteps:
			c.effect(x.Job, func(next func()) { c.all(func(s *shard) { s.drop(x.Job, x.Keep, x.Before) }, next) })
		case machine.SaveJob:
			c.effect(x.Job, func(next func()) { c.save(x, next) })
		case machine.DigestWeights:
			c.effect(x.Job, func(next func()) { c.digest(x.Job, next) })
		case machine.LoadJob:
			c.effect(x.Job, func(next func()) { c.load(x.Job, next) })
		}
	}
	return a
}

// hold runs do once everything written so far is durable.
func (c *coord) hold(do func()) {
	if c.bug == "coordinator acknowledges before sync" || c.synced >= len(c.file) && len(c.held) == 0 {
		do()
		c.sync()
		return
	}
	c.held = append(c.held, held{len(c.file), do})
	c.sync()
}

// sync makes the file durable, and repeats this as long as necessary.
func (c *coord) sync() {
	if c.syncing || c.synced >= len(c.file) {
		return
	}
	c.syncing = true
	upto, records := len(c.file), c.records
	c.w.after(&c.process, c.w.between(ms/2, 3*ms)+max(c.slow, c.jam-c.w.now), func() {
		c.syncing, c.synced, c.durable = false, upto, records
		for len(c.held) > 0 && c.held[0].upto <= c.synced {
			do := c.held[0].do
			c.held = c.held[1:]
			do()
		}
		c.sync()
	})
}

// effect queues an action after the records so far and the job's earlier effects.
func (c *coord) effect(job string, do func(next func())) {
	c.hold(func() {
		c.effects[job] = append(c.effects[job], do)
		if len(c.effects[job]) == 1 {
			c.nextEffect(job)
		}
	})
}

func (c *coord) nextEffect(job string) {
	c.effects[job][0](func() {
		c.effects[job] = c.effects[job][1:]
		if len(c.effects[job]) > 0 {
			c.nextEffect(job)
		}
	})
}

// all runs do on every shard, however long that takes.
func (c *coord) all(do func(*shard), done func()) {
	left := len(c.store.shards)
	for _, s := range c.store.shards {
		c.insist(s, do, func() {
			if left--; left == 0 {
				done()
			}
		})
	}
}

func (c *coord) insist(s *shard, do func(*shard), done func()) {
	c.store.try(s, storeTries, func(answer func(bool)) { do(s); answer(true) }, func(ok bool) {
		if !ok {
			c.insist(s, do, done)
			return
		}
		done()
	})
}

// save copies the values that a checkpoint needs, once all shards are up.
func (c *coord) save(x machine.SaveJob, next func()) {
	values := map[key]uint64{}
	for _, s := range c.store.shards {
		if !s.up {
			c.w.after(&c.process, 100*ms, func() { c.save(x, next) })
			return
		}
		for k, v := range s.values {
			for _, step := range x.Keep {
				if k.job == x.Job && k.step == step && v.good() {
					values[k] = v.hash
				}
			}
		}
	}
	c.archive[x.Job] = checkpoint{state: x.State, values: values}
	c.step(machine.Saved{Job: x.Job, Final: x.Final}, func(answer) {})
	next()
}

// digest reads a job's weights once all shards are up, unless it is cancelled in the meantime.
func (c *coord) digest(job string, next func()) {
	done := machine.Digested{Job: job, Digest: machine.Digest{WeightsSHA256: job}}
	for _, s := range c.store.shards {
		if !s.up {
			done.Later, done.Err = true, "a shard is away"
		}
	}
	c.step(done, func(a answer) {
		if done.Later && a.err == nil {
			c.w.after(&c.process, 100*ms, func() { c.digest(job, next) })
			return
		}
		next()
	})
}

// load restores a job's last checkpoint.
func (c *coord) load(job string, next func()) {
	saved := c.archive[job]
	var keys []key
	for k := range saved.values {
		keys = append(keys, k)
	}
	sortKeys(keys)
	var put func(i int)
	put = func(i int) {
		if i == len(keys) {
			c.step(machine.Loaded{Job: job, State: saved.state}, func(answer) {})
			next()
			return
		}
		c.store.put(keys[i], saved.values[keys[i]], func(ok bool) {
			if !ok {
				put(i)
				return
			}
			put(i + 1)
		})
	}
	put(0)
}
