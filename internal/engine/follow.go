package engine

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
)

// Follow shows each (nil: nobody) a job's states until it has ended, and returns the last,
// with the whole trace. A context that is cancelled ends the watching, not the job.
func (e *Engine) Follow(ctx context.Context, job string, each func(*taxonv1.JobStatus)) (*taxonv1.JobStatus, error) {
	watching, done := context.WithCancel(ctx)
	defer done()
	stream, err := e.Jobs.Watch(watching, &taxonv1.StatusRequest{Job: job})
	if err != nil {
		return nil, Plain(err)
	}
	var trace []*taxonv1.SweepRecord
	for {
		st, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the coordinator ended before the job did")
		}
		if err != nil {
			return nil, Plain(err)
		}
		trace = append(trace, st.GetTrace()...)
		if each != nil {
			each(st)
		}
		switch st.GetState() {
		case taxonv1.JobState_JOB_STATE_DONE, taxonv1.JobState_JOB_STATE_FAILED, taxonv1.JobState_JOB_STATE_CANCELLED:
			st.Trace = trace
			return st, nil
		}
	}
}

// Plain takes the transport's wording off an error of a service.
func Plain(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return errors.New(s.Message())
	}
	return err
}
