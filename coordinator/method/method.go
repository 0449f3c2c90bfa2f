// Package method is the interface between the coordinator and the methods that it trains by.
//
// The coordinator knows items, families of values, and steps. A step is a set of tasks that do
// not depend on each other. A task applies one operation to one item: it reads values that
// earlier steps have committed, and writes values. A Method says what the items and values of a
// problem are. Its Driver decides which step comes next. Neither sees vectors: they stay with the
// workers, whose side of the interface is worker/program.
//
// Everything here is pure: the same problem, options and sums give the same steps. A method is
// a folder of internal/methods, whose package plan implements Method and registers it with
// method/registry.
package method

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
)

// Problem is the problem that a job solves. It must not be changed.
type Problem struct {
	// Spec holds the options, the figures of the data, and the structure as it was given.
	Spec *taxonv1.JobSpec
	// Tree is the tree or graph that is trained. Empty leaves are pruned from it unless the options
	// keep them, and a leaf is added below each internal node that has instances of its own.
	Tree *taxonomy.Tree
}

// Method trains linear classifiers for the nodes of a problem.
type Method interface {
	// Name is the value of --method.
	Name() string
	// About is one line of help: what is trained.
	About() string
	// Options returns the options that the method has in addition to JobOptions. If two methods
	// have an option of the same name, its kind and its group are the same.
	Options() []Option
	// Traits returns the traits of jobs with the given options.
	Traits(*taxonv1.Options) Traits
	// Check returns the reasons why the problem can't be trained, all joined, or nil if it can. The
	// values of the options agree with their declarations.
	Check(*Problem) error
	// Plan cuts the problem into items. It depends on data, structure, options and seed alone.
	Plan(*Problem) (*Plan, error)
	// Estimate returns the memory and the time that a plan takes.
	Estimate(*Problem, *Plan) Estimate
	// Driver returns a driver that continues from a State, which a driver of the same plan gave. A
	// nil State stands for the start.
	Driver(*taxonv1.JobSpec, *Plan, State) (Driver, error)
}

// Plan describes how a problem is cut into items, which tasks work on.
type Plan struct {
	Items     []Items    // lists of items, numbered by their place here
	Variables []Variable // their names are unique
	Sums      []Sum      // the figures that each task reports, in this order

	Nodes, Terminals, Internals int // numbers of nodes in the tree or graph
	// Rooted is a copy of Traits.Rooted, which workers need to build the same tree.
	// registry.Prepare sets it.
	Rooted bool
	// Detail is what the method's workers need besides the specification, in the method's own
	// encoding (Encode).
	Detail []byte
}

// Kind tells what an item of a list stands for.
type Kind uint8

// These are the kinds of items.
const (
	Whole     Kind = iota // the whole problem
	Terminals             // blocks of nodes that have a loss
	Rows                  // shards of the instances
	Ranges                // feature ranges
	Nodes                 // nodes, or blocks of them
	Chains                // chains of draws
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"whole problem", "block", "row shard", "feature range", "node", "chain"}[min(k, Chains)]
}

// Items is a list of like items. Tasks are about one item each.
type Items struct {
	Kind  Kind
	Count int
	// Cost is the estimated cost of each item, in nonzero visits of one pass over the data. A nil
	// Cost is unknown. Cost decides the order of the tasks, and never the results.
	Cost []float64
	// Members lists the tree nodes of an item, for messages. It is nil if items have no nodes.
	Members func(item int) []uint32
}

// Variable is a state variable of the algorithm, which has a value for each item of a list. A value
// may be a group, which its task writes under names that begin with Name and a slash.
type Variable struct {
	Name string
	// Items is the number of the list.
	Items int
	// Versions is how many of the last committed versions may be read, at least 1.
	Versions int
	// Whole says that the values of one version belong together: a step that left tasks out
	// publishes none.
	Whole bool
	// Cut says that each value is cut into parts, one for each item of another list.
	Cut bool
	// By is the number of that list, if Cut is set. The part for item i is named Name/i, and is read
	// by the task of that item alone.
	By int
}

// Sum is a figure that tasks report.
type Sum struct {
	Name  string
	Count bool // a whole number
}

// Sums are a task's figures, in the order of Plan.Sums.
type Sums []float64

// maxCount is the largest count that float64 holds exactly.
const maxCount = 1 << 53

// Check returns the reason why a task of the plan can't have reported such figures, or nil if it
// can.
func (p *Plan) Check(s Sums) error {
	if !s.Finite() {
		return ErrNotFinite
	}
	for i, x := range s {
		if p.Sums[i].Count && !(x >= 0 && x <= maxCount && x == math.Trunc(x)) {
			return fmt.Errorf("its figure %q is %g, and must be a whole number of at least 0", p.Sums[i].Name, x)
		}
	}
	return nil
}

