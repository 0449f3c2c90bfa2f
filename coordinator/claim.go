package coordinator

import (
	"context"
	"fmt"

	"taxon/coordinator/machine"
)

// maxAvoided bounds the ids that are passed over for one job.
const maxAvoided = 10000

// claim asks the checkpointer whether a job can have checkpoints: of the id that it wants,
// unless a job of that id is here already, or of the next that is free. avoid are the ids
// that were passed over; settle is to be called when the job was taken.
func (s *Server) claim(ctx context.Context, id string, state []byte) (avoid []string, settle func() error, err error) {
	c, ok := s.config.Checkpointer.(Claimer)
	if !ok {
		return nil, nil, nil
	}
	if id != "" {
		s.mu.Lock()
		known := s.machine.Known(id)
		s.mu.Unlock()
		if known && state == nil {
			return nil, nil, nil
		}
		settle, err = c.Claim(ctx, id, state)
		return nil, settle, claimed(err)
	}
	for len(avoid) < maxAvoided {
		s.mu.Lock()
		next := s.machine.FreeID(avoid)
		s.mu.Unlock()
		if settle, err = c.Claim(ctx, next, nil); err == nil {
			return avoid, settle, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		avoid = append(avoid, next)
	}
	return nil, nil, claimed(err)
}

func claimed(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", machine.ErrNoRoom, err)
	}
	return err
}

// settled makes a claim good, if there was one.
func (s *Server) settled(job string, settle func() error) {
	if settle == nil {
		return
	}
	if err := settle(); err != nil {
		s.tell(fmt.Errorf("job %s: its checkpoints: %w", job, err))
	}
}
