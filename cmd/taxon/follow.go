package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
)

// watch calls show for each change of a job until it has ended, and returns its last
// status with the whole trace. A coordinator that goes away is called again.
func (c *client) watch(ctx context.Context, job string, show func(*taxonv1.JobStatus) error) (*taxonv1.JobStatus, error) {
	var last *taxonv1.JobStatus
	var trace []*taxonv1.SweepRecord
	var shown error
	once := func() error {
		stream, err := c.jobs.Watch(ctx, &taxonv1.StatusRequest{Job: job})
		if err != nil {
			return err
		}
		for {
			st, err := stream.Recv()
			if errors.Is(err, io.EOF) && last != nil && hasEnded(last.GetState()) {
				return nil
			}
			if errors.Is(err, io.EOF) {
				return status.Error(codes.Unavailable, "the coordinator ended")
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
			if shown = show(st); shown != nil {
				return shown
			}
			if hasEnded(st.GetState()) {
				return nil
			}
		}
	}
	for {
		before := last
		err := pause.Insist(ctx, c.dialer.Patience, once, func(err error) bool {
			return shown == nil && status.Code(err) == codes.Unavailable && last == before
		})
		switch {
		case err == nil:
			last.Trace = trace
			return last, nil
		case shown != nil:
			return nil, shown
		case status.Code(err) != codes.Unavailable || last == before || ctx.Err() != nil:
			return nil, c.fail(err)
		}
	}
}

// follow shows a job's progress until it has ended; see is told of it, too.
func (c *client) follow(ctx context.Context, a *app, job string, see func(*taxonv1.JobStatus)) (*taxonv1.JobStatus, error) {
	p := a.ui.Start(job+": sweep", 0)
	defer p.Done()
	return c.watch(ctx, job, func(st *taxonv1.JobStatus) error {
		showProgress(p, st)
		see(st)
		return nil
	})
}

// showProgress puts sweep, tasks, gap and the time left on the progress line.
func showProgress(p *progress, st *taxonv1.JobStatus) {
	var extra []string
	if n := st.GetQueuePosition(); n > 0 {
		extra = append(extra, fmt.Sprintf("%d in the queue", n))
	}
	if k := st.GetTasks(); k != nil {
		if n := k.GetDone() + k.GetRunning() + k.GetWaiting(); n > 0 {
			extra = append(extra, fmt.Sprintf("%s %d/%d", st.GetPhase(), k.GetDone(), n))
		}
	}
	if c := st.GetCertificate(); c != nil && !c.GetPrimalOnly() {
		extra = append(extra, fmt.Sprintf("gap %s of %.0e", formatGap(c.GetGap()), st.GetOptions().GetGap()))
	}
	if n := st.GetWorkersLost(); n > 0 {
		extra = append(extra, counted(int64(n), "worker lost", "workers lost"))
	}
	if w := st.GetWaitsFor(); w != "" {
		extra = append(extra, "waits for "+oneLine(w))
	} else if left := formatLeft(st.GetEtaSeconds()); left != "" {
		extra = append(extra, "ETA "+left)
	}
	p.Set(int64(st.GetSweep())+1, strings.Join(extra, "  "))
}

// printLine writes v as a JSON document in one line.
func (a *app) printLine(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", data)
	return err
}
