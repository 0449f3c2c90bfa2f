package machine

import (
	"cmp"
	"math"
	"strings"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// etaPoints is the number of certificates that the remaining time is extrapolated from:
// enough to level out momentum's waves, few enough to follow the curve's bend.
const etaPoints = 4

// Status describes a job at a time; trace records up to sweep `after` are left out.
func (m *Machine) Status(id string, now Tick, after uint32) (*taxonv1.JobStatus, error) {
	j, err := m.known(id)
	if err != nil {
		return nil, err
	}
	now = max(now, m.now)
	p := j.progress()
	s := &taxonv1.JobStatus{
		Job: j.ID, State: j.State, Sweep: j.Committed, Phase: j.phase(), Certificate: certificateMessage(p.Certificate),
		Tasks: j.counts(), WorkersLost: j.WorkersLost, EtaSeconds: j.eta(now), Error: j.Error,
		StoppedBy: j.stoppedBy(), Seconds: j.spentAt(now).Seconds(), CpuSeconds: j.CPUSeconds,
		FinalStep: j.FinalStep, FinalAttempts: j.FinalAttempts, Nodes: uint32(j.plan.Nodes), Terminals: uint32(j.plan.Terminals),
		BytesRead: j.BytesRead, BytesWritten: j.BytesWritten, SweepBytesRead: j.SweepRead, SweepBytesWritten: j.SweepWritten,
		QueuePosition: m.queuePosition(j), SubmittedUnixMs: j.Submitted.Milliseconds(), StartedUnixMs: j.Started.Milliseconds(),
		EndedUnixMs: j.Ended.Milliseconds(), Replicas: max(j.Replicas, 1), Resumable: j.resumable(), Name: j.Name,
		Speculated: j.Speculated, Remade: j.Recomputed, Rollbacks: j.Rollbacks, Failed: j.Failed.message(j.Error),
		Options: j.spec.GetOptions(), Instances: j.spec.GetData().GetInstances(), Features: j.spec.GetData().GetFeatures(),
		Report: p.Report,
	}
	s.WaitsFor, s.Kept = m.waitsFor(j), m.kept(j)
	if j.Digest != nil && j.State == taxonv1.JobState_JOB_STATE_DONE {
		s.WeightsSha256, s.Nonzeros, s.PeakRssBytes = j.Digest.WeightsSHA256, j.spec.GetData().GetNonzeros(), j.Digest.PeakRSSBytes
	}
	if b := j.betterSweep(); b != nil && j.State == taxonv1.JobState_JOB_STATE_DONE {
		s.Better = b.message()
	}
	for n := range j.CriteriaBefore {
		s.CapsBefore = append(s.CapsBefore, j.CriteriaBefore[n].message())
	}
	for _, r := range j.Trace {
		if r.Sweep > after {
			s.Trace = append(s.Trace, r.message())
		}
	}
	return s, nil
}

// PhaseDigest is the phase of a job whose weights are all there and are being digested.
const PhaseDigest = "digest"

// phase says what a job does just now.
func (j *job) phase() string {
	switch {
	case j.stage == stageSave:
		return "checkpoint"
	case j.stage == stageRollBack:
		return "rollback"
	case j.stage == stageDigest:
		return PhaseDigest
	case len(j.recomputes) > 0:
		return "recompute"
	case j.step != nil:
		return j.step.Phase
	case j.State == taxonv1.JobState_JOB_STATE_QUEUED:
		return "queued"
	}
	return "end"
}

// waitsFor says what keeps a running job from going on; "": nothing.
func (m *Machine) waitsFor(j *job) string {
	if j.stage == stageDigest && j.awayWhy != "" {
		return "the digest of its weights, which can't be made yet: " + j.awayWhy
	}
	if !j.running() {
		return ""
	}
	if away := m.blocked(j); away != nil {
		return "store shards that are away: " + strings.Join(away, ", ")
	}
	switch {
	case m.anyFit(j) && j.awayWhy != "":
		return "the store, which a task could not use: " + j.awayWhy
	case m.anyFit(j):
		return ""
	case m.slots() > 0:
		return "a worker that can do its tasks: none that is up can, `taxon logs` says why"
	}
	return "a worker: none is up"
}

func (j *job) counts() *taxonv1.TaskCounts {
	c := &taxonv1.TaskCounts{Retried: j.Retried}
	if s := j.step; s != nil {
		c.Done, c.Running = uint32(s.done), uint32(s.live)
		c.Waiting = uint32(len(s.tasks) - s.done - s.live)
	}
	return c
}

// certificateMessage is a certificate as a message; nil: there is none.
func certificateMessage(c *method.Certificate) *taxonv1.Certificate {
	switch {
	case c == nil:
		return nil
	case c.PrimalOnly:
		return &taxonv1.Certificate{Objective: c.Objective, PrimalOnly: true, Kind: cmp.Or(c.Kind, method.Stationarity)}
	}
	return &taxonv1.Certificate{Objective: c.Objective, Dual: c.Dual, Gap: c.Gap, Kind: cmp.Or(c.Kind, method.Gap)}
}

func (r *traceRecord) message() *taxonv1.SweepRecord {
	s := &taxonv1.SweepRecord{Sweep: r.Sweep, Phase: r.Phase, Seconds: r.Seconds}
	s.Certificate = certificateMessage(r.Certificate)
	return s
}

// eta estimates the seconds until the job ends: it extends the line through the logarithms of
// the last gaps over time down to the tolerance, and stops at max_sweeps and max_seconds. 0: not
// known.
func (j *job) eta(now Tick) float64 {
	if !j.running() {
		return 0
	}
	spent, p := j.spentAt(now).Seconds(), j.progress()
	eta := math.Inf(1)
	if x, y := j.gaps(); len(x) > 1 {
		if slope, mean, at := fit(x, y); slope < 0 {
			eta = at + (math.Log10(p.Tolerance)-mean)/slope - spent
		}
	}
	if limit := j.spec.GetOptions().GetMaxSeconds(); limit > 0 {
		eta = min(eta, limit-spent)
	}
	if cap := p.MaxSweeps; cap > 0 && j.Committed > 0 {
		eta = min(eta, float64(cap-min(j.Committed, cap))*spent/float64(j.Committed))
	}
	if math.IsInf(eta, 0) || math.IsNaN(eta) {
		return 0
	}
	return max(eta, 0)
}

// gaps lists seconds and log10 gap of the last certificates, at most etaPoints.
func (j *job) gaps() (x, y []float64) {
	for i := len(j.Trace) - 1; i >= 0 && len(x) < etaPoints; i-- {
		if c := j.Trace[i].Certificate; c != nil && c.Gap > 0 && !c.PrimalOnly {
			x, y = append(x, j.Trace[i].Seconds), append(y, math.Log10(c.Gap))
		}
	}
	return x, y
}

// fit is the least-squares line through (x, y): slope, and a point (at, mean) on it.
// Points at one x have slope 0.
func fit(x, y []float64) (slope, mean, at float64) {
	n := float64(len(x))
	for i := range x {
		at += x[i] / n
		mean += y[i] / n
	}
	var xx, xy float64
	for i := range x {
		xx += (x[i] - at) * (x[i] - at)
		xy += (x[i] - at) * (y[i] - mean)
	}
	if xx == 0 {
		return 0, mean, at
	}
	return xy / xx, mean, at
}
