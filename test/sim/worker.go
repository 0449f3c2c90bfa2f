package sim

import (
	"errors"
	"hash/fnv"
	"slices"

	"taxon/coordinator/machine"
	"taxon/coordinator/method"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
)

const (
	callTimeout = 400 * ms
	pollEvery   = 30 * ms
)

// worker leases toy tasks and runs them, a few at a time.
type worker struct {
	process
	w     *world
	slots int
	coord *coord
	store *client

	id   string // registration; empty if there is none
	held map[uint64]*work

	// delivering counts the batches that are being written and reported while their slots continue.
	// There are at most as many as slots.
	delivering int
	ahead      [][]*work // batches that arrived while all slots were busy
}

// batch bounds the number of tasks that a slot leases together.
const batch = 4

// work is a task that runs, or that waits in its batch. lost says that its lease is no longer held.
type work struct {
	worker string
	lease  *taxonv1.Lease
	rest   []*work // the rest of its batch, to be run after it
	behind bool    // its slot has continued with other work
	id     *taxonv1.LeaseId
	lost   bool
}

// start starts the worker without memory of an earlier process.
func (k *worker) start() {
	k.up, k.id, k.held, k.delivering, k.ahead = true, "", map[uint64]*work{}, 0, nil
	k.register()
	for range k.slots {
		k.ask()
	}
	k.renew()
}

// notify sends an event to the coordinator and passes on the answer.
func (k *worker) notify(e machine.Event, done func(answer, bool)) {
	c := k.coord
	call(k.w, &k.process, &c.process, callTimeout, func(back func(answer)) { c.step(e, back) }, done)
}

func (k *worker) register() {
	k.notify(machine.Register{Name: k.name, Slots: uint32(k.slots)}, func(a answer, ok bool) {
		if ok && a.err == nil {
			k.id = a.worker
			return
		}
		k.w.after(&k.process, 50*ms, k.register)
	})
}

// unknown records that a registration is gone, with all its leases.
func (k *worker) unknown(id string, err error) bool {
	if !errors.Is(err, machine.ErrUnknownWorker) {
		return false
	}
	if k.id == id && id != "" {
		k.id = ""
		k.register()
	}
	for _, t := range k.held {
		t.lost = t.lost || t.worker == id
	}
	return true
}

// ask requests the next task for a slot.
func (k *worker) ask() {
	again := func() { k.w.after(&k.process, k.w.between(pollEvery/2, pollEvery), k.ask) }
	if len(k.ahead) > 0 {
		list := k.ahead[0]
		k.ahead = k.ahead[1:]
		k.work(list[0])
		return
	}
	if k.id == "" {
		again()
		return
	}
	id := k.id
	k.notify(machine.RequestTask{Worker: id, Most: batch}, func(a answer, ok bool) {
		switch {
		case !ok:
			again()
		case a.dismissed && len(k.held) == 0:
			k.leave()
			again()
		case k.unknown(id, a.err), len(a.leases) == 0:
			again()
		default:
			k.work(k.batch(id, a.leases)[0])
		}
	})
}

// renew renews leases, three times in their duration.
func (k *worker) renew() {
	k.w.after(&k.process, k.coord.limits.Lease/3, func() {
		k.renew()
		if k.id == "" {
			return
		}
		e := machine.Renew{Worker: k.id}
		for _, t := range k.held {
			if t.worker == k.id {
				e.Leases = append(e.Leases, t.id)
			}
		}
		slices.SortFunc(e.Leases, func(a, b *taxonv1.LeaseId) int { return int(int64(a.Epoch) - int64(b.Epoch)) })
		k.notify(e, func(a answer, ok bool) {
			if !ok || k.unknown(e.Worker, a.err) {
				return
			}
			for _, id := range a.lost {
				if t := k.held[id.Epoch]; t != nil {
					t.lost = true
				}
			}
		})
	})
}

// batch records tasks that were leased together. They run one after the other, and each is reported
// when it is complete, so that messages are lost and processes killed between them.
func (k *worker) batch(id string, leases []*taxonv1.Lease) (list []*work) {
	for _, l := range leases {
		t := &work{worker: id, lease: l, id: &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt,
			Epoch: l.Epoch}}
		k.held[l.Epoch] = t
		list = append(list, t)
	}
	for i, t := range list {
		t.rest = list[i+1:]
	}
	return list
}

