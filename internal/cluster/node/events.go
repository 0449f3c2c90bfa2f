package node

import (
	"context"
	"log/slog"
	"time"

	"taxon/coordinator/machine"
	"taxon/internal/cluster/secure"
)

// levels maps the levels of the machine's notices to log levels.
var levels = map[string]slog.Level{"info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// tellEvent writes what happened to the cluster into the log, with the time at which it happened.
func (p *process) tellEvent(n machine.Notice) {
	ctx, h := context.Background(), p.log.Handler()
	level := levels[n.Level]
	if !h.Enabled(ctx, level) {
		return
	}
	line := slog.NewRecord(time.Unix(0, int64(n.At)), level, n.Text, 0)
	text := func(name, value string) {
		if value != "" {
			line.AddAttrs(slog.String(name, value))
		}
	}
	number := func(name string, value uint32) { line.AddAttrs(slog.Uint64(name, uint64(value))) }
	text("job", n.Job)
	text("job_name", n.JobName)
	if n.Sweep > 0 {
		number("sweep", n.Sweep)
	}
	if n.Attempt > 0 {
		number("step", n.Step)
		number("task", n.Task)
		number("attempt", n.Attempt)
	}
	text("worker", n.Worker)
	text("worker_name", n.WorkerName)
	text("store", n.Store)
	text("by", n.By)
	text("reason", n.Reason)
	_ = h.Handle(ctx, line) // a log that can't be written is no reason to stop
}

// tellRefusal counts a refused call and logs it. Strangers may call again and again.
func (p *process) tellRefusal(r secure.Refusal) {
	p.figure.Refused(r.Code)
	p.seldom.Warn(r.Code.String()+" "+r.Call+" "+r.By+" "+r.From, "call refused", slog.String("call", r.Call),
		slog.String("code", r.Code.String()),
		slog.String("by", r.By), slog.String("from", r.From), slog.String("reason", r.Why))
}
