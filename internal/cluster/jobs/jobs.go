// Package jobs has what all callers of a coordinator's Jobs service share: following a job, the
// names of its states, and the part of its status that a model keeps.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/retry"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// Watch calls show for each change of a job until the job has ended, and returns its last status
// with the whole trace. If the coordinator goes away it retries for as long as patience, counted
// from the last change. With zero patience it does not retry. It returns an error of show.
func Watch(ctx context.Context, jobs taxonv1.JobsClient, job string, patience time.Duration,
	show func(*taxonv1.JobStatus) error) (*taxonv1.JobStatus, error) {
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
		err := retry.Retry(ctx, patience, once, func(err error) bool { return away(err) && last == before })
		if err == nil {
			last.Trace = trace
			return last, nil
		}
		if !away(err) || last == before || ctx.Err() != nil {
			return nil, err
		}
	}
}

// IsCancelled reports whether an error is a cancellation, of this process or of a service.
func IsCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
}

// StateName returns a job's state in the user's words.
func StateName(s taxonv1.JobState) string { return word(s, "JOB_STATE_") }

// word returns the name of a value of an enumeration, in lower case and without the enumeration's
// prefix.
func word(value fmt.Stringer, prefix string) string {
	name, known := strings.CutPrefix(value.String(), prefix)
	if !known || name == "UNSPECIFIED" {
		return "unknown"
	}
	return strings.ToLower(name)
}

// StateOf returns a job's state in the user's words. The state is "discarded" if the job's values
// were discarded, and "waiting" if the job could run but waits for something.
func StateOf(s taxonv1.JobState, k *taxonv1.Kept, waits bool) string {
	switch {
	case k.GetDiscarded():
		return "discarded"
	case waits && s == taxonv1.JobState_JOB_STATE_RUNNING:
		return "waiting"
	}
	return StateName(s)
}

// Doing returns what StateOf returns, for a job's status.
func Doing(st *taxonv1.JobStatus) string {
	return StateOf(st.GetState(), st.GetKept(), st.GetWaitsFor() != "")
}

// States lists all words that StateOf may return.
func States() []string {
	return []string{"queued", "running", "waiting", "done", "failed", "cancelled", "discarded"}
}

// MemberState returns a worker's or shard's state in the user's words.
func MemberState(s taxonv1.MemberState) string { return word(s, "MEMBER_STATE_") }

// StatusLine returns a job's state in one line.
func StatusLine(st *taxonv1.JobStatus) string {
	t := st.GetTasks()
	line := fmt.Sprintf("%s  %-9s  sweep %d  %s %d/%d", st.GetJob(), Doing(st), st.GetSweep(), st.GetPhase(),
		t.GetDone(), t.GetDone()+t.GetRunning()+t.GetWaiting())
	if c := st.GetCertificate(); c != nil && !c.GetPrimalOnly() {
		line += "  gap " + format.Gap(c.GetGap())
	}
	if w := st.GetWaitsFor(); w != "" {
		line += "  waits for " + format.OneLine(w)
	} else if left := ETA(st); left != "" {
		line += "  ETA " + left
	}
	return line
}

// ETA returns how long a job will still take, as a range. It is empty if that is not known.
func ETA(st *taxonv1.JobStatus) string {
	return format.Between(st.GetEtaLowSeconds(), st.GetEtaHighSeconds())
}

// MethodText returns a job's method with its options, each as NAME VALUE. The stop criteria are
// first.
func MethodText(st *taxonv1.JobStatus) string {
	o := st.GetOptions()
	var first, rest []string
	for _, v := range shown(o) {
		text := strings.ReplaceAll(v.GetName(), "_", "-") + " " + format.OneLine(v.GetValue())
		switch v.GetName() {
		case "gap", "max_sweeps", "max_seconds":
			first = append(first, text)
		default:
			rest = append(rest, text)
		}
	}
	slices.Sort(first)
	slices.Sort(rest)
	return strings.Join(slices.Concat([]string{o.GetMethod()}, first, rest), ", ")
}

// FailedAt names the task at which a job failed, by the classes that the task is about.
func FailedAt(f *taxonv1.FailedTask) string {
	at := fmt.Sprintf("sweep %d (%s), step %d, task %d, attempt %d", f.GetSweep(), f.GetPhase(), f.GetStep(), f.GetTask(),
		f.GetAttempt())
	if f.GetWorker() != "" {
		at += " on worker " + f.GetWorker()
	}
	if len(f.GetNodes()) == 0 {
		return format.OneLine(at) + fmt.Sprintf(": feature range %d", f.GetRange())
	}
	return format.OneLine(at + ": classes " + strings.Join(f.GetNodes(), ", "))
}
