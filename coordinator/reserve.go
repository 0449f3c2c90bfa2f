package coordinator

import (
	"context"
	"fmt"

	"taxon/coordinator/machine"
)

// maxAvoided bounds the ids that are passed over for one job.
const maxAvoided = 10000

// reserve asks the checkpointer whether it can save a job: under the id that is wanted, unless
// the machine has a job of that id, or under the next free one. avoid are the ids that were
// passed over. confirm is to be called when the job was accepted.
func (s *Server) reserve(ctx context.Context, id string, state []byte) (avoid []string, confirm func() error, err error) {
	c, ok := s.config.Checkpointer.(Reserver)
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
		confirm, err = c.Reserve(ctx, id, state)
		return nil, confirm, noRoom(err)
	}
	for len(avoid) < maxAvoided {
		s.mu.Lock()
		next := s.machine.FreeID(avoid)
		s.mu.Unlock()
		if confirm, err = c.Reserve(ctx, next, nil); err == nil {
			return avoid, confirm, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		avoid = append(avoid, next)
	}
	return nil, nil, noRoom(err)
}

func noRoom(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", machine.ErrNoRoom, err)
	}
	return err
}

// confirm confirms a reservation, if there was one.
func (s *Server) confirm(job string, confirm func() error) {
	if confirm == nil {
		return
	}
	if err := confirm(); err != nil {
		s.warn(fmt.Errorf("job %s: its checkpoints: %w", job, err))
	}
}
