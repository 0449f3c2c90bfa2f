package jobs

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/model"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// Status is the document of `taxon status --json`.
type Status struct {
	Job         string      `json:"job"`
	Owner       string      `json:"owner,omitempty"` // the submitter, by certificate or token
	Name        string      `json:"name,omitempty"`
	State       string      `json:"state"`
	Method      string      `json:"method"`
	Options     jsonOptions `json:"options"`                  // given ones and defaults
	Submitted   string      `json:"submitted"`                // RFC 3339, UTC
	Started     string      `json:"started,omitempty"`        // empty before that
	Ended       string      `json:"ended,omitempty"`          // empty before that
	StoppedBy   string      `json:"stopped_by,omitempty"`     // of a job that has ended
	Weights     string      `json:"weights_sha256,omitempty"` // of a job that is done
	Phase       string      `json:"phase"`
	Sweep       uint32      `json:"sweep"` // the highest that is committed
	Gap         *float64    `json:"gap"`   // null before the first certificate
	Tasks       Tasks       `json:"tasks"`
	WorkersLost uint32      `json:"workers_lost"`
	// Recomputed counts tasks that were run again because the store had lost what they wrote.
	Recomputed uint32 `json:"recomputed"`
	// Duplicates counts second attempts at stragglers.
	Duplicates uint32 `json:"duplicates"`
	// Replicas is the number of copies of each value in the store.
	Replicas uint32 `json:"replicas"`
	// BytesRead counts the bytes that tasks read from the store.
	BytesRead    uint64 `json:"bytes_read"`
	BytesWritten uint64 `json:"bytes_written"`
	// Seconds is the training time so far, without IdleSeconds.
	Seconds float64 `json:"seconds"`
	// IdleSeconds is the time in which the job could do nothing.
	IdleSeconds float64 `json:"idle_seconds"`
	Rollbacks   uint32  `json:"rollbacks"`
	// ETASeconds is the estimated time left. It is null if it can't be estimated, or if the job
	// waits. It is the middle of a range that begins at ETALow.
	ETASeconds *float64 `json:"eta_seconds"`
	ETALow     *float64 `json:"eta_low_seconds"`
	ETAHigh    *float64 `json:"eta_high_seconds"`
	Error      string   `json:"error"`
	// WaitsFor says why a running job makes no progress.
	WaitsFor string `json:"waits_for,omitempty"`
	// Report is the training's report. It is nil until the job is finished.
	Report *model.Report `json:"report"`

	CapsBefore []model.PastCaps `json:"caps_before,omitempty"`
}

// Tasks counts the tasks of the current step. Retried counts over the whole job.
type Tasks struct {
	Done    uint32 `json:"done"`
	Running uint32 `json:"running"`
	Waiting uint32 `json:"waiting"`
	Retried uint32 `json:"retried"`
}

// StatusOf returns a status as a document.
func StatusOf(st *taxonv1.JobStatus) Status {
	t := st.GetTasks()
	d := Status{
		Job: st.GetJob(), Owner: st.GetOwner(), Name: st.GetName(), State: Doing(st), Phase: st.GetPhase(),
		Sweep: st.GetSweep(), Gap: gapOf(st.GetCertificate()),
		Tasks:       Tasks{t.GetDone(), t.GetRunning(), t.GetWaiting(), t.GetRetried()},
		WorkersLost: st.GetWorkersLost(), Recomputed: st.GetRemade(), Duplicates: st.GetSpeculated(),
		Replicas:  st.GetReplicas(),
		BytesRead: st.GetBytesRead(), BytesWritten: st.GetBytesWritten(), Seconds: st.GetSeconds(),
		Rollbacks: st.GetRollbacks(), Error: st.GetError(), Report: ReportOf(st),
		CapsBefore: CapsBefore(st), WaitsFor: st.GetWaitsFor(), ETASeconds: etaOf(st.GetEtaSeconds()),
		ETALow: etaOf(st.GetEtaLowSeconds()), ETAHigh: etaOf(st.GetEtaHighSeconds()), IdleSeconds: st.GetIdleSeconds(),
		Method: st.GetOptions().GetMethod(), Options: jsonOptions{st.GetOptions()}, StoppedBy: st.GetStoppedBy(),
		Weights:   st.GetWeightsSha256(),
		Submitted: when(st.GetSubmittedUnixMs()), Started: when(st.GetStartedUnixMs()), Ended: when(st.GetEndedUnixMs()),
	}
	if st.GetState().Ended() {
		d.ETASeconds, d.ETALow, d.ETAHigh = &st.EtaSeconds, &st.EtaSeconds, &st.EtaSeconds
	}
	return d
}

// gapOf returns the gap of a certificate, or nil if the certificate does not bound it.
func gapOf(c *taxonv1.Certificate) *float64 {
	if c == nil || c.GetPrimalOnly() {
		return nil
	}
	return &c.Gap
}

// etaOf returns an estimate of the seconds left, or nil if there is none.
func etaOf(seconds float64) *float64 {
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return nil
	}
	return &seconds
}

