// Package parallel distributes a sequence of items over goroutines.
package parallel

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
)

// Threads returns n. If n is 0, it returns the number of cores.
func Threads(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// InOrder processes items in several goroutines and emits them in their original order. fill fills
// an item for reuse and returns false if there is no further one. start starts a goroutine and
// returns its function for one item. fill and emit are each called from one goroutine. The first
// error of any of them, or a fault in mapped memory, ends the call and is returned. There are at
// most two items per thread. One is being processed and one is read ahead.
func InOrder[T any](ctx context.Context, threads int, fill func(*T) (bool, error), start func() func(context.Context,
	*T) error, emit func(*T) error) error {
	type item struct {
		T    T
		done chan struct{}
	}
	free := make(chan *item, 2*threads)
	for range cap(free) {
		free <- &item{}
	}
	work, order := make(chan *item, cap(free)), make(chan *item, cap(free))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(fs.Guarded(func() error {
		defer close(work)
		defer close(order)
		for {
			var i *item
			select {
			case i = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			more, err := fill(&i.T)
			if err != nil || !more {
				return err
			}
			i.done = make(chan struct{})
			work <- i // both channels have room for all items
			order <- i
		}
	}))
	for range threads {
		g.Go(fs.Guarded(func() error {
			do := start()
			for i := range work {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(ctx, &i.T); err != nil {
					return err
				}
				close(i.done)
			}
			return nil
		}))
	}
	g.Go(fs.Guarded(func() error {
		for i := range order {
			select {
			case <-i.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := emit(&i.T); err != nil {
				return err
			}
			free <- i
		}
		return nil
	}))
	return g.Wait()
}
