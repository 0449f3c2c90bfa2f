package jobs

import (
	"fmt"
	"strings"

	"taxon/internal/human"
	taxonv1 "taxon/proto/taxon/v1"
)

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

// FailedAt says which task a job failed at, by the classes that it was about.
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
