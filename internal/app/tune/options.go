// Package tune searches for the options of a training by cross-validation. A search has a folder,
// and a later run continues it.
//
// Its parts:
//
//   - grid.go, ladder.go: the points, and the paths that they form
//   - climb.go, race.go: the two strategies, which decide what is trained next and what is
//     dropped; jackknife.go: their statistics; clock.go, costs.go: their time
//   - folds.go: which rows are held out; trial.go: the trainings without them; measure.go: the
//     measures on them
//   - cluster.go: trainings that are jobs of a cluster
//   - record.go: the folder; table.go, explain.go, picture.go: the outcome
//
// Errors that the user can fix, and the clean end of a cancelled context, carry an exit status
// (package exit) or are fs.InputErrors. They use the names of `taxon tune`'s flags.
package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/fs"
	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// Options say what is searched, and how.
type Options struct {
	// Train is what all trainings share: data, structure, stopping and resources. Train.Out is
	// the folder of the search. Options that are searched are set in Train.Job point by point.
	Train train.Options
	Grid  Grid

	Folds      int // of the cross-validation
	FirstFolds int // number of folds on which points are tried; 0: all
	// measure to choose by: micro, macro, or a key of eval.Measures
	Goal  string
	OneSE bool // choose by OneStandardError
	// a path ends once so many values of C in a row are far behind; 0: never
	Patience   int
	Exhaustive bool // train all points on all folds

	// Methods are those to search, or AllMethods; nil: all that fit, or with a grid the first.
	Methods []string
	// of the search and the last training together; 0: as long as it takes; SomeTime: follows from Grid
	Time    time.Duration
	NoTrain bool    // only search: train no model
	Cluster Cluster // runs the trainings; nil: this process does

	// options that the search's trainings have in place of the last one's
	rough registry.Values
}

// SomeTime stands for the time of a search without --time: DefaultTime, or with a grid unlimited.
const (
	SomeTime    = time.Duration(math.MinInt64)
	DefaultTime = 10 * time.Minute
)

// AllMethods stands for all methods that fit the data.
const AllMethods = "all"

// climbs says whether the search finds its own values, as no list of values is given.
func (o *Options) climbs() bool {
	for _, values := range o.Grid.Values {
		if len(values) > 1 {
			return false
		}
	}
	return !o.Exhaustive && o.FirstFolds == 0
}

// settled says whether there is nothing to search: one method with one value for each option, and
// no list of others.
func (o *Options) settled() bool {
	more := func(p method.Option) bool { return p.Kind == method.Choice || len(p.Grid)+len(p.Ladder) > 1 }
	return o.climbs() && len(o.Grid.Methods) == 1 && !slices.ContainsFunc(o.Grid.tunable(o.Grid.Methods[0]), more)
}

// roughGap and roughTolerance end the trainings of a climb. Models rank there as they do at the
// end (docs/decisions/0025-one-search.md).
const (
	roughGap       = 0.1
	roughTolerance = 0.01
	// leastSeconds is the least time of a training.
	leastSeconds = 0.01
)

// settle fills in what depends on whether the search climbs.
func (o *Options) settle() {
	if o.Methods != nil {
		o.Grid.Methods = o.Methods
	}
	all := slices.Contains(o.Grid.Methods, AllMethods) || o.Grid.Methods == nil && o.climbs()
	switch {
	case all:
		o.Grid.Methods = registry.Searched()
	case o.Grid.Methods == nil:
		o.Grid.Methods = registry.Names()[:1]
	}
	if o.Time == SomeTime {
		o.Time = 0
		if o.climbs() && !o.settled() {
			o.Time = DefaultTime
		}
	}
	if !o.climbs() {
		return
	}
	o.rough = registry.Values{}
	for name, least := range map[string]float64{method.GapWanted.Name: roughGap, "tolerance": roughTolerance} {
		said, err := strconv.ParseFloat(o.Train.Said[name], 64)
		if err != nil || said < least {
			o.rough[name] = strconv.FormatFloat(least, 'g', -1, 64)
		}
	}
}

// Defaults are all options except data and place.
func Defaults() Options {
	return Options{
		Train: train.Options{DAG: "graph", Stores: 1, Job: &taxonv1.Options{}, Said: registry.Values{}},
		Grid:  Grid{Values: map[string][]string{}},
		Folds: 5, Goal: "micro", Patience: 2, Time: SomeTime,
	}
}

