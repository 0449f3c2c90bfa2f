package worker

import (
	"sync"

	"taxon/mapper"
	"taxon/store"
)

// recentSteps is how far back values are kept: the vectors of the update before last may
// still be read when a guard step redoes an update.
const recentSteps = 5

// recent keeps what this worker wrote lately in decoded form, so that its next tasks need
// not fetch and decode it again. It holds nothing that the store would not give: a value
// that is not here, or was written elsewhere, is read from there.
type recent struct {
	mu    sync.Mutex
	steps map[uint32]map[store.Key]any
}

// keep remembers a value that has been written, and forgets the old ones.
func (r *recent) keep(k store.Key, v any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps == nil {
		r.steps = map[uint32]map[store.Key]any{}
	}
	at := r.steps[k.Step]
	if at == nil {
		at = map[store.Key]any{}
		r.steps[k.Step] = at
		for step := range r.steps {
			if step+recentSteps < k.Step {
				delete(r.steps, step)
			}
		}
	}
	at[k] = v
}

// get returns the value kept under k; nil: none is.
func (r *recent) get(k store.Key) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps[k.Step][k]
}

// states keeps the state that this worker last wrote for each block: the block's next task,
// which mostly comes back here, reads it.
type states struct {
	mu sync.Mutex
	of map[uint32]keptState
}

type keptState struct {
	key   store.Key
	state *mapper.State
}

func (s *states) keep(block uint32, k store.Key, st *mapper.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[uint32]keptState{}
	}
	s.of[block] = keptState{k, st}
}

// get returns the block's state if it is the one under k; nil: it has to be read.
func (s *states) get(block uint32, k store.Key) *mapper.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.of[block]; kept.key == k {
		return kept.state
	}
	return nil
}
