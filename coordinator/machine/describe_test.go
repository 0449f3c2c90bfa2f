package machine_test

import (
	"fmt"
	"strings"

	"taxon/coordinator/machine"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

// describe writes an action as a line; empty: of no interest in a scenario.
func describe(a machine.Action) string {
	switch a := a.(type) {
	case machine.Persist:
		return describeRecord(a.Record)
	case machine.Registered:
		return "registered " + a.Worker
	case machine.Grant:
		return "grant " + describeLease(a.Lease)
	case machine.Lost:
		if len(a.Leases) == 0 {
			return "all held"
		}
		var out []string
		for _, l := range a.Leases {
			out = append(out, fmt.Sprint(l.Epoch))
		}
		return "no longer held: " + strings.Join(out, " ")
	case machine.WorkerDrained:
		return "dismissed"
	case machine.LoadJob:
		return "load " + a.Job
	case machine.Submitted:
		if len(a.Displaced) > 0 {
			return "would displace " + strings.Join(a.Displaced, " ")
		}
		return ""
	case machine.Warned:
		return "warned: " + a.Text
	case machine.Wake:
		return ""
	case machine.Accepted:
		return "accepted"
	case machine.Refused:
		return "refused: " + a.Err.Error()
	case machine.CommitStep:
		return fmt.Sprintf("commit %s step %d attempts %v", a.Job, a.Step, a.Attempts)
	case machine.DropSteps:
		return fmt.Sprintf("drop %s below %d but %v", a.Job, a.Before, a.Keep)
	case machine.SaveJob:
		return fmt.Sprintf("save %s sweep %d with steps %v", a.Job, a.Sweep, a.Keep)
	case machine.DigestWeights:
		return "digest " + a.Job
	case machine.EvaluateWeights:
		return fmt.Sprintf("evaluate %s sweep %d step %d attempts %v", a.Job, a.Sweep, a.Step, a.Attempts)
	case machine.Ended:
		return fmt.Sprintf("ended %s %s", a.Job, strings.ToLower(strings.TrimPrefix(a.State.String(), "JOB_STATE_")))
	}
	return ""
}

func describeNotice(n machine.Notice) string {
	out := n.Level + " " + n.Text
	for _, part := range []struct{ name, value string }{{"job", n.Job}, {"worker", n.Worker},
		{"worker_name", n.WorkerName}, {"store", n.Store}, {"by", n.By}} {
		if part.value != "" {
			out += " " + part.name + "=" + part.value
		}
	}
	if n.Attempt > 0 {
		out += fmt.Sprintf(" step=%d task=%d attempt=%d", n.Step, n.Task, n.Attempt)
	}
	if n.Reason != "" {
		out += ": " + n.Reason
	}
	return out
}

func describeRecord(r machine.Record) string {
	out := "journal " + string(r.Kind)
	for _, part := range []string{r.Job, r.Worker} {
		if part != "" {
			out += " " + part
		}
	}
	if r.Step > 0 {
		out += fmt.Sprintf(" step %d task %d epoch %d", r.Step, r.Task, r.Epoch)
	}
	if r.Reason != "" {
		out += ": " + r.Reason
	}
	return out
}

func describeLease(l *taxonv1.Lease) string {
	out := fmt.Sprintf("%s sweep %d step %d task %d attempt %d epoch %d: ", l.Job, l.Sweep, l.Step, l.Task, l.Attempt,
		l.Epoch)
	return out + l.Op + describeTask(l)
}

func describeTask(l *taxonv1.Lease) string {
	m, r := machinetest.Params(l)
	if l.Items == rr.Blocks {
		return fmt.Sprintf(" block %d epochs %d price %v", l.Item, m.Epochs, m.Price)
	}
	return fmt.Sprintf(" range %d rule %q", l.Item, r.Rule)
}

func stateName(s taxonv1.JobState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "JOB_STATE_"))
}

// describeStep tells what a step was from its last lease and its commit.
func describeStep(l *taxonv1.Lease, c machine.CommitStep) string {
	out := fmt.Sprintf("sweep %d step %d: %d tasks, the last %s", l.Sweep, c.Step, len(c.Attempts), l.Op)
	m, r := machinetest.Params(l)
	if l.Items == rr.Blocks {
		return out + fmt.Sprintf(" epochs %d price %v beta %.3f", m.Epochs, m.Price, m.Beta)
	}
	return out + fmt.Sprintf(" rule %q set %d certify %v beta %.3f", r.Rule, r.Set, r.Certify, r.Beta)
}
