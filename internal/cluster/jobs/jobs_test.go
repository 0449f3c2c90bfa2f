package jobs

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
)

// script is a coordinator whose calls of Watch end as they are told: each is what the stream
// brings, an error after it, or the stream's end.
type script struct {
	taxonv1.JobsClient
	calls [][]any
}

type stream struct {
	grpc.ServerStreamingClient[taxonv1.JobStatus]
	brings []any
}

func (s *script) Watch(context.Context, *taxonv1.StatusRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[taxonv1.JobStatus], error) {
	if len(s.calls) == 0 {
		return nil, status.Error(codes.Unavailable, "nobody there")
	}
	next := s.calls[0]
	s.calls = s.calls[1:]
	return &stream{brings: next}, nil
}

func (s *stream) Recv() (*taxonv1.JobStatus, error) {
	if len(s.brings) == 0 {
		return nil, io.EOF
	}
	next := s.brings[0]
	s.brings = s.brings[1:]
	if err, ok := next.(error); ok {
		return nil, err
	}
	return next.(*taxonv1.JobStatus), nil
}

func at(state taxonv1.JobState, sweeps ...uint32) *taxonv1.JobStatus {
	st := &taxonv1.JobStatus{State: state}
	for _, n := range sweeps {
		st.Trace = append(st.Trace, &taxonv1.SweepRecord{Sweep: n})
	}
	return st
}

func TestWatch(t *testing.T) {
	const running, done = taxonv1.JobState_JOB_STATE_RUNNING, taxonv1.JobState_JOB_STATE_DONE
	away := status.Error(codes.Unavailable, "gone")
	full := errors.New("the screen is full")
	for name, c := range map[string]struct {
		calls    [][]any
		patience time.Duration
		full     bool // show fails
		shown    int
		want     error
	}{
		"to its end": {calls: [][]any{{at(running, 1), at(done, 2, 3)}}, shown: 2},
		"a coordinator replaced": {calls: [][]any{{at(running, 1, 2), away}, {away}, {at(running, 1, 2)},
			{at(done, 1, 2, 3)}}, patience: time.Minute, shown: 3},
		"no patience":         {calls: [][]any{{at(running, 1), away}, {at(done, 1)}}, shown: 1, want: away},
		"too little patience": {calls: [][]any{{at(running, 1)}}, patience: time.Millisecond, shown: 1, want: away},
		"another error": {calls: [][]any{{at(running), status.Error(codes.NotFound, "no such job")}},
			patience: time.Minute, shown: 1, want: status.Error(codes.NotFound, "")},
		"an error of show": {calls: [][]any{{at(running)}}, patience: time.Minute, full: true, shown: 1, want: full},
	} {
		shown := 0
		st, err := Watch(t.Context(), &script{calls: c.calls}, "j", c.patience, func(*taxonv1.JobStatus) error {
			shown++
			if c.full {
				return full
			}
			return nil
		})
		if shown != c.shown || (err == nil) != (c.want == nil) || status.Code(err) != status.Code(c.want) || c.full &&
			!errors.Is(err, full) {
			t.Errorf("%s: shown %d times, %v; want %d, %v", name, shown, err, c.shown, c.want)
		}
		if err != nil {
			continue
		}
		if len(st.GetTrace()) != 3 || st.GetState() != done {
			t.Errorf("%s: %v", name, st)
		}
		for i, r := range st.GetTrace() {
			if r.GetSweep() != uint32(i+1) {
				t.Errorf("%s: row %d of the trace is of sweep %d", name, i+1, r.GetSweep())
			}
		}
	}
}
