// Package train runs a training from files to a published model, on an engine in this process. It
// has the working folder with its checkpoint, the hold-out on which cut-offs are fitted, the
// prior shift, warm starts, evaluation by sweep, and the model's description.
//
// Equal data, options and seed give equal bytes. Errors speak in terms of `taxon train`'s flags.
// Errors that the user can fix, and the clean end of a cancelled context, carry an exit status
// (package exit) or are fs.InputErrors.
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

// Options say what is trained, on what, and where the model goes.
type Options struct {
	// Job holds the options that the coordinator gets. The caller sets its method; Validate fills
	// in the rest, as registry.Fill does.
	Job *taxonv1.Options

	// Said holds the options that the user gave, by name.
	Said registry.Values

	// Data are files, or one ingested folder.
	Data []string

	// Text says that a line is labels, a tab, and text.
	Text bool

	// Words says how text becomes features.
	Words dataset.Words

	// ZeroBased says that feature indices count from 0.
	ZeroBased bool

	// Weights is a file of the instances' weights. It is empty if there is none.
	Weights string

	// Table says how to read data that are tables.
	Table table.Options

	// Hierarchy is a file, Learned or FromLabels. It is empty if there is no hierarchy.
	Hierarchy string

	// Graph is the file of a class graph. It is empty if there is none.
	Graph string

	// DAG says how a hierarchy in which classes have several parents is read: graph, first-parent
	// or refuse.
	DAG string

	// Warm is a model at whose weights the training begins. It is empty if there is none.
	Warm string

	// Out is the folder of the model.
	Out string

	// Force trains anew even if Out holds a model or a checkpoint.
	Force bool

	// Threshold is the magnitude below which weights are dropped from the model. Zero keeps all.
	Threshold float64

	// ModelSize is how many bytes the model may take. Zero means no bound.
	ModelSize int64

	// Shift is the prior shift of the scores of rare classes. Validate sets it.
	Shift float64

	// Cutoff says whether to fit cut-offs: auto, fit or none.
	Cutoff string

	// Goal is the measure that cut-offs maximise. If it is empty, it is the mean of micro-F1 and
	// macro-F1.
	Goal string

	// CutoffTime bounds the trainings that fit cut-offs, in estimated seconds of one core. Zero
	// means a minute, or a fifth of the training.
	CutoffTime float64

	// Calibrate is the kind of calibration: none, or one of calibration.Kinds. Empty means none.
	Calibrate string

	// Test is a file of test instances, read once before the training. It is empty if there is
	// none.
	Test string

	// TestLabels is the file of the labels of a Test that is a matrix. It is empty if there is
	// none.
	TestLabels string

	// EarlyStop is a file of held-out instances. The training ends when Goal on them no longer
	// improves. It is empty if there is none.
	EarlyStop string

	// Evaluate measures a model on EarlyStop, or on Test if there is no EarlyStop. It is required
	// if Job.EvalEvery is above 0.
	Evaluate func(ctx context.Context, model string) (*measure.Result, error)

	// Threads is the number of tasks that run at a time. Zero means one per core.
	Threads int

	// Memory is the memory that the training may take, in bytes. Zero means what is free.
	Memory int64

	// Stores is the number of store shards.
	Stores int

	// Store is the kind of store: memory or badger.
	Store string

	// Pause is the least time between two checkpoints, in seconds.
	Pause float64

	// Files reads files, with - as standard input.
	Files fs.Local

	// Again is the command line that continues this training, for messages.
	Again string

	// Remote runs the tasks in other processes. If it is nil, they run in this process.
	Remote RemoteRunner

	// Watch is called with the interface to the jobs when the training itself begins, and with nil
	// when it is over. It may be nil. trace returns the rows of a job's trace, with what
	// evaluations have measured.
	Watch func(jobs taxonv1.JobsClient, trace func(*taxonv1.JobStatus) any)
}

// FromLabels is a value of Options.Hierarchy: labels are paths, which make the hierarchy.
const FromLabels = "from-labels"

