package taxonv1

// Ended says whether a job is over: done, failed or cancelled.
func (x JobState) Ended() bool {
	return x == JobState_JOB_STATE_DONE || x == JobState_JOB_STATE_FAILED || x == JobState_JOB_STATE_CANCELLED
}