// Validate fills in the options that all trainings share, and reports all that is wrong, in one
// error.
func (o *Options) Validate() error {
	var wrong []error
	check := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, option.Errorf("tune: "+format, args...))
		}
	}
	g := &o.Grid
	if o.Train.Hierarchy == train.Learned {
		o.Train.Hierarchy = ""
		if _, said := g.Values[method.Families.Name]; !said {
			g.Values[method.Families.Name] = []string{"auto"}
		}
	}
	g.Text = o.readsText()
	o.settle()
	if len(g.Methods) == 0 {
		return option.Errorf("tune: name a method or more")
	}
	check(o.Time < 0, "‹time=%s›: must be 0 or more", o.Time)
	check(o.Folds < 2, "‹folds=%d›: must be 2 or more", o.Folds)
	check(slices.Contains(o.Train.Data, fs.Stdin), "‹data=-›: a search that is gone on with reads the "+
		"data again: give a file")
	check(o.Train.Out == "", "‹out=%q›: a search is kept in a folder, give its path", o.Train.Out)
	_, err := goalOf(o.Goal)
	check(err != nil, "%v", err)
	o.Train.Goal = string(measure.CutoffsFor(o.Goal))
	shift, bias := g.Values[method.PriorShift.Name], g.Values[method.Bias.Name]
	shifts := slices.ContainsFunc(shift, func(s string) bool { return s != "0" })
	check(shifts && slices.Contains(bias, "0"), "‹prior-shift› goes into the weights of the bias feature: leave 0 out "+
		"of ‹bias›, or the shifts")
	check(o.FirstFolds > o.Folds, "‹first-folds=%d›: there are %d folds: lower it, or raise ‹folds›", o.FirstFolds,
		o.Folds)
	check(o.FirstFolds == 1 && o.OneSE, "‹one-se› needs the spread of two folds or more: raise ‹first-folds›")
	if err := o.checkText(); err != nil {
		wrong = append(wrong, err)
	}
	names := strings.Join(g.Methods, ",")
	for _, option := range registry.Options() {
		for _, v := range g.Values[option.Name] {
			if v != option.Default {
				err := fits(g.Methods, option.Name, v)
				check(err != nil, "%w", err)
			}
		}
	}
	shared := o.Train
	shared.Job.Method, shared.Said = g.Methods[0], registry.Values{}
	for option, v := range o.Train.Said {
		if registry.Has(g.Methods[0], option) {
			shared.Said[option] = v
		} else if !slices.ContainsFunc(g.Methods, func(m string) bool { return registry.Has(m, option) }) {
			check(true, "%w", registry.Lacks(names, option))
		}
	}
	return option.Join(append(wrong, shared.Validate("tune"))...)
}

// fits says why no method can use a value; nil: one can.
func fits(methods []string, option, value string) (err error) {
	for _, m := range methods {
		p := registry.Find(m, option)
		if p == nil {
			continue
		}
		if _, err = p.Parse(value); err == nil {
			return nil
		}
		err = fmt.Errorf("‹%s=%s›: %w", option, value, err)
	}
	if err == nil {
		err = registry.Lacks(strings.Join(methods, ","), option)
	}
	return err
}

// goalOf finds a measure by its key; micro and macro stand for the F1.
func goalOf(name string) (*measure.Measure, error) {
	m, keys := measure.Find(name)
	if m != nil && !m.NoGoal {
		return m, nil
	}
	keys = append([]string{"micro", "macro"}, slices.DeleteFunc(keys, func(key string) bool {
		known, _ := measure.Find(key)
		return known.NoGoal || key == name
	})...)
	if near := format.Nearest(name, keys); near != "" {
		return nil, fmt.Errorf("‹goal=%s›: did you mean %s?", format.QuoteIfNeeded(name), near)
	}
	return nil, fmt.Errorf("‹goal=%s›: must be one of %s", format.QuoteIfNeeded(name), strings.Join(keys, ", "))
}

// tried is the number of folds on which a point is tried if it is not dropped.
func (o *Options) tried() int {
	if o.FirstFolds > 0 {
		return o.FirstFolds
	}
	return o.Folds
}

// job are the options of a point's trainings: its own, and those of Train.Job and Train.Said that
// its method has.
func (o *Options) job(p Point) *taxonv1.Options {
	job, said := proto.Clone(o.Train.Job).(*taxonv1.Options), registry.Values{}
	maps.Copy(said, o.Train.Said)
	maps.Copy(said, p.Values)
	for _, t := range textOptions {
		delete(said, t.Name)
	}
	job.Method = p.Method
	for _, option := range registry.Options() {
		if !registry.Has(p.Method, option.Name) {
			delete(said, option.Name)
			_ = job.Set(option.WireKey(), "") // this removes it
		}
	}
	_ = registry.Fill(job, said) // Validate has checked the values
	return job
}

// trial are the options of the search's trainings of a point, which may take so many seconds.
func (o *Options) trial(p Point, seconds float64) *taxonv1.Options {
	rough := *o
	rough.Train.Said = maps.Clone(o.Train.Said)
	if rough.Train.Said == nil {
		rough.Train.Said = registry.Values{}
	}
	maps.Copy(rough.Train.Said, o.rough)
	if said, err := strconv.ParseFloat(o.Train.Said["max-time"], 64); !math.IsInf(seconds, 1) &&
		(err != nil || said == 0 || said > seconds) {
		rough.Train.Said["max-time"] = strconv.FormatFloat(round(max(seconds, leastSeconds)), 'g', -1, 64)
	}
	return rough.job(p)
}
