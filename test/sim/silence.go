package sim

import (
	"fmt"

	"taxon/coordinator/machine"
)

// silence records when the coordinator last heard of workers and leases, from the messages that
// arrived there, and compares this with those that it takes for lost. Workers are identified by
// their ids, leases by epoch.
type silence struct {
	w     *world
	lease machine.Tick
	began machine.Tick            // start of the coordinator's process
	heard map[string]machine.Tick // last message or answer
	open  map[string]bool         // the answer that names it waits for the journal
	stood []span                  // periods in which the coordinator was stopped
}

type span struct{ from, to machine.Tick }

func epoch(n uint64) string { return fmt.Sprint("lease ", n) }

// begins records that the coordinator is up, with the knowledge of its journal only.
func (s *silence) begins(c *coord) {
	s.lease, s.began = c.limits.Lease, s.w.now
	if n := len(s.stood); n > 0 {
		s.stood[n-1].to = min(s.stood[n-1].to, max(c.paused, s.w.now)) // a kill ends it
	}
	s.heard, s.open = map[string]machine.Tick{}, map[string]bool{}
}

// stands records that the coordinator is stopped until a time.
func (s *silence) stands(until machine.Tick) {
	if n := len(s.stood); n > 0 && s.stood[n-1].to >= s.w.now {
		s.stood[n-1].to = until
		return
	}
	s.stood = append(s.stood, span{s.w.now, until})
}

// hears records the arrival of an event.
func (s *silence) hears(e machine.Event) {
	switch e := e.(type) {
	case machine.RequestTask:
		s.heard[e.Worker] = s.w.now
	case machine.Report:
		s.heard[e.Worker] = s.w.now
	case machine.Renew:
		s.heard[e.Worker] = s.w.now
		for _, l := range e.Leases {
			s.heard[epoch(l.Epoch)] = s.w.now
		}
	}
}

// answered records that the answer that names a worker or lease for the first time is sent.
func (s *silence) answered(who string) {
	delete(s.open, who)
	s.heard[who] = s.w.now
}

// since returns the time for which a worker or lease could be heard but was silent, and the number
// of times that the coordinator was stopped in this time.
func (s *silence) since(who string, c *coord) (silent machine.Tick, stops int) {
	from := max(s.heard[who], s.began)
	silent = s.w.now - from
	for _, p := range s.stood {
		if overlap := min(p.to, s.w.now) - max(p.from, from); overlap >= 0 {
			silent -= overlap
			stops++
		}
	}
	return machine.Tick(float64(silent) * c.rate), stops
}

// decided checks that a lost worker or lease was silent for a lease while the coordinator could
// hear it. The coordinator may count a part of each period in which it was stopped.
func (s *silence) decided(c *coord, r *machine.Record) {
	who := r.Worker
	switch {
	case r.Kind == "register":
		s.open[who] = true
		return
	case r.Kind == "grant":
		s.open[epoch(r.Epoch)] = true
		return
	case r.Kind == "lost" && r.Reason == "lease expired":
		who = epoch(r.Epoch)
	case r.Kind != "gone" || r.Reason != "silent":
		return
	}
	silent, stops := s.since(who, c)
	if silent+machine.Tick(stops)*c.limits.MaxSilenceStep < s.lease-50*ms {
		s.w.fail("%s is lost, which could be heard for %.3f s since it was, or the coordinator was stopped %d times", who,
			silent.Seconds(), stops)
	}
	if s.open[who] {
		s.w.fail("%s is lost while the journal keeps it from knowing of itself", who)
	}
}

// missed checks that whoever is silent for a lease and a half is lost.
func (s *silence) missed(c *coord) {
	for _, w := range c.machine.Workers() {
		silent, _ := s.since(w.Worker, c)
		if w.State <= 2 && !s.open[w.Worker] && silent > s.lease+s.lease/2 {
			s.w.fail("%s is silent for %.3f s and is not missed", w.Worker, silent.Seconds())
		}
	}
}
