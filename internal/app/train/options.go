// Package train runs a training from files to a published model, on an engine in this process. It
// owns the working folder with its checkpoint, the held-out rows on which cut-offs are fitted, the
// prior shift, warm starts, evaluation during the training, and the model's description.
//
// Equal data, options and seed give a model of equal bytes. Errors name options as package option
// does. An error that the user can correct, and the end of a training whose context was cancelled,
// either carries an exit status or is an fs.InputError.
package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"taxon/coordinator/machine"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
	"taxon/internal/model/parallel"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Options configure a training: what is trained, on which data, and where the model is written.
type Options struct {
	// Job holds the options of the job that the coordinator gets. The caller sets its method.
	// Validate fills in the rest from Said and the defaults, as registry.Fill does.
	Job *taxonv1.Options

	// Said holds the options that the user gave explicitly, as strings by option name. The other
	// options get their defaults.
	Said registry.Values

	// Data lists the files of training instances, or one folder made by ingest. At least one path
	// is required; "-" is standard input.
	Data []string

	// Text reports that the data are text: each line has labels, a tab, and the text. Otherwise, files
	// that are no tables are in LIBSVM format.
	Text bool

	// Words configures how text becomes features. It is used only with Text or with text columns of
	// a table.
	Words dataset.Words

	// LabelText names texts about labels, which are instances beside Data. They need text.
	LabelText dataset.LabelText

	// ZeroBased reports that feature indices in the data start at 0. Otherwise they start at 1.
	ZeroBased bool

	// Weights is the path of a file with one weight per instance. If it is empty, every instance
	// has weight 1.
	Weights string

	// Table configures how tabular data (CSV, Parquet and others) are read. The zero value is for
	// data that are not tables.
	Table table.Options

	// Hierarchy is the path of the hierarchy's file, or Learned, or FromLabels. If it is empty, the
	// classes have no hierarchy unless the labels are paths.
	Hierarchy string

	// Graph is the path of a file with the edges of a class graph. If it is empty, there is no
	// graph. Hierarchy and Graph exclude each other.
	Graph string

	// DAG selects how a hierarchy in which classes have several parents is treated: "graph" trains
	// on the graph, "first-parent" keeps each class's first parent, and "refuse" fails.
	DAG string

	// Warm is the folder of a model whose weights are the starting point. If it is empty, the
	// training starts at zero.
	Warm string

	// Out is the folder where the model is published. Run requires it.
	Out string

	// Force makes Run train anew even if Out already holds a model or a checkpoint.
	Force bool

	// Threshold is the absolute value below which weights are dropped from the model. Zero keeps
	// every weight. Threshold and ModelSize exclude each other.
	Threshold float64

	// ModelSize is the largest size of the model, in bytes. Zero means no bound.
	ModelSize int64

	// Shift is the factor of the prior shift, which raises the scores of rare classes; see
	// PriorShift. Validate sets it from Said. Zero means no shift.
	Shift float64

	// Cutoff selects whether cut-offs are fitted: "auto", "fit" or "none".
	Cutoff string

	// Goal is the name of the measure that cut-offs and an early stop maximise. If it is empty, it
	// is DefaultGoal, the mean of micro-F1 and macro-F1.
	Goal string

	// CutoffTime bounds the additional trainings that fit cut-offs, in estimated seconds of one
	// core. Zero means a minute or a fifth of the training's own time, whichever is more.
	CutoffTime float64

	// Calibrate is the kind of calibration to fit, one of Calibrations. An empty string means none.
	Calibrate string

	// Test is the path of a file of test instances. It is read once before the training, so that
	// errors in it show early. If it is empty, there are no test instances.
	Test string

	// TestLabels is the path of the labels of a Test file that is a matrix. It is empty otherwise.
	TestLabels string

	// EarlyStop is the path of a file of held-out instances. The training ends when Goal, measured
	// on them, no longer improves. If it is empty, the training ends by its own stopping rules.
	EarlyStop string

	// Evaluate measures the model in a folder on EarlyStop, or on Test if EarlyStop is empty. It is
	// required if Job.EvalEvery is above 0.
	Evaluate func(ctx context.Context, model string) (*measure.Result, error)

	// Threads is the number of tasks that run at a time. Zero means one per core.
	Threads int

	// Memory bounds the memory of the training, in bytes. Zero means the memory that is free at the
	// start.
	Memory int64

	// Stores is the number of store shards.
	Stores int

	// Store is the kind of store: "memory" or "badger".
	Store string

	// Pause is the minimum time between two checkpoints, in seconds.
	Pause float64

	// Files reads the input files, and standard input as "-".
	Files fs.Local

	// Again is the command line that resumes this training. It is quoted in messages.
	Again string

	// Remote runs the tasks in other processes. If it is nil, they run in this process.
	Remote RemoteRunner

	// Watch is called with the jobs interface of the engine when the training proper starts, and
	// with nil arguments when it has ended. trace returns the rows of a job's trace together with
	// the evaluations so far. A nil Watch is not called.
	Watch func(jobs taxonv1.JobsClient, trace func(*taxonv1.JobStatus) any)
}

