package scoring

import (
	"context"
	"errors"
	"fmt"
	"io"

	"taxon/internal/model/parallel"
)

// Stream predicts a whole input with several goroutines in bounded memory.
//
// next fills an empty batch, and returns io.EOF with the last rows or after them. emit gets every
// batch with its result, in input order, and must not retain either. Each of the two is called from
// one goroutine. The first error of any side ends the stream and is returned.
func (p *Predictor) Stream(ctx context.Context, threads int, next func(*Batch) error,
	emit func(*Batch, *Result) error) error {
	if threads < 1 {
		return fmt.Errorf("predict: %d threads: must be at least 1", threads)
	}
	type job struct {
		batch  Batch
		result Result
	}
	first, ended := int64(0), false
	err := parallel.InOrder(ctx, threads, func(j *job) (bool, error) {
		j.batch.Reset()
		j.batch.limit, j.batch.First = p.batchRows(), first
		for !ended && j.batch.Rows() == 0 {
			err := next(&j.batch)
			if ended = errors.Is(err, io.EOF); err != nil && !ended {
				return false, err
			}
		}
		first += int64(j.batch.Rows())
		return j.batch.Rows() > 0, nil
	}, func() func(context.Context, *job) error {
		s := p.NewScorer()
		return func(_ context.Context, j *job) error { return s.Predict(&j.batch, &j.result) }
	}, func(j *job) error { return emit(&j.batch, &j.result) })
	if err != nil {
		return err
	}
	return p.m.Whole()
}
