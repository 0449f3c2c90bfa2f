// Package taxonv1 is the wire contract between users, coordinator, workers and store
// shards: messages and services generated from the .proto files beside it (make
// generate), and in refs.go the one reading of their compressed references.
//
// It stays at the edges: maths, data, models and the store's shards know none of it.
package taxonv1

// Place says which attempt of which task of which step wrote a value. The zero Place
// stands for a value that was never written and reads as zero.
type Place struct{ Step, Task, Attempt uint32 }

// Ref is the place as a message.
func (p Place) Ref() *Ref { return &Ref{Step: p.Step, Task: p.Task, Attempt: p.Attempt} }

// Place is the message as a plain value; a nil Ref is the zero Place.
func (r *Ref) Place() Place {
	return Place{Step: r.GetStep(), Task: r.GetTask(), Attempt: r.GetAttempt()}
}

// Items is the number of items that r stands for.
func (r *Refs) Items() int {
	n := 0
	for _, c := range r.GetCount() {
		n += int(c)
	}
	return n
}

// Expand lists the place of every item, in item order. A run whose fields are missing
// (a malformed message) reads as zero Places.
func (r *Refs) Expand() []Place {
	out := make([]Place, 0, r.Items())
	for k, n := range r.GetCount() {
		if k >= len(r.Step) || k >= len(r.Task) || k >= len(r.Attempt) || r.Step[k] == 0 {
			out = append(out, make([]Place, n)...)
			continue
		}
		for j := uint32(0); j < n; j++ {
			out = append(out, Place{Step: r.Step[k], Task: r.Task[k] + j, Attempt: r.Attempt[k]})
		}
	}
	return out
}

// NewRefs codes places in item order; the result has as few runs as possible.
func NewRefs(places []Place) *Refs {
	r := &Refs{}
	for i, p := range places {
		if i > 0 {
			k := len(r.Count) - 1
			same := p == Place{} && r.Step[k] == 0
			next := p.Step != 0 && p == Place{r.Step[k], r.Task[k] + r.Count[k], r.Attempt[k]}
			if same || next {
				r.Count[k]++
				continue
			}
		}
		r.Count = append(r.Count, 1)
		r.Step = append(r.Step, p.Step)
		r.Task = append(r.Task, p.Task)
		r.Attempt = append(r.Attempt, p.Attempt)
	}
	return r
}

// Ended reports whether a job is over: done, failed or cancelled.
func (x JobState) Ended() bool {
	return x == JobState_JOB_STATE_DONE || x == JobState_JOB_STATE_FAILED || x == JobState_JOB_STATE_CANCELLED
}