// FromLabels is a value of Options.Hierarchy. It means that the labels are paths, from which the
// hierarchy is made.
const FromLabels = "from-labels"

// Validate completes o.Job and returns an error that lists everything wrong with the options. It
// reads no files. verb is the verb's name, for messages.
func (o *Options) Validate(verb string) error {
	var errs []error
	check := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, option.Errorf(verb+": "+format, args...))
		}
	}
	wrong := func(err error) { check(err != nil, "%w", err) }
	if o.Said == nil {
		o.Said = registry.Values{}
	}
	wrong(o.takeLearned())
	wrongs := func(err error) {
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				wrong(errors.New(line))
			}
		}
	}
	wrongs(registry.Fill(o.Job, o.Said))
	if s, ok := o.Said[method.PriorShift.Name]; ok {
		o.Shift, _ = strconv.ParseFloat(s, 64) // Fill has checked it
	}
	if o.Warm != "" && !registry.Has(o.Job.Method, method.WarmStart.Name) {
		wrong(registry.Lacks(o.Job.Method, method.WarmStart.Name))
	}
	for _, p := range registry.Of(o.Job.Method) {
		_, said := o.Said[p.Name]
		none := o.Graph == "" && o.Hierarchy == "" // a learned structure is a tree
		check(said && p.With == "" && p.On == method.Graphs && none, "‹%s› is for class graphs: add "+
			"‹graph=FILE›, or leave it out", p.Name)
	}
	set, stdin := ingested(o.Data), 0
	for _, path := range append([]string{o.Hierarchy, o.Graph, o.Test}, o.Data...) {
		if path == fs.Stdin {
			stdin++
		}
	}
	check(stdin > 1, "standard input can be read but once: name files for all but one of ‹data›, ‹hierarchy›, "+
		"‹graph› and ‹test›")
	check(slices.Contains(o.Data, ""), "‹data=\"\"›: name a file, or - for standard input")
	check(len(o.Data) > 1 && set != "", "a folder made by ingest can't be joined with other ‹data›")
	check(set != "" && o.Text, "‹text›: %s is ingested already: leave it out", set)
	check(set != "" && o.ZeroBased, "‹zero-based›: %s is ingested already: leave it out", set)
	words := o.Words.Check(o.Text || len(o.Table.Text) > 0 || set != "")
	check(words != nil, "%v", words)
	check(set != "" && len(o.LabelText.Flags()) > 0, "‹label-text›: %s is ingested already: give it to "+
		"`taxon ingest`", set)
	terms := o.LabelText.Check(o.Text || len(o.Table.Text) > 0)
	check(set == "" && terms != nil, "%v", terms)
	check(o.TestLabels != "" && o.Test == "", "‹test-labels›: is for ‹test›: add that, or leave this out")
	check(set != "" && len(o.Words.Flags()) > 0, "‹%s›: %s is ingested already: give it to `taxon ingest`",
		slices.Concat(o.Words.Flags(), [][2]string{{}})[0][0], set)
	check(o.Weights == fs.Stdin, "‹instance-weights=-›: give a file")
	check(set != "" && o.Weights != "", "‹instance-weights›: %s is ingested already: give them to `taxon ingest`", set)
	check(set != "" && (o.Table.Given() || o.Table.SkipBroken > 0), "%s is ingested already: give columns and "+
		"‹skip-broken› to `taxon ingest`", set)
	if err := o.Table.Check(); err != nil {
		check(true, "%w", err)
	}
	check(set != "" && o.Table.Labels != "", "‹labels›: %s is ingested already: leave it out", set)
	check(o.Weights != "" && o.Table.Weight != "", "‹instance-weights› and ‹weight-column› exclude each other")
	check(o.Text && o.ZeroBased, "‹text› has no indices: leave out ‹zero-based›")
	check(o.Hierarchy != "" && o.Graph != "", "‹hierarchy› and ‹graph›: a training has one structure; give one of them")
	if o.Graph != "" {
		wrongs(registry.NeedTree(o.Job))
	}
	check(o.Shift > 0 && registry.Number(o.Job, "bias") == 0, "‹prior-shift› goes into the weights of the bias "+
		"feature: leave out ‹bias=0›, or the shift")
	check(o.ModelSize > 0 && o.Threshold > 0, "‹model-size› finds a threshold by itself: leave out ‹threshold›")
	wrong(KnownGoal(o.Goal))
	every := registry.Number(o.Job, method.EvalEvery.Name)
	check(every > 0 && o.Test == "" && o.EarlyStop == "", "‹eval-every› needs ‹test=FILE› or ‹early-stop=FILE›")
	check(every > 0 && o.Test == fs.Stdin && o.EarlyStop == "", "‹eval-every› reads the test data many times: "+
		"give ‹test› a file instead of standard input")
	check(o.EarlyStop == fs.Stdin, "‹early-stop› reads the data many times: give a file")
	check(o.EarlyStop != "" && !registry.Has(o.Job.Method, method.EvalEvery.Name), "‹early-stop›: a training of "+
		"‹method=%s› ends by itself after one pass: leave it out", o.Job.Method)
	if o.EarlyStop != "" && every == 0 && registry.Has(o.Job.Method, method.EvalEvery.Name) {
		o.Job.Set(method.EvalEvery.WireKey(), earlyEvery)
	}
	check(o.Out == fs.Stdin, "‹out=%q›: a model is a folder, give its path", o.Out)
	return option.Join(errs...)
}

