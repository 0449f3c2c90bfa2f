// Package train is a training from files to a published model, on an engine in this process:
// the working folder with its checkpoint, the hold-out that cut-offs are fitted on, the shift
// of rare classes, warm starts, evaluation by sweep, and the model's description of itself.
//
// Equal data, options and seed give equal bytes. The caller has checked the options against
// one another; what files show to be wrong is refused here, in the names of `taxon train`'s
// flags. Errors that the user can mend, and the clean end of a cancelled context, carry the
// exit status of package exit, or are fs.InputErrors.
package train

import (
	"context"
	"slices"

	"taxon/coordinator/method/registry"
	"taxon/internal/dataset"
	"taxon/internal/engine"
	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/model"
	"taxon/internal/tell"
	taxonv1 "taxon/proto/taxon/v1"
)

// Options say what is trained, from what, and to where.
type Options struct {
	Job         *taxonv1.Options // what the coordinator is told
	Data        []string         // files, or one ingested folder
	Text        bool             // lines are labels, a tab, text
	ZeroBased   bool             // feature indices count from 0
	Weights     string           // a file of the instances' weights, or ""
	Hierarchy   string           // a file, or ""
	Graph       string           // a file, or ""
	DAG         string           // how a hierarchy with several parents is read: graph, first-parent, refuse
	AnchorGiven bool             // an anchor where there is no graph is refused
	Warm        string           // a model to begin at, or ""

	Out       string
	Force     bool    // train anew over what is there
	Threshold float64 // of the model that is kept; 0: whole
	Shift     float64 // of rare classes' scores
	Cutoff    string  // whether to fit cut-offs: auto, fit, none
	Test      string  // instances, checked before the training; ""
	// Evaluate measures a model on Test, for Job.EvalEvery above 0.
	Evaluate func(ctx context.Context, model string) (*eval.Result, error)

	Threads int     // 0: all cores
	Memory  int64   // bytes; 0: what is free
	Stores  int     // shards of the store
	Store   string  // memory or badger
	Pause   float64 // least seconds between checkpoints

	Files     fs.Local  // with standard input
	Again     string    // the command line that goes on with this training, for hints
	Elsewhere Elsewhere // nil: the tasks run in this process
}

// slots is the number of tasks at a time.
func (o *Options) slots() int { return model.Threads(o.Threads) }

// Flat says whether a method trains without a structure, which is then for evaluation only.
func Flat(method string) bool { return registry.Unstructured(method) }

// oneVersusRest says whether a method trains each class for itself.
func oneVersusRest(method string) bool { return method == "bsvm" || method == "blr" }

func (o *Options) flat() bool { return Flat(o.Job.Method) }

// StartsWarm says whether a method can begin at a model's weights.
func StartsWarm(method string) bool { return !slices.Contains(registry.Refused(method), "warm-start") }

// Ingested says whether a folder of shards is among the data.
func Ingested(data []string) bool {
	for _, d := range data {
		if d != fs.Stdin && dataset.LooksIngested(d) {
			return true
		}
	}
	return false
}

// Elsewhere runs a training's tasks in other processes than this one. Its methods are called
// in the order in which they stand here.
type Elsewhere interface {
	// State is the folder of what lies between two sweeps, checkpoints among it, given the
	// folder beside the model's place.
	State(keep string) (dir string, err error)
	// Configure makes the engine hand its tasks out; job is the name of the training in it.
	// from is the checkpoint that is gone on from; nil: none.
	Configure(ctx context.Context, t *Training, from *engine.Checkpoint, c *engine.Config) (job string, err error)
	// Started is told of the engine, Resumed of the job that goes on, Saw of each state.
	Started(e *engine.Engine) error
	Resumed(job string)
	Saw(st *taxonv1.JobStatus)
	// Refused is why a job failed, where it is known better than by the job's status; nil: it is not.
	Refused() error
	// Ended is told how the training went, if Configure was called, whatever that returned.
	Ended(report *model.Report, err error)
}

// IngestLines opens a line of progress for each phase of an ingest; end ends the last.
func IngestLines(ui tell.Teller) (set func(dataset.Progress), end func()) {
	phase, line := "", tell.Progress(nil)
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
			line.Set(now.BytesRead, human.Count(now.Rows)+" instances")
			return
		}
		line.Set(now.Rows)
	}, end
}