// Line is a job in `taxon jobs --json`.
type Line struct {
	Job  string `json:"job"`
	Name string `json:"name,omitempty"`
	// Owner identifies the submitter, by certificate or token.
	Owner      string   `json:"owner,omitempty"`
	State      string   `json:"state"`
	Phase      string   `json:"phase"`
	Sweep      uint32   `json:"sweep"`
	Gap        *float64 `json:"gap"`
	Submitted  string   `json:"submitted"` // RFC 3339, UTC
	ETASeconds *float64 `json:"eta_seconds"`
	ETALow     *float64 `json:"eta_low_seconds"`
	ETAHigh    *float64 `json:"eta_high_seconds"`
	Error      string   `json:"error"`
	Resumable  bool     `json:"resumable"`
	Exportable bool     `json:"exportable"`
	// Values is kept, dropped or discarded.
	Values string `json:"values"`
	// Until is the latest time at which the values are dropped, in RFC 3339 and UTC. It is empty if
	// that is not decided, or if they are gone.
	Until string `json:"values_until"`
	// Copies is how many copies each value should have. It is zero if the values are gone.
	Copies uint32 `json:"copies"`
	// There is the least number of copies that any value has on stores that are up and repaired.
	There uint32 `json:"copies_there"`
	// After is the number of further jobs after whose end the values are dropped. It is zero if
	// that is not decided, or if they are gone.
	After uint32 `json:"values_jobs"`
}

// LineOf returns a job of a list as a document.
func LineOf(j *taxonv1.JobInfo) Line {
	l := Line{Job: j.GetJob(), Name: j.GetName(), Owner: j.GetOwner(), State: StateOf(j.GetState(), j.GetKept(),
		j.GetWaits()), Phase: j.GetPhase(), Sweep: j.GetSweep(), Gap: gapOf(j.GetCertificate()),
		Submitted: utc(j.GetSubmittedUnixMs(), time.RFC3339), ETASeconds: etaOf(j.GetEtaSeconds()),
		ETALow: etaOf(j.GetEtaLowSeconds()), ETAHigh: etaOf(j.GetEtaHighSeconds()), Error: j.GetError(),
		Resumable: j.GetResumable(), Exportable: j.GetExportable(), Values: "kept", Copies: j.GetCopies(),
		There: j.GetCopiesThere()}
	switch k := j.GetKept(); {
	case k.GetDropped():
		l.Values = KeptText(k)
	case k.GetUntilUnixMs() != 0:
		l.Until, l.After = utc(k.GetUntilUnixMs(), time.RFC3339), k.GetJobs()
	}
	return l
}

// jsonOptions are a job's options as JSON.
type jsonOptions struct{ *taxonv1.Options }

// MarshalJSON writes the method and the options that are not zero, by their names in the job.
func (o jsonOptions) MarshalJSON() ([]byte, error) {
	out := map[string]json.RawMessage{}
	if o.Options != nil {
		out["method"] = method.Encode(o.GetMethod())
	}
	for _, v := range shown(o.Options) {
		out[v.GetName()] = method.Encode(v.GetValue())
	}
	for _, p := range registry.Of(o.GetMethod()) {
		key := strings.ToLower(p.WireKey())
		if text, err := p.Parse(o.Value(key)); err == nil && out[key] != nil {
			out[key] = p.JSON(text)
		}
	}
	return json.Marshal(out)
}

// shown returns the options of a job that are not zero.
func shown(o *taxonv1.Options) []*taxonv1.OptionValue {
	return slices.DeleteFunc(slices.Clone(o.GetOwn()), func(v *taxonv1.OptionValue) bool { return v.GetValue() == "0" })
}

// when returns a moment in RFC 3339. It is empty if the moment has not come.
func when(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return utc(unixMS, time.RFC3339)
}

func utc(unixMS int64, layout string) string { return time.UnixMilli(unixMS).UTC().Format(layout) }

// fewJobs is the largest number of further jobs that KeptText mentions.
const fewJobs = 10

// ValuesText returns KeptText. If values of the job have too few copies, it adds a note that says
// so.
func ValuesText(j *taxonv1.JobInfo) string {
	text := KeptText(j.GetKept())
	if j.GetCopiesThere() < j.GetCopies() {
		text += fmt.Sprintf("; only %d of %s", j.GetCopiesThere(), format.Counted(int64(j.GetCopies()), "copy", "copies"))
	}
	return text
}

// KeptText says how long the values of a job are kept.
func KeptText(k *taxonv1.Kept) string {
	switch {
	case k == nil:
		return "kept"
	case k.GetDiscarded():
		return "discarded"
	case k.GetDropped():
		return "dropped"
	case k.GetUntilUnixMs() == 0:
		return "until it is discarded"
	}
	text := "until " + utc(k.GetUntilUnixMs(), time.DateOnly)
	if k.GetJobs() <= fewJobs {
		text += ", or " + format.Counted(int64(k.GetJobs()), "more job", "more jobs")
	}
	return text
}