// DefaultGoal is the name of the measure used if Options.Goal is empty.
const DefaultGoal = string(labelset.MeanF1)

// KnownGoal returns an error if name is neither empty nor the name of a measure.
func KnownGoal(name string) error {
	m, keys := measure.Find(name)
	if name == "" || m != nil {
		return nil
	}
	if near := format.Nearest(name, keys); near != "" {
		return fmt.Errorf("goal %s: did you mean %s?", format.QuoteIfNeeded(name), near)
	}
	return fmt.Errorf("goal %s: must be one of %s", format.QuoteIfNeeded(name), strings.Join(keys, ", "))
}

// slots returns the number of tasks that run at a time.
func (o *Options) slots() int { return parallel.Threads(o.Threads) }

// Flat reports whether a method ignores the class structure in training. A structure that is given
// then serves evaluation only.
func Flat(method string) bool { return registry.Unstructured(method) }

// flat reports whether the method of o ignores the class structure.
func (o *Options) flat() bool { return Flat(o.Job.Method) }

// Ingested reports whether a folder made by ingest is among the data.
func Ingested(data []string) bool { return ingested(data) != "" }

// ingested returns the first folder made by ingest among the data, or "" if there is none.
func ingested(data []string) string {
	for _, d := range data {
		if d != fs.Stdin && dataset.LooksIngested(d) {
			return d
		}
	}
	return ""
}

