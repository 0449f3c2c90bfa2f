package jobs

import (
	"encoding/json"

	"taxon/coordinator/method/registry"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
)

// ReportOf makes a done job's report out of its status; nil for any other job.
func ReportOf(st *taxonv1.JobStatus) *model.Report {
	if st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		return nil
	}
	r := model.Report{
		Method:    st.GetOptions().GetMethod(),
		Instances: int(st.GetInstances()), Features: int(st.GetFeatures()), Nonzeros: int64(st.GetNonzeros()),
		Nodes: int(st.GetNodes()), Terminals: int(st.GetTerminals()), Sweeps: int(st.GetSweep()), StoppedBy: st.GetStoppedBy(),
		Seconds: st.GetSeconds(), CPUSeconds: st.GetCpuSeconds(), PeakRSSBytes: int64(st.GetPeakRssBytes()), WeightsSHA256: st.GetWeightsSha256(),
		CapsBefore: CapsBefore(st), Better: BetterOf(st), Own: OwnKeys(st),
	}
	if c := st.GetCertificate(); c.GetPrimalOnly() {
		r.Objective = c.GetObjective()
	} else if c != nil {
		r.Objective, r.Dual, r.Gap = c.GetObjective(), &c.Dual, &c.Gap
	}
	return &r
}

// OwnKeys are those keys of a report that depend on the method: options, and its own figures.
func OwnKeys(st *taxonv1.JobStatus) map[string]json.RawMessage {
	own := registry.Report(st.GetOptions())
	_ = json.Unmarshal(st.GetReport(), &own) // empty: the method has no figures
	return own
}

// CapsBefore are the caps that a job had before those it has now, oldest first; nil: none.
func CapsBefore(st *taxonv1.JobStatus) (out []model.PastCaps) {
	for _, c := range st.GetCapsBefore() {
		out = append(out, model.PastCaps{Sweep: int(c.GetSweep()), Gap: c.GetGap(), MaxSweeps: int(c.GetMaxSweeps()), MaxSeconds: c.GetMaxSeconds()})
	}
	return out
}

// BetterOf is an earlier sweep with a better certificate than a done job's weights have.
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
		} else if c != nil {
			row.Objective, row.Dual, row.Gap = &c.Objective, &c.Dual, &c.Gap
		}
		rows = append(rows, row)
	}
	return rows
}
