// Package tune searches for the options of a training by cross-validation. A search lies in a
// folder, and a later run goes on with it.
//
// Its parts know little of each other:
//   - grid.go: the points, and the paths that they form; score.go: which point is better
//   - race.go: the strategy, which decides what is trained next and what is dropped;
//     jackknife.go: its statistics
//   - folds.go: which rows are held out; trial.go: the trainings without them; measure.go: what
//     their predictions of the held-out rows are worth
//   - record.go: the folder; table.go, picture.go, sketch.go: the outcome
//
// Errors that the user can mend, and the clean end of a cancelled context, carry the exit
// status of package exit, or are fs.InputErrors. They use the names of `taxon tune`'s flags.
package tune

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/method/registry"
	"taxon/internal/eval"
	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/jobspec"
	"taxon/internal/train"
	taxonv1 "taxon/proto/taxon/v1"
)

// Options say what is searched, and how.
type Options struct {
	// Train is what all trainings share: data, structure, stopping and resources. Train.Out is
	// the folder of the search. The grid sets its own options of Train.Job point by point.
	Train train.Options
	Grid  Grid

	Folds      int    // of the cross-validation
	FirstFolds int    // how many of them points are tried on; 0: all
	Goal       string // the measure to choose by: micro, macro, or a key of eval.Measures
	OneSE      bool   // choose by OneStandardError
	Patience   int    // a path ends once so many values of C in a row are far behind; 0: never
	Exhaustive bool   // train all points on all folds
}

// Defaults are the options that nobody has given: all but data and the place.
func Defaults() Options {
	return Options{
		Train: train.Options{DAG: "graph", Stores: 1, Job: &taxonv1.Options{
			Gap: 1e-2, Prune: "empty", Anchor: 0.01, CheckpointSweeps: 4,
			Schedule: jobspec.ScheduleTwoblock, Stiffness: "support", Momentum: "fista", Colouring: "largest-first",
		}},
		Grid: Grid{Methods: []string{"rr-svm"}, Losses: []string{"hinge"}, Bias: []float64{1}, Positive: []string{"1"}, Internal: []float64{1},
			C:     []float64{1e-3, 1e-2, 0.1, 1, 10, 100, 1000}, // [TKDD] 5.2
			Shift: []float64{0}},
		Folds: 5, Goal: "micro", Patience: 2,
	}
}

// Validate reports all that is wrong with the options, in one error.
func (o *Options) Validate() error {
	var wrong []string
	check := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	g := &o.Grid
	if min(len(g.Methods), len(g.Losses), len(g.Bias), len(g.Positive), len(g.Internal), len(g.Shift), len(g.C)) == 0 {
		return exit.Usagef("tune: give a value or more for each option of the grid")
	}
	check(o.Folds < 2, "--folds %d: must be 2 or more", o.Folds)
	check(slices.Contains(o.Train.Data, fs.Stdin), "--data -: a search that is gone on with reads the data again: give a file")
	for _, w := range g.Positive {
		_, err := jobspec.ParsePositiveWeight(w)
		check(err != nil, "--%v", err)
	}
	out := o.Train.Out
	check(out == "" || out == fs.Stdin, "--out %q: a search is kept in a folder, give its path", out)
	_, err := goalOf(o.Goal)
	check(err != nil, "%v", err)
	check(slices.Max(g.Shift) > 0 && slices.Contains(g.Bias, 0), "--prior-shift goes into the weights of the bias feature: leave 0 out of --bias, or the shifts")
	check(o.FirstFolds > o.Folds, "--first-folds %d: there are %d folds: lower it, or raise --folds", o.FirstFolds, o.Folds)
	check(o.FirstFolds == 1 && o.OneSE, "--one-se needs the spread of two folds or more: raise --first-folds")
	for _, option := range g.useless() {
		check(true, "--%s means nothing to --method %s: leave it out, or add one of %s", option, strings.Join(g.Methods, ","), strings.Join(registry.Taking(option), ", "))
	}
	if wrong == nil {
		return nil
	}
	return exit.Usagef("tune: %s", strings.Join(wrong, "; "))
}

// goalOf finds a measure by its key; micro and macro stand for the F1.
func goalOf(name string) (*eval.Measure, error) {
	key := name
	if name == "micro" || name == "macro" {
		key = name + "_f1"
	}
	keys := []string{"micro", "macro"}
	for _, m := range eval.Measures() {
		if m.Key == key {
			return &m, nil
		}
		keys = append(keys, m.Key)
	}
	if near := human.Nearest(name, keys); near != "" {
		return nil, fmt.Errorf("--goal %s: did you mean %s?", human.QuoteIfOdd(name), near)
	}
	return nil, fmt.Errorf("--goal %s: must be one of %s", human.QuoteIfOdd(name), strings.Join(keys, ", "))
}

// tried is the number of folds that a point is tried on unless it is dropped.
func (o *Options) tried() int {
	if o.FirstFolds > 0 {
		return o.FirstFolds
	}
	return o.Folds
}

// structured says whether the data has a class structure.
func (o *Options) structured() bool { return o.Train.Hierarchy != "" || o.Train.Graph != "" }

// job are the options of a point's trainings.
func (o *Options) job(p Point) *taxonv1.Options {
	j := proto.Clone(o.Train.Job).(*taxonv1.Options)
	j.Method, j.Loss, j.C, j.Bias, j.PositiveWeight, j.InternalWeight = p.Method, p.Loss, p.C, p.Bias, p.Positive, p.Internal
	return j
}
