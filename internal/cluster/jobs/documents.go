package jobs

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/model"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// Status is `taxon status --json`.
type Status struct {
	Job          string        `json:"job"`
	Owner        string        `json:"owner,omitempty"` // who submitted it, by certificate or token
	Name         string        `json:"name,omitempty"`
	State        string        `json:"state"`
	Method       string        `json:"method"`
	Options      jsonOptions   `json:"options"`                  // as they were given, or by default
	Submitted    string        `json:"submitted"`                // RFC 3339, UTC
	Started      string        `json:"started,omitempty"`        // empty: not yet
	Ended        string        `json:"ended,omitempty"`          // empty: not yet
	StoppedBy    string        `json:"stopped_by,omitempty"`     // of a job that has ended
	Weights      string        `json:"weights_sha256,omitempty"` // of a job that is done
	Phase        string        `json:"phase"`
	Sweep        uint32        `json:"sweep"` // the highest that is committed
	Gap          *float64      `json:"gap"`   // null before the first certificate
	Tasks        Tasks         `json:"tasks"`
	WorkersLost  uint32        `json:"workers_lost"`
	Recomputed   uint32        `json:"recomputed"` // tasks run again because the store had lost what they wrote
	Duplicates   uint32        `json:"duplicates"` // second attempts of stragglers
	Replicas     uint32        `json:"replicas"`   // copies of each value in the store
	BytesRead    uint64        `json:"bytes_read"` // by tasks from the store
	BytesWritten uint64        `json:"bytes_written"`
	Seconds      float64       `json:"seconds"`      // of training so far, without those in which it could do nothing
	IdleSeconds  float64       `json:"idle_seconds"` // in which it could do nothing
	Rollbacks    uint32        `json:"rollbacks"`
	ETASeconds   *float64      `json:"eta_seconds"`     // null if it can't be estimated, or the job waits
	ETALow       *float64      `json:"eta_low_seconds"` // the range that it is the middle of
	ETAHigh      *float64      `json:"eta_high_seconds"`
	Error        string        `json:"error"`
	WaitsFor     string        `json:"waits_for,omitempty"` // why a running job does not go on
	Report       *model.Report `json:"report"`              // of a job that is done

	CapsBefore []model.PastCaps `json:"caps_before,omitempty"`
}

// Tasks are those of the present step; Retried counts over the whole job.
type Tasks struct {
	Done    uint32 `json:"done"`
	Running uint32 `json:"running"`
	Waiting uint32 `json:"waiting"`
	Retried uint32 `json:"retried"`
}

// StatusOf is a status as a document.
func StatusOf(st *taxonv1.JobStatus) Status {
	t := st.GetTasks()
	d := Status{
		Job: st.GetJob(), Owner: st.GetOwner(), Name: st.GetName(), State: Doing(st), Phase: st.GetPhase(), Sweep: st.GetSweep(), Gap: gapOf(st.GetCertificate()),
		Tasks:       Tasks{t.GetDone(), t.GetRunning(), t.GetWaiting(), t.GetRetried()},
		WorkersLost: st.GetWorkersLost(), Recomputed: st.GetRemade(), Duplicates: st.GetSpeculated(), Replicas: st.GetReplicas(),
		BytesRead: st.GetBytesRead(), BytesWritten: st.GetBytesWritten(), Seconds: st.GetSeconds(), Rollbacks: st.GetRollbacks(), Error: st.GetError(), Report: ReportOf(st),
		CapsBefore: CapsBefore(st), WaitsFor: st.GetWaitsFor(), ETASeconds: etaOf(st.GetEtaSeconds()),
		ETALow: etaOf(st.GetEtaLowSeconds()), ETAHigh: etaOf(st.GetEtaHighSeconds()), IdleSeconds: st.GetIdleSeconds(),
		Method: st.GetOptions().GetMethod(), Options: jsonOptions{st.GetOptions()}, StoppedBy: st.GetStoppedBy(), Weights: st.GetWeightsSha256(),
		Submitted: when(st.GetSubmittedUnixMs()), Started: when(st.GetStartedUnixMs()), Ended: when(st.GetEndedUnixMs()),
	}
	if st.GetState().Ended() {
		d.ETASeconds, d.ETALow, d.ETAHigh = &st.EtaSeconds, &st.EtaSeconds, &st.EtaSeconds
	}
	return d
}

// gapOf is the gap of a certificate that bounds it; nil: it does not.
func gapOf(c *taxonv1.Certificate) *float64 {
	if c == nil || c.GetPrimalOnly() {
		return nil
	}
	return &c.Gap
}

// etaOf is an estimate of the seconds left; nil: there is none.
func etaOf(seconds float64) *float64 {
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return nil
	}
	return &seconds
}

// Line is a job in `taxon jobs --json`.
type Line struct {
	Job        string   `json:"job"`
	Name       string   `json:"name,omitempty"`
	Owner      string   `json:"owner,omitempty"` // who submitted it, by certificate or token
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
	Values     string   `json:"values"`       // kept, dropped, discarded
	Until      string   `json:"values_until"` // latest time at which they are dropped, RFC 3339, UTC; empty: not decided, or already gone
	Copies     uint32   `json:"copies"`       // that each value shall have; 0: they are gone
	There      uint32   `json:"copies_there"` // that each has at least, on stores that are up and repaired
	After      uint32   `json:"values_jobs"`  // they are dropped when so many more jobs have ended; 0: not decided, or already gone
}

