// Package tune searches for the options of a training by cross-validation. A search has a folder,
// and a later run continues it.
//
// The files of the package:
//
//   - grid.go, values.go: the points, and the paths that they form
//   - hillclimb.go, race.go: the two strategies, which decide what is trained next and what is
//     dropped; jackknife.go: their statistics; clock.go, costs.go: their time
//   - folds.go: the rows that are held out; trial.go: the trainings without them; measure.go: the
//     measures on them
//   - cluster.go: trainings that are jobs of a cluster
//   - record.go: the folder; table.go, explain.go, picture.go: the outcome
//
// An error that the user can correct, and the end of a search whose context was cancelled, either
// carries an exit status or is an fs.InputError. Errors name options as package option does.
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
	"taxon/internal/data/text"
	"taxon/internal/fs"
	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// Options configure a search.
type Options struct {
	// Train holds the properties that all trainings share: data, structure, stopping criteria and
	// resources. Train.Out is the folder of the search. The search sets the options that it varies
	// in Train.Job.
	Train train.Options
	// Grid holds the methods and values to search.
	Grid Grid

	// Folds is the number of folds of the cross-validation.
	Folds int
	// FirstFolds is the number of folds on which points are tried. Zero means all.
	FirstFolds int
	// Goal is the measure to maximise: "micro", "macro", or the key of a measure of package
	// measure.
	Goal string
	// OneSE selects the point by OneStandardError.
	OneSE bool
	// Patience is the number of consecutive values of C far behind the best after which a path
	// ends. Zero means that paths never end early.
	Patience int
	// Exhaustive trains all points on all folds.
	Exhaustive bool

	// Methods lists the methods to search. AllMethods stands for all of them. If it is nil, the
	// search uses all methods that fit the data or, with a grid, the first.
	Methods []string
	// Time limits the search and the last training together. Zero means no limit. SomeTime stands
	// for the default.
	Time time.Duration
	// NoTrain ends the run after the search, without training a model.
	NoTrain bool
	// Cluster runs the trainings. If it is nil, they run in this process.
	Cluster Cluster

	// rough holds options that the trainings of the search have instead of those of the last one.
	rough registry.Values
}

// SomeTime stands for the default time of a search: DefaultTime or, with a grid, no limit.
const (
	SomeTime    = time.Duration(math.MinInt64)
	DefaultTime = 10 * time.Minute
)

// AllMethods stands for all methods that fit the data.
const AllMethods = "all"

// climbsHill reports whether the search chooses its own values, because no list of values is given.
func (o *Options) climbsHill() bool {
	for _, values := range o.Grid.Values {
		if len(values) > 1 {
			return false
		}
	}
	return !o.Exhaustive && o.FirstFolds == 0
}

// settled reports whether there is nothing to search: one method, one value for each option, and no
// list of others.
func (o *Options) settled() bool {
	more := func(p method.Option) bool { return p.Kind == method.Choice || len(p.Grid)+len(p.Ladder) > 1 }
	return o.climbsHill() && len(o.Grid.Methods) == 1 && !slices.ContainsFunc(o.Grid.tunable(o.Grid.Methods[0]), more)
}

// roughGap and roughTolerance end the trainings of a hill climb. Models rank at them as they do at
// the end (docs/decisions/0025-one-search.md).
const (
	roughGap       = 0.1
	roughTolerance = 0.01
	// leastSeconds is the smallest time limit of a training.
	leastSeconds = 0.01
)

// settle fills in the options whose defaults depend on the strategy.
func (o *Options) settle() {
	if o.Methods != nil {
		o.Grid.Methods = o.Methods
	}
	all := slices.Contains(o.Grid.Methods, AllMethods) || o.Grid.Methods == nil && o.climbsHill()
	switch {
	case all:
		o.Grid.Methods = registry.Searched()
	case o.Grid.Methods == nil:
		o.Grid.Methods = registry.Names()[:1]
	}
	if o.Time == SomeTime {
		o.Time = 0
		if o.climbsHill() && !o.settled() {
			o.Time = DefaultTime
		}
	}
	if !o.climbsHill() {
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

// Defaults returns the default options, without data and folder.
func Defaults() Options {
	return Options{
		Train: train.Options{DAG: "graph", Stores: 1, Job: &taxonv1.Options{}, Said: registry.Values{}},
		Grid:  Grid{Values: map[string][]string{}},
		Folds: 5, Goal: "micro", Patience: 2, Time: SomeTime,
	}
}

// Validate fills in the options that all trainings share. It returns one error that lists
// everything wrong.
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
	if g.Text {
		shared.Words.Options = text.Options{} // checkText has checked them beside the values of features
	}
	return option.Join(append(wrong, shared.Validate("tune"))...)
}

// fits returns the reason why no method accepts a value, or nil if one does.
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

// goalOf returns a measure by its key. The keys micro and macro stand for the F1 measures.
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

// tried returns the number of folds on which a point that is not dropped is tried.
func (o *Options) tried() int {
	if o.FirstFolds > 0 {
		return o.FirstFolds
	}
	return o.Folds
}

// job returns the options of a point's trainings. They are the point's own options, and the options
// in Train.Job and Train.Said that its method has.
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
			job.Set(option.WireKey(), "") // this removes it
		}
	}
	_ = registry.Fill(job, said) // Validate has checked the values
	return job
}

// trial returns the options of the search's trainings of a point, with a time limit in seconds.
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
