// Package jobs has what all callers of a coordinator's Jobs service share: following a job, the
// names of its states, and the part of its status that a model keeps.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/human"
	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
)

// Watch calls show for each change of a job until the job has ended, and returns its last status
// with the whole trace. If the coordinator goes away it is called again for as long as patience
// (0: not at all), counted from the last change. An error of show ends it.
func Watch(ctx context.Context, jobs taxonv1.JobsClient, job string, patience time.Duration, show func(*taxonv1.JobStatus) error) (*taxonv1.JobStatus, error) {
	var last *taxonv1.JobStatus
	var trace []*taxonv1.SweepRecord
	var shown error
	once := func() error {
		stream, err := jobs.Watch(ctx, &taxonv1.StatusRequest{Job: job})
		if err != nil {
			return err
		}
		for {
			st, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return status.Error(codes.Unavailable, "the coordinator ended before the job did")
			}
			if err != nil {
				return err
			}
			for _, r := range st.GetTrace() {
				if n := len(trace); n == 0 || r.GetSweep() > trace[n-1].GetSweep() {
					trace = append(trace, r)
				}
			}
			last = st
			if shown = show(st); shown != nil || st.GetState().Ended() {
				return shown
			}
		}
	}
	for {
		before := last
		away := func(err error) bool {
			return patience > 0 && shown == nil && status.Code(err) == codes.Unavailable
		}
		err := pause.Retry(ctx, patience, once, func(err error) bool { return away(err) && last == before })
		if err == nil {
			last.Trace = trace
			return last, nil
		}
		if !away(err) || last == before || ctx.Err() != nil {
			return nil, err
		}
	}
}

// IsCancelled says whether an error is a cancellation, of this process or of a service.
func IsCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
}

// StateName is a job's state in the user's words.
func StateName(s taxonv1.JobState) string { return word(s, "JOB_STATE_") }

// word is the lower-case name of an enumeration's value without its prefix.
func word(value fmt.Stringer, prefix string) string {
	name, known := strings.CutPrefix(value.String(), prefix)
	if !known || name == "UNSPECIFIED" {
		return "unknown"
	}
	return strings.ToLower(name)
}

// StateOf is a job's state in the user's words: "discarded" if its values were discarded.
func StateOf(s taxonv1.JobState, k *taxonv1.Kept) string {
	if k.GetDiscarded() {
		return "discarded"
	}
	return StateName(s)
}

// MemberState is a worker's or shard's state in the user's words.
func MemberState(s taxonv1.MemberState) string { return word(s, "MEMBER_STATE_") }

// StatusLine is a job's state in one line.
func StatusLine(st *taxonv1.JobStatus) string {
	t := st.GetTasks()
	line := fmt.Sprintf("%s  %-9s  sweep %d  %s %d/%d", st.GetJob(), StateOf(st.GetState(), st.GetKept()), st.GetSweep(), st.GetPhase(),
		t.GetDone(), t.GetDone()+t.GetRunning()+t.GetWaiting())
	if c := st.GetCertificate(); c != nil && !c.GetPrimalOnly() {
		line += "  gap " + human.Gap(c.GetGap())
	}
	if w := st.GetWaitsFor(); w != "" {
		line += "  waits for " + human.OneLine(w)
	} else if left := human.Left(st.GetEtaSeconds()); left != "" {
		line += "  ETA " + left
	}
	return line
}

// FailedAt says at which task a job failed, by the classes of that task.
func FailedAt(f *taxonv1.FailedTask) string {
	at := fmt.Sprintf("sweep %d (%s), step %d, task %d, attempt %d", f.GetSweep(), f.GetPhase(), f.GetStep(), f.GetTask(), f.GetAttempt())
	if f.GetWorker() != "" {
		at += " on worker " + f.GetWorker()
	}
	if len(f.GetNodes()) == 0 {
		return human.OneLine(at) + fmt.Sprintf(": feature range %d", f.GetRange())
	}
	return human.OneLine(at + ": classes " + strings.Join(f.GetNodes(), ", "))
}
