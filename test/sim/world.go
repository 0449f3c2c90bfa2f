package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"taxon/coordinator/machine"
)

const (
	ms     = machine.Tick(1e6)
	second = 1000 * ms
)

// world holds the simulated time, the network and the violations so far.
type world struct {
	rng     *rand.Rand
	faults  Faults
	now     machine.Tick
	events  events
	order   uint64
	cuts    map[[2]*process]machine.Tick // pairs that are partitioned until a time
	broken  []string                     // violated invariants
	history []string                     // the last events
}

// process is something that can be killed. life counts its starts: messages for an earlier life are
// dropped.
type process struct {
	name   string
	up     bool
	life   int
	paused machine.Tick // it neither receives nor sends until then
	rate   float64      // rate of its clock
}

type event struct {
	at    machine.Tick
	order uint64
	do    func()
}

// events is a heap ordered by time, then by creation.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return last
}

func newWorld(seed uint64, f Faults) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 0x7a78)), faults: f, now: 1000 * second,
		cuts: map[[2]*process]machine.Tick{}}
}

// at schedules an action at a time.
func (w *world) at(t machine.Tick, do func()) {
	w.order++
	heap.Push(&w.events, event{at: t, order: w.order, do: do})
}

// after schedules an action of a process for when its clock has advanced by d. It is dropped if the
// process is killed.
func (w *world) after(p *process, d machine.Tick, do func()) {
	life := p.life
	var try func()
	try = func() {
		switch {
		case p.life != life || !p.up:
		case p.paused > w.now:
			w.at(p.paused, try)
		default:
			do()
		}
	}
	w.at(w.now+machine.Tick(float64(d)/p.rate), try)
}

// run executes due actions until done returns true, or a bound on simulated time or on events is
// reached. It returns whether done did.
func (w *world) run(until machine.Tick, done func() bool) bool {
	for n := 0; n < 5_000_000; n++ {
		if done() || len(w.broken) > 0 {
			return len(w.broken) == 0
		}
		if len(w.events) == 0 || w.events[0].at > until {
			return false
		}
		e := heap.Pop(&w.events).(event)
		w.now = max(w.now, e.at)
		e.do()
	}
	return false
}

// fail records a violated invariant.
func (w *world) fail(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf("at %.3f s: ", (w.now-1000*second).Seconds())+fmt.Sprintf(format, args...))
}

// say records an event, for the analysis of a failure.
func (w *world) say(format string, args ...any) {
	const kept = 60
	if len(w.history) >= 2*kept {
		w.history = append(w.history[:0], w.history[kept:]...)
	}
	w.history = append(w.history, fmt.Sprintf("%9.3f ", (w.now-1000*second).Seconds())+fmt.Sprintf(format, args...))
}

// chance returns true with a probability.
func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// between draws a time uniformly.
func (w *world) between(lo, hi machine.Tick) machine.Tick {
	return lo + machine.Tick(w.rng.Int64N(int64(hi-lo)+1))
}

// send sends a message: deliver runs at the receiver unless the network or a crash loses the
// message, and twice if the network duplicates it.
func (w *world) send(from, to *process, deliver func()) {
	n := 1
	if w.chance(w.faults.Double) {
		n = 2
	}
	for range n {
		d := w.between(100_000, 2*ms)
		if w.chance(w.faults.Late) {
			d = w.between(10*ms, 2*second)
		}
		if w.chance(w.faults.Lose) || w.cut(from, to) {
			continue
		}
		w.at(w.now+d, func() { w.arrive(from, to, deliver) })
	}
}

// arrive delivers a message, or holds it while its receiver is stopped.
func (w *world) arrive(from, to *process, deliver func()) {
	switch {
	case !to.up || w.cut(from, to):
	case to.paused > w.now:
		w.at(to.paused, func() { w.arrive(from, to, deliver) })
	default:
		deliver()
	}
}

func (w *world) cut(a, b *process) bool {
	return w.cuts[[2]*process{a, b}] > w.now || w.cuts[[2]*process{b, a}] > w.now
}

// call calls a process. serve runs there and answers by its argument, at once or later. done
// receives the answer once, or ok = false after the timeout.
func call[A any](w *world, from, to *process, timeout machine.Tick, serve func(answer func(A)),
	done func(a A, ok bool)) {
	open, life := true, from.life
	finish := func(a A, ok bool) {
		if open && from.life == life && from.up {
			open = false
			done(a, ok)
		}
	}
	w.send(from, to, func() {
		there := to.life
		serve(func(a A) {
			if to.life == there && to.up {
				w.send(to, from, func() { finish(a, true) })
			}
		})
	})
	w.after(from, timeout, func() {
		var none A
		finish(none, false)
	})
}