// Finite reports whether all figures are numbers that can be added up.
func (s Sums) Finite() bool {
	for _, x := range s {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// Step is a set of tasks that do not depend on each other.
type Step struct {
	Sweep uint32 // from 1
	Phase string // as users see it
	Tasks []Tasks
	// Emit says that the tasks write the final weights. No step follows.
	Emit bool `json:",omitempty"`
	// Show says that the tasks write the weights of the current sweep, which are then evaluated.
	Show bool `json:",omitempty"`
}

// Tasks do the same operation to a run of items of one list.
type Tasks struct {
	Op     string // what the program is to do
	Items  int    // list of items
	First  uint32
	Count  uint32
	Params json.RawMessage `json:",omitempty"` // the operation's, the same for all tasks (Encode)
	Reads  []Read          `json:",omitempty"`
	Writes []string        `json:",omitempty"` // variables of which the tasks write values
	// Timed says that the time of a task predicts the time of the item's next task.
	Timed bool `json:",omitempty"`
	// Late holds the parameters of the tasks that no worker has when the time is up; see
	// Driver.TimeUp.
	Late json.RawMessage `json:",omitempty"`
}

// Read names values that a task reads.
type Read struct {
	Value string
	// Back selects the version: 0 is the last committed version, 1 is the one before it, and so on.
	Back int `json:",omitempty"`
	// All reads the values of all items. Otherwise a task reads the value of its own item.
	All bool `json:",omitempty"`
}

// CheckStep returns the reason why a driver can't go on with a step: parameters that are not
// finite, or tasks that do not fit the plan, because somebody made up the driver's state.
func (p *Plan) CheckStep(s *Step) error {
	for _, t := range s.Tasks {
		if string(t.Params) == notFinite || string(t.Late) == notFinite {
			return ErrNotFinite
		}
		fits := uint64(t.First)+uint64(t.Count) <= uint64(p.List(t.Items).Count)
		for _, r := range t.Reads {
			v := p.Variable(r.Value)
			fits = fits && v != nil && r.Back >= 0 && r.Back < v.Versions
		}
		if !fits || slices.ContainsFunc(t.Writes, func(name string) bool { return p.Variable(name) == nil }) {
			return fmt.Errorf("its step %s is not one of its plan", s.Phase)
		}
	}
	return nil
}

// Finite reports whether a driver can be written into a checkpoint. It can if all of its numbers
// are finite, including the numbers of its certificate and of its report.
func Finite(d Driver) bool {
	p := d.Progress()
	if string(d.State()) == notFinite || string(p.Report) == notFinite {
		return false
	}
	c := p.Certificate
	return c == nil || Sums{c.Objective, c.Dual, c.Gap, c.Left}.Finite()
}

// State is the state of a driver between two steps, encoded as JSON. A checkpoint holds it.
type State = json.RawMessage

// Driver is the scalar part of a method's iteration: which step is next, with what parameters. It
// is deterministic. Only one goroutine may use it at a time.
type Driver interface {
	// Next decides on the next step, when no step is running. It returns false if the job has
	// nothing left to do.
	Next() (Step, bool)
	// Step returns the step that Next decided on. It is for a driver that continues in the middle
	// of it.
	Step() (Step, bool)
	// Commit adds up the sums of that step's tasks, in task order, and goes to the next step. Tasks
	// that were left out have nil sums. An error ends the job.
	Commit([]Sums) (Outcome, error)
	// TimeUp tells the driver whether the job's time is up. If so, the job ends as soon as it
	// can, with a certificate of its present state. The result says what becomes of the tasks of
	// the current step that no worker has yet.
	TimeUp(up bool) DeadlinePolicy
	// Resume continues a job that its stopping criteria had ended, if the driver's options allow
	// it. The options may differ from those before. If retarget is set, the tolerance has changed.
	Resume(retarget bool)
	// Progress returns the state of the iteration.
	Progress() Progress
	State() State
}

// Lookahead is a Driver that may know the next step before the step that Next gave has ended,
// because the next step's parameters do not depend on its sums.
type Lookahead interface {
	// Ahead returns that step, and whether it is known. If again is set, the step may run a second
	// time from the same inputs.
	Ahead() (next Step, again, known bool)
}

// WarmStarter is a Driver whose iteration depends on where it begins.
type WarmStarter interface {
	// WarmStart tells the driver, before its first step, which variables start from given values.
	WarmStart(families []string)
}

// Traits are what callers know of a method besides its plans. The zero value describes a method
// that trains the nodes of a structure jointly, into models of the zero Form.
type Traits struct {
	// Form is what a model's records hold and how it predicts.
	Form form.Form
	// Unstructured says that the method trains without a structure, too. A structure given to it is
	// for evaluation only.
	Unstructured bool
	// Rooted says that the method places the classes below a root even without a structure. The
	// root then has a vector of its own.
	Rooted bool
	// Separate says that each class is trained for itself, against all others. One sweep then comes
	// close to the optimum.
	Separate bool
	// Populated says that a class is trained only on data with positive and negative instances of
	// it. Trainings on a subset of the rows leave out a class that does not have both there.
	Populated bool
	// Searched says that a search for options tries the method where none is named. It is false for
	// baselines.
	Searched bool
}

// Warner is a Method that can train some problems only with a reservation.
type Warner interface {
	// NoGap returns nil if a job has a gap that training can reduce to a tolerance. Otherwise it
	// returns the reason why there is none, which begins with an option's name.
	NoGap(*taxonv1.JobSpec) error
	// Warnings returns the warnings that the user sees before a problem that Check has accepted is
	// trained.
	Warnings(*Problem) []string
}

// DeadlinePolicy selects what happens to the tasks that no worker has when the time limit is reached.
type DeadlinePolicy uint8

// These are the policies.
const (
	// RunFull runs the tasks unchanged.
	RunFull DeadlinePolicy = iota

	// RunReduced runs the tasks with the parameters Tasks.Late, which make them cheaper.
	RunReduced

	// Skip leaves the tasks out. The values of their items do not change.
	Skip
)

// Outcome describes what follows from a committed step.
type Outcome struct {
	// Drop lists the variables whose values, written by the step, are discarded.
	Drop []string
	// Forget lists the variables whose oldest version no step reads any more.
	Forget []string
	// SweepDone says that the step was the last one of its sweep.
	SweepDone bool
	// Phase names the step in the sweep's line of the trace. An empty Phase stands for Step.Phase.
	Phase string
	// Certified says that the sweep has a certificate, which is Progress().Certificate.
	Certified bool
}

// These are the kinds of certificates.
const (
	// Gap certificates have a Dual that bounds the optimum from below.
	Gap = "gap"
	// LowerBound certificates have a lower bound on the evidence. From sweep to sweep the bound
	// never falls.
	LowerBound = "lower_bound"
	// Stationarity certificates have no bound. They say how far the iteration still moves.
	Stationarity = "stationarity"
)

// Certificate is what is known about the distance to the optimum.
type Certificate struct {
	Objective, Dual, Gap float64
	// PrimalOnly says that Dual and Gap are undefined.
	PrimalOnly bool `json:",omitempty"`
	// Left takes the place of Gap if PrimalOnly is set. The job ends when Left is at most
	// Progress.Tolerance. Zero means that it is not known.
	Left float64 `json:",omitempty"`
	// Kind is the kind of the certificate. An empty Kind stands for Gap, or for Stationarity if
	// PrimalOnly is set.
	Kind string `json:",omitempty"`
}

// String returns the gap in words or, where there is none, the objective.
func (c *Certificate) String() string {
	switch {
	case c == nil:
		return "no certificate"
	case c.PrimalOnly:
		return fmt.Sprintf("objective %.8g", c.Objective)
	}
	return fmt.Sprintf("gap %.3g", c.Gap)
}

// Progress is the state of an iteration.
type Progress struct {
	// Sweep is the current sweep.
	Sweep uint32
	// Certificate is the last certificate. It is nil before the first one.
	Certificate *Certificate
	// StoppedBy is one of the reasons below. It is empty while the iteration continues.
	StoppedBy string
	// Tolerance is the Gap, or the value of Left, at which the job ends.
	Tolerance float64
	// MaxSweeps is the greatest number of sweeps. Zero stands for no limit.
	MaxSweeps uint32
	// Report holds the method's own figures for the job's report, a JSON object. Its keys are added
	// to those that all reports have. It is nil if there are no figures, or none yet.
	Report json.RawMessage `json:",omitempty"`
}

// These are the reasons why a job stopped (JobStatus.stopped_by).
const (
	StoppedByGap        = "gap"
	StoppedByMaxSweeps  = "max_sweeps"
	StoppedByMaxTime    = "max_time"
	StoppedByStationary = "stationary"
	StoppedByEarlyStop  = "early_stop" // an evaluation was good enough
	StoppedByCancelled  = "cancelled"
)

// StoppedBy returns the reason why a job ends after a sweep, or "" if it continues. If there are
// several reasons, the tolerance comes first. Zero maxSweeps stands for no limit.
func StoppedBy(reached bool, sweep, maxSweeps uint32, timeUp, stationary bool) string {
	switch {
	case reached:
		return StoppedByGap
	case maxSweeps > 0 && sweep >= maxSweeps:
		return StoppedByMaxSweeps
	case timeUp:
		return StoppedByMaxTime
	case stationary:
		return StoppedByStationary
	}
	return ""
}

// ErrNotFinite ends a training whose numbers have left the range of float64.
var ErrNotFinite = errors.New("the objective is not finite: scale the instances to unit length, or lower C " +
	"if the method has one")

// CheckFinite returns ErrNotFinite if an objective or its gap is no number.
func CheckFinite(objective, gap float64) error {
	if math.IsNaN(gap) || math.IsInf(gap, 0) || math.IsInf(objective, 0) {
		return ErrNotFinite
	}
	return nil
}

// RelativeGap returns (P-D)/P for the objective P and its bound D, and never less than 0.
func RelativeGap(primal, dual float64) float64 {
	if primal == dual { // both may be 0
		return 0
	}
	return max((primal-dual)/primal, 0) // rounding may put the dual a few units above
}

// NodeFigures are the figures of a node's problem in a report, under the key per_node.
type NodeFigures struct {
	Node      string  `json:"node"`
	Objective float64 `json:"objective"`
	Dual      float64 `json:"dual"`
}

// PerNode lists the figures of the problems of all nodes.
func PerNode(nodes []string, primal, dual []float64) []NodeFigures {
	list := make([]NodeFigures, len(primal))
	for k := range list {
		list[k] = NodeFigures{nodes[k], primal[k], dual[k]}
	}
	return list
}

// Restore reads a driver's state from a checkpoint, which must be at a stage up to last. It clears
// the state first, as a checkpoint may leave out fields that are zero. A nil checkpoint changes
// nothing. stage points to a field of the state.
func Restore[T any, S ~uint8](s State, state *T, stage *S, last S) error {
	if s == nil {
		return nil
	}
	*state = *new(T)
	if err := json.Unmarshal(s, state); err != nil {
		return err
	}
	if *stage > last {
		return fmt.Errorf("it stands at stage %d, which this version does not know", *stage)
	}
	return nil
}

// ByCriteria reports whether a job that stopped for this reason might continue with other stopping
// criteria.
func ByCriteria(reason string) bool {
	return reason == StoppedByGap || reason == StoppedByMaxSweeps || reason == StoppedByMaxTime
}

// notFinite is what Encode writes in place of something with a number that is not finite.
const notFinite = "NaN"

// Encode writes parameters, a driver's state or a plan's detail. v holds numbers, strings and lists
// of them; floats read back to the same bits. The result is no JSON if a number is not finite: see
// Finite and CheckStep.
func Encode(v any) []byte {
	out, err := json.Marshal(v)
	if errors.As(err, new(*json.UnsupportedValueError)) {
		return []byte(notFinite)
	}
	if err != nil {
		panic(fmt.Sprintf("method: %T can't be encoded: %v", v, err))
	}
	return out
}

// Decode reads what Encode wrote into v.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("written by another version of taxon: %w", err)
	}
	return nil
}