// next continues with the batch, or requests another one.
func (k *worker) next(t *work) {
	delete(k.held, t.id.Epoch)
	if t.behind {
		k.delivering--
		return
	}
	if len(t.rest) > 0 {
		k.work(t.rest[0])
		return
	}
	k.ask()
}

// work runs a task: reads, computes, writes, reports.
func (k *worker) work(t *work) {
	if k.gone(t) {
		return
	}
	l := t.lease
	e := machine.Report{Worker: t.worker, Lease: t.id, Next: len(t.rest) == 0, Most: batch}
	end := func() { k.report(t, e) }
	k.store.get(l.Job, reads(l), func(r read) {
		switch {
		case k.gone(t):
			return
		case r.away:
			e.Error, e.Unavailable = "the store is away", true
			end()
			return
		case len(r.lost) > 0:
			k.w.say("%s misses %v for %v", k.name, r.lost, t.id)
			e.Error, e.Lost = "the store has lost a value", r.lost
			end()
			return
		}
		hash := compute(l, r.hash)
		d := k.w.between(2*ms, 40*ms)
		if k.w.chance(k.w.faults.Straggle) {
			d = k.w.between(second, 4*second)
		}
		k.w.after(&k.process, d, func() {
			if k.gone(t) {
				return
			}
			if len(t.rest) == 0 && k.delivering < k.slots && k.w.chance(0.5) { // the slot continues in the meantime
				t.behind, e.Ahead = true, true
				k.delivering++
				k.ask()
			}
			k.store.put(key{l.Job, l.Step, l.Task, l.Attempt}, hash, func(ok bool) {
				if !ok {
					e.Error, e.Unavailable = "the store is away", true
				}
				e.Sums, e.CPUSeconds = sums(l, hash), 0.01
				end()
			})
		})
	})
}

// gone ends a task whose lease was lost.
func (k *worker) gone(t *work) bool {
	if !t.lost || k.w.chance(0.3) { // some workers do not notice in time
		return false
	}
	k.next(t)
	return true
}

// report reports to the coordinator until it answers.
func (k *worker) report(t *work, e machine.Report) {
	k.notify(e, func(a answer, ok bool) {
		if !ok && !t.lost {
			k.w.after(&k.process, k.w.between(10*ms, 100*ms), func() { k.report(t, e) })
			return
		}
		if ok && !k.unknown(e.Worker, a.err) && len(a.leases) > 0 {
			list := k.batch(e.Worker, a.leases)
			if t.behind {
				k.ahead = append(k.ahead, list)
				k.next(t)
				return
			}
			delete(k.held, t.id.Epoch)
			k.work(list[0])
			return
		}
		k.next(t)
	})
}

// reads lists the places that a task reads.
func reads(l *taxonv1.Lease) []taxonv1.Place {
	var out []taxonv1.Place
	for _, in := range l.Inputs {
		out = append(out, in.Refs.Expand()...)
	}
	return out
}

// compute is the toy's mapper and reducer: a hash of the task's identity and inputs. Step and
// attempt are not part of it, so a task that is repeated gives the same result.
func compute(l *taxonv1.Lease, values map[taxonv1.Place]uint64) uint64 {
	h := fnv.New64a()
	var buf [8]byte
	say := func(v uint64) {
		for i := range buf {
			buf[i] = byte(v >> (8 * i))
		}
		h.Write(buf[:])
	}
	h.Write([]byte(l.Op))
	h.Write(l.Params)
	say(uint64(l.Items))
	say(uint64(l.Item))
	say(uint64(l.Sweep))
	say(l.Seed)
	for _, p := range reads(l) {
		say(values[p])
	}
	return h.Sum64()
}

// sums returns the figures of a training whose gap halves with every sweep. Their last digits
// depend on the values.
func sums(l *taxonv1.Lease, hash uint64) method.Sums {
	s := make(method.Sums, rr.SumVisits+1)
	s[rr.SumVisits] = 1
	var m rr.Map
	var r rr.Reduce
	var err error
	switch l.Op {
	case rr.OpMap:
		err = method.Decode(l.Params, &m)
	case rr.OpReduce:
		err = method.Decode(l.Params, &r)
		s[rr.SumRestart] = float64(int(hash%7) - 4)
	}
	if err != nil {
		panic(err)
	}
	if m.Price || r.Certify {
		eps := 1 / float64(uint64(1)<<min(l.Sweep, 60))
		noise := float64(hash%1000) / 1e6
		s[rr.SumPrimal], s[rr.SumDual] = 1+float64(eps*(1+noise)), 1-eps
	}
	return s
}