// Worker is a worker in `taxon workers --json`.
type Worker struct {
	Worker string `json:"worker"`
	Name   string `json:"name"`
	State  string `json:"state"` // up, draining, lost, left
	Slots  uint32 `json:"slots"`
	// Cores is the number of cores of the worker's host. Zero means unknown.
	Cores     uint32 `json:"cores"`
	Running   uint32 `json:"running"`
	TasksDone uint64 `json:"tasks_done"`
	Memory    uint64 `json:"memory_bytes"`
	// Version is the worker's version of taxon. It is empty if that is not known.
	Version string `json:"version"`
}

// WorkerOf returns a worker as a document.
func WorkerOf(w *taxonv1.WorkerInfo) Worker {
	return Worker{Worker: w.GetWorker(), Name: w.GetName(), State: MemberState(w.GetState()), Slots: w.GetSlots(),
		Cores:   w.GetCores(),
		Running: w.GetRunning(), TasksDone: w.GetTasksDone(), Memory: w.GetMemoryBytes(), Version: w.GetVersion()}
}

// LogLine is a line of `taxon logs --json`.
type LogLine struct {
	Number  uint64 `json:"number"`
	Time    string `json:"time"`
	Level   string `json:"level"`
	Text    string `json:"text"`
	Sweep   uint32 `json:"sweep"`
	Step    uint32 `json:"step"`
	Task    uint32 `json:"task"`
	Attempt uint32 `json:"attempt"` // 0 if the line is about no task
	Worker  string `json:"worker,omitempty"`
}

// LogLineOf returns a line of a job's log as a document.
func LogLineOf(l *taxonv1.LogLine) LogLine {
	return LogLine{Number: l.GetNumber(), Time: utc(l.GetUnixMs(), time.RFC3339Nano), Level: l.GetLevel(),
		Text: l.GetText(), Sweep: l.GetSweep(),
		Step: l.GetStep(), Task: l.GetTask(), Attempt: l.GetAttempt(), Worker: l.GetWorker()}
}

// ReportOf makes a finished job's report from its status. It returns nil for any other job.
func ReportOf(st *taxonv1.JobStatus) *model.Report {
	if st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		return nil
	}
	r := model.Report{
		Method:   st.GetOptions().GetMethod(),
		Features: int(st.GetFeatures()), Nonzeros: int64(st.GetNonzeros()),
		Nodes: int(st.GetNodes()), Terminals: int(st.GetTerminals()), Sweeps: int(st.GetSweep()),
		StoppedBy: st.GetStoppedBy(),
		Seconds:   st.GetSeconds(), CPUSeconds: st.GetCpuSeconds(), WeightsSHA256: st.GetWeightsSha256(),
		CapsBefore: CapsBefore(st), Better: BetterOf(st), Own: OwnKeys(st),
	}
	r.Count(int(st.GetInstances()), int(st.GetTerms()))
	Certify(&r, st.GetCertificate())
	return &r
}

// Certify adds a certificate to a report. A nil certificate adds nothing.
func Certify(r *model.Report, c *taxonv1.Certificate) {
	r.Certificate, r.Objective = c.GetKind(), c.GetObjective()
	if c != nil && !c.GetPrimalOnly() {
		r.Dual, r.Gap = &c.Dual, &c.Gap
	}
}

// OwnKeys returns the keys of a report that depend on the method: its options and figures.
func OwnKeys(st *taxonv1.JobStatus) map[string]json.RawMessage {
	own := registry.Report(st.GetOptions())
	_ = json.Unmarshal(st.GetReport(), &own) // empty: the method has no figures
	return own
}

// CapsBefore returns the stopping criteria that a job had earlier (gap, sweeps and time), oldest
// first.
func CapsBefore(st *taxonv1.JobStatus) (out []model.PastCaps) {
	for _, c := range st.GetCapsBefore() {
		out = append(out, model.PastCaps{Sweep: int(c.GetSweep()), Gap: c.GetGap(), MaxSweeps: int(c.GetMaxSweeps()),
			MaxSeconds: c.GetMaxSeconds()})
	}
	return out
}

// BetterOf returns an earlier sweep whose certificate is better than the one that a finished job's
// weights have.
func BetterOf(st *taxonv1.JobStatus) *model.Better {
	if b := st.GetBetter(); b != nil {
		return &model.Better{Sweep: int(b.GetSweep()), Gap: b.GetCertificate().GetGap()}
	}
	return nil
}

// TraceOf returns the trace of a job, a row for each certificate.
func TraceOf(st *taxonv1.JobStatus) []model.TraceRow {
	var rows []model.TraceRow
	for _, s := range st.GetTrace() {
		row := model.TraceRow{Sweep: int(s.GetSweep()), Phase: s.GetPhase(), Seconds: s.GetSeconds()}
		if c := s.GetCertificate(); c.GetPrimalOnly() {
			row.Objective = &c.Objective
			if bound := -c.Objective; c.GetKind() == method.LowerBound {
				row.Bound = &bound
			}
		} else if c != nil {
			row.Objective, row.Dual, row.Gap = &c.Objective, &c.Dual, &c.Gap
		}
		rows = append(rows, row)
	}
	return rows
}
