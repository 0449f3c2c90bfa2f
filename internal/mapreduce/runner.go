package mapreduce

import "context"

// Runner runs MapReduce jobs.
type Runner interface {
	// Run runs a job to its end. It returns soon after ctx has ended, with nothing of the job
	// left running. An error marked by fs.InputError is the user's to mend.
	Run(ctx context.Context, j *Job) error
	// Slots is about how many tasks run side by side.
	Slots() int
	// Fixed is about what a task costs before it begins to work, in seconds: jobs are cut
	// into tasks that take some times as long.
	Fixed() float64
}

// Killer is a Runner whose jobs outlive the process that runs them.
type Killer interface {
	// Kill ends a job of an id that Job.Started was told, if it still runs.
	Kill(ctx context.Context, id string)
}

// Job is a MapReduce job: a map task for each line of a file, and reducers.
type Job struct {
	Name  string
	State string // the state folder
	Run   string // its folder there is "runs/" and this name
	Lines []string
	// Keys are the shuffle keys, one for each task of the next step; none: map tasks alone.
	Keys     [][]byte
	Reducers int
	// Started is told the id under which the job runs elsewhere.
	Started func(id string)
}

// Input is the path of the file of lines.
func (j *Job) Input() string { return folder(j.State).join("runs", j.Run, linesFile) }
