package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
)

// Threads is how many threads are meant by n: n itself, and by 0 one for each core.
func Threads(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Stream predicts a whole input with `threads` goroutines in bounded memory.
//
// next fills an empty batch and returns io.EOF with or after the last rows; emit gets every batch with its
// result, in input order, and may keep neither. Both are called from one goroutine each.
// The first error of any side ends the stream and is returned.
func (p *Predictor) Stream(ctx context.Context, threads int, next func(*Batch) error, emit func(*Batch, *Result) error) error {
	if threads < 1 {
		return fmt.Errorf("predict: %d threads: must be at least 1", threads)
	}
	type job struct {
		batch  Batch
		result Result
		done   chan struct{}
	}
	// Twice as many batches as threads: one in work, one read ahead.
	free := make(chan *job, 2*threads)
	for range cap(free) {
		free <- &job{}
	}
	work, order := make(chan *job, cap(free)), make(chan *job, cap(free))
	g, ctx := errgroup.WithContext(ctx)

	g.Go(func() error { // reads
		defer close(work)
		defer close(order)
		first := int64(0)
		for {
			var j *job
			select {
			case j = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			j.batch.Reset()
			j.batch.limit = p.batchRows()
			j.batch.First, j.done = first, make(chan struct{})
			err := next(&j.batch)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if rows := j.batch.Rows(); rows > 0 {
				first += int64(rows)
				work <- j // both have room for every job there is
				order <- j
			}
			if err != nil {
				return nil
			}
		}
	})
	for range threads {
		g.Go(func() (err error) { // scores
			defer fs.CatchFault(&err)()
			s := p.NewScorer()
			for j := range work {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := s.Predict(&j.batch, &j.result); err != nil {
					return err
				}
				close(j.done)
			}
			return nil
		})
	}
	g.Go(func() error { // writes, in order
		for j := range order {
			select {
			case <-j.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := emit(&j.batch, &j.result); err != nil {
				return err
			}
			free <- j
		}
		return nil
	})
	return g.Wait()
}