// RemoteRunner runs a training's tasks in other processes. A training calls the methods in the
// order in which they are listed.
type RemoteRunner interface {
	// State returns the folder for data kept between sweeps, checkpoints included. keep is the
	// folder beside the model.
	State(keep string) (dir string, err error)
	// Configure changes c so that the tasks run elsewhere, and returns the name of the job. from is
	// the checkpoint to resume, or nil for a new training.
	Configure(ctx context.Context, t *Training, from *engine.Checkpoint, c *engine.Config) (job string, err error)
	// Follow is called once, before the training begins. The runner calls moved, from any
	// goroutine, with the progress of the tasks that run now, in words.
	Follow(moved func(text string))
	// Refused returns the cause of a failed job if the runner knows it better than the job's status
	// does, and nil otherwise.
	Refused() error
	// Ended is called at the end of the training if Configure was called, even if that failed.
	Ended()
}

// IngestLines returns two functions that show the progress of an ingest on ui: set shows a state,
// with one progress line per phase. The caller calls end after the last phase.
func IngestLines(ui progress.Reporter) (set func(dataset.Progress), end func()) {
	phase, line := "", progress.Progress(nil)
	end = func() {
		if line != nil {
			line.Done()
		}
		phase, line = "", nil
	}
	return func(now dataset.Progress) {
		if now.Phase != phase {
			end()
			if phase = now.Phase; phase == "read" {
				line = ui.StartBytes("ingest: read", max(0, now.BytesTotal))
			} else {
				line = ui.Start("ingest: "+phase, max(0, now.RowsTotal))
			}
		}
		if phase == "read" {
			line.Set(now.BytesRead, format.Count(now.Rows)+" instances")
			return
		}
		line.Set(now.Rows)
	}, end
}

// adoptCheckpoint takes over the state of a checkpoint but keeps the stopping criteria of this run.
// It returns a message about the checkpoint, to be shown once the values are restored.
func (t *Training) adoptCheckpoint(from *engine.Checkpoint) (note string, err error) {
	r, err := from.UpdateStopCriteria(machine.StopCriteriaOf(t.Spec.GetOptions()))
	if err != nil {
		return "", err
	}
	// CPU time of remote tasks is counted by the coordinator.
	if t.o.Remote == nil {
		t.usage.before = from.Spent
	}
	if r.Changed != "" {
		r.Changed = "; " + r.Changed
	}
	return fmt.Sprintf("%s: resumes after sweep %d%s", t.o.Out, r.Sweep, r.Changed), nil
}

// otherCaps returns an error if dir holds a finished model of this training that was trained with
// another gap, or another bound on sweeps or time. Such a training cannot be continued: a finished
// model keeps the weights but not the duals.
func (t *Training) otherCaps(m *model.Manifest, dir string) error {
	now := t.modelOptions()
	diff := optionsDiffer(m.Options, now, true)
	if diff == "" || optionsDiffer(m.Options, now, false) != "" {
		return nil
	}
	how := "to begin at its weights add ‹warm-start› " + dir + " and choose another ‹out›"
	switch {
	case dir != t.o.Out:
		how = "use the same, for its cut-offs are still to be fitted"
	case t.o.Warm != "" || m.Pruned != nil || !registry.Has(t.o.Job.Method, "warm-start"):
		how = "choose another ‹out›"
	}
	return option.Errorf("%s: holds this training, finished with another cap (%s; stopped by %s): %s, or use "+
		"‹force› to train anew",
		t.o.Out, diff, m.Report.StoppedBy, how)
}