// List returns the plan's list of items of a number, for messages and checks.
func (p *Plan) List(n int) Items {
	if n < 0 || n >= len(p.Items) {
		return Items{}
	}
	return p.Items[n]
}

// String describes the work of a sweep in words.
func (p *Plan) String() string {
	var out []string
	for _, list := range p.Items {
		s := "s"
		if list.Count == 1 {
			s = ""
		}
		out = append(out, fmt.Sprintf("%d %s%s", list.Count, list.Kind, s))
	}
	return strings.Join(out, ", ")
}

// First returns the number of items in all lists before list n.
func (p *Plan) First(n int) (first int) {
	for _, list := range p.Items[:n] {
		first += list.Count
	}
	return first
}

// Variable returns the variable of a name, or nil if there is none.
func (p *Plan) Variable(name string) *Variable {
	for i := range p.Variables {
		if p.Variables[i].Name == name {
			return &p.Variables[i]
		}
	}
	return nil
}

// Violations returns the messages of all errors in one line, or nil if there are none.
func Violations(errs ...error) error {
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// NoStructure refuses problems with a structure, for methods that train without one.
func NoStructure(name string, p *Problem) error {
	if p.Tree.IsGraph() || len(p.Tree.Internals()) > 0 {
		return fmt.Errorf("the job has a structure, and method %s is trained without one: leave it out", name)
	}
	return nil
}

// OneLabelEach refuses data with an instance that does not have exactly one label. `what` is the
// method that needs this, `instead` one that does not. Workers check again on the data itself.
func OneLabelEach(d *taxonv1.Data, what, instead string) error {
	if d.GetSeveralLabels() == 0 && d.GetNoLabel() == 0 {
		return nil
	}
	first := ""
	if n := d.GetFirstNotOne(); n > 0 {
		first = fmt.Sprintf("; the first is instance %d", n)
	}
	return fmt.Errorf("%s takes instances of exactly one label; of %d, %d have several and %d none%s: leave "+
		"those out, or use %s",
		what, d.GetInstances(), d.GetSeveralLabels(), d.GetNoLabel(), first, instead)
}
