package recursive

import (
	"sync"

	"taxon/internal/coupling"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
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

// blocks keeps what this worker last wrote for each block: the block's next task, which
// mostly comes back here, reads the state, and the reducers read the contributions until
// the block is solved again.
type blocks struct {
	mu sync.Mutex
	of map[uint32]solvedBlock
}

// solvedBlock is what a MAP task wrote, as decoding gives it.
type solvedBlock struct {
	at    taxonv1.Place
	state *mapper.State
	parts [][]coupling.Contribution // by feature range
}

func (s *blocks) keep(block uint32, b solvedBlock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[uint32]solvedBlock{}
	}
	s.of[block] = b
}

// get returns what the task at a place wrote for a block, if that is kept; what was written
// before it is forgotten.
func (s *blocks) get(block uint32, at taxonv1.Place) (solvedBlock, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[block]
	if ok && b.at.Step < at.Step { // another worker has solved the block since
		delete(s.of, block)
	}
	return b, ok && b.at == at
}