// Validate fills in the job's options and reports everything wrong, without reading files. verb is
// the verb's name for messages.
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
	check(o.Shift > 0 && o.Job.Bias == 0, "‹prior-shift› goes into the weights of the bias feature: leave out "+
		"‹bias=0›, or the shift")
	check(o.ModelSize > 0 && o.Threshold > 0, "‹model-size› finds a threshold by itself: leave out ‹threshold›")
	wrong(KnownGoal(o.Goal))
	check(o.Job.EvalEvery > 0 && o.Test == "" && o.EarlyStop == "", "‹eval-every› needs ‹test=FILE› or ‹early-stop=FILE›")
	check(o.Job.EvalEvery > 0 && o.Test == fs.Stdin && o.EarlyStop == "", "‹eval-every› reads the test data many times: "+
		"give ‹test› a file instead of standard input")
	check(o.EarlyStop == fs.Stdin, "‹early-stop› reads the data many times: give a file")
	check(o.EarlyStop != "" && !registry.Has(o.Job.Method, method.EvalEvery.Name), "‹early-stop›: a training of "+
		"‹method=%s› ends by itself after one pass: leave it out", o.Job.Method)
	if o.EarlyStop != "" && o.Job.EvalEvery == 0 && registry.Has(o.Job.Method, method.EvalEvery.Name) {
		o.Job.EvalEvery = earlyEvery
	}
	check(o.Out == fs.Stdin, "‹out=%q›: a model is a folder, give its path", o.Out)
	return option.Join(errs...)
}

// DefaultGoal is the goal of cut-offs by default.
const DefaultGoal = string(labelset.MeanF1)

// KnownGoal refuses a name that no measure has.
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

// slots returns how many tasks run at a time.
func (o *Options) slots() int { return parallel.Threads(o.Threads) }

// Flat reports whether a method trains without a structure. A given one is then for evaluation
// only.
func Flat(method string) bool { return registry.Unstructured(method) }

func (o *Options) flat() bool { return Flat(o.Job.Method) }

// Ingested reports whether an ingested folder is among the data.
func Ingested(data []string) bool { return ingested(data) != "" }

// ingested returns the first ingested folder among the data. It is empty if there is none.
func ingested(data []string) string {
	for _, d := range data {
		if d != fs.Stdin && dataset.LooksIngested(d) {
			return d
		}
	}
	return ""
}

// RemoteRunner runs a training's tasks in other processes. Its methods are called in the order
// below.
type RemoteRunner interface {
	// State returns the folder for what is kept between sweeps, checkpoints included. keep is the
	// folder beside the model.
	State(keep string) (dir string, err error)
	// Configure sets up the engine so that its tasks run elsewhere, and returns the training's job
	// name. from is the checkpoint to continue from. It is nil for a new training.
	Configure(ctx context.Context, t *Training, from *engine.Checkpoint, c *engine.Config) (job string, err error)
	// Follow is called once, before the training begins. The runner calls moved, from any
	// goroutine, with the progress of the tasks that run now, in words.
	Follow(moved func(text string))
	// Refused returns why a job failed, if the runner knows it better than the job's status, and
	// otherwise nil.
	Refused() error
	// Ended is called at the end of the training if Configure was called, even if that failed.
	Ended()
}

// IngestLines shows a progress line for each phase of an ingest. The caller calls end after the
// last phase.
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

// adoptCheckpoint takes over the state of a checkpoint, but keeps the caps that are given now. told
// is a message about it, to be shown once the values are restored.
func (t *Training) adoptCheckpoint(from *engine.Checkpoint) (told string, err error) {
	r, err := from.UpdateStopCriteria(machine.StopCriteriaOf(t.Spec.GetOptions()))
	if err != nil {
		return "", err
	}
	if t.o.Remote == nil { // with Remote, the coordinator counts the tasks' CPU time
		if t.usage.before = from.Spent; t.usage.before == 0 { // written by an earlier release
			t.usage.before = r.CPUSeconds
		}
	}
	if r.Changed != "" {
		r.Changed = "; " + r.Changed
	}
	return fmt.Sprintf("%s: goes on after sweep %d%s", t.o.Out, r.Sweep, r.Changed), nil
}

// otherCaps refuses a finished model of the same training in dir if the gap, or a bound on sweeps
// or time, differs. The duals from which it could have continued no longer exist, only the weights.
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