// LineOf is a job of a list as a document.
func LineOf(j *taxonv1.JobInfo) Line {
	l := Line{Job: j.GetJob(), Name: j.GetName(), Owner: j.GetOwner(), State: StateOf(j.GetState(), j.GetKept(), j.GetWaits()), Phase: j.GetPhase(), Sweep: j.GetSweep(), Gap: gapOf(j.GetCertificate()),
		Submitted: utc(j.GetSubmittedUnixMs(), time.RFC3339), ETASeconds: etaOf(j.GetEtaSeconds()),
		ETALow: etaOf(j.GetEtaLowSeconds()), ETAHigh: etaOf(j.GetEtaHighSeconds()), Error: j.GetError(),
		Resumable: j.GetResumable(), Exportable: j.GetExportable(), Values: "kept", Copies: j.GetCopies(), There: j.GetCopiesThere()}
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

// MarshalJSON writes the options that are not zero, by the names of the specification's fields.
func (o jsonOptions) MarshalJSON() ([]byte, error) {
	if o.Options == nil {
		return []byte("{}"), nil
	}
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(o.Options)
}

// when is a moment in RFC 3339. Empty: it has not come.
func when(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return utc(unixMS, time.RFC3339)
}

func utc(unixMS int64, layout string) string { return time.UnixMilli(unixMS).UTC().Format(layout) }

// fewJobs is up to how many more jobs KeptText mentions their number.
const fewJobs = 10

// ValuesText is KeptText, and says if values of the job have too few copies.
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
	Worker    string `json:"worker"`
	Name      string `json:"name"`
	State     string `json:"state"` // up, draining, lost, left
	Slots     uint32 `json:"slots"`
	Cores     uint32 `json:"cores"` // of its host; 0: not told
	Running   uint32 `json:"running"`
	TasksDone uint64 `json:"tasks_done"`
	Memory    uint64 `json:"memory_bytes"`
	Version   string `json:"version"` // of its taxon; empty: not told
}

// WorkerOf is a worker as a document.
func WorkerOf(w *taxonv1.WorkerInfo) Worker {
	return Worker{Worker: w.GetWorker(), Name: w.GetName(), State: MemberState(w.GetState()), Slots: w.GetSlots(), Cores: w.GetCores(),
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
	Attempt uint32 `json:"attempt"` // 0: about no task
	Worker  string `json:"worker,omitempty"`
}

// LogLineOf is a line of a job's log as a document.
func LogLineOf(l *taxonv1.LogLine) LogLine {
	return LogLine{Number: l.GetNumber(), Time: utc(l.GetUnixMs(), time.RFC3339Nano), Level: l.GetLevel(), Text: l.GetText(), Sweep: l.GetSweep(),
		Step: l.GetStep(), Task: l.GetTask(), Attempt: l.GetAttempt(), Worker: l.GetWorker()}
}

// ReportOf makes a finished job's report from its status; nil for any other job.
func ReportOf(st *taxonv1.JobStatus) *model.Report {
	if st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		return nil
	}
	r := model.Report{
		Method:    st.GetOptions().GetMethod(),
		Instances: int(st.GetInstances()), Features: int(st.GetFeatures()), Nonzeros: int64(st.GetNonzeros()),
		Nodes: int(st.GetNodes()), Terminals: int(st.GetTerminals()), Sweeps: int(st.GetSweep()), StoppedBy: st.GetStoppedBy(),
		Seconds: st.GetSeconds(), CPUSeconds: st.GetCpuSeconds(), WeightsSHA256: st.GetWeightsSha256(),
		CapsBefore: CapsBefore(st), Better: BetterOf(st), Own: OwnKeys(st),
	}
	Certify(&r, st.GetCertificate())
	return &r
}

// Certify adds a certificate to a report; nil: there is none.
func Certify(r *model.Report, c *taxonv1.Certificate) {
	r.Certificate, r.Objective = c.GetKind(), c.GetObjective()
	if c != nil && !c.GetPrimalOnly() {
		r.Dual, r.Gap = &c.Dual, &c.Gap
	}
}

// OwnKeys are the keys of a report that depend on the method: its options and figures.
func OwnKeys(st *taxonv1.JobStatus) map[string]json.RawMessage {
	own := registry.Report(st.GetOptions())
	_ = json.Unmarshal(st.GetReport(), &own) // empty: the method has no figures
	return own
}

// CapsBefore are the caps that a job had earlier, oldest first; nil: none.
func CapsBefore(st *taxonv1.JobStatus) (out []model.PastCaps) {
	for _, c := range st.GetCapsBefore() {
		out = append(out, model.PastCaps{Sweep: int(c.GetSweep()), Gap: c.GetGap(), MaxSweeps: int(c.GetMaxSweeps()), MaxSeconds: c.GetMaxSeconds()})
	}
	return out
}

// BetterOf is an earlier sweep with a better certificate than that of a finished job's weights.
func BetterOf(st *taxonv1.JobStatus) *model.Better {
	if b := st.GetBetter(); b != nil {
		return &model.Better{Sweep: int(b.GetSweep()), Gap: b.GetCertificate().GetGap()}
	}
	return nil
}

// TraceOf is the trace of a job, a row for each certificate.
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
