// Package program is the interface between the worker and the methods that it trains by. The worker
// knows tasks and values; a method's program knows what a task computes, reads and writes. The
// coordinator's side of the interface is coordinator/method.
//
// A method's program is the package program of its folder in internal/methods, and registers itself
// here. What a program writes must depend on the task alone, never on which worker ran it or what
// that worker ran before. It may cache only values that the store would return as well.
package program

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// KernelVariable is the environment variable that forces one of mapper's kernels. With any but
// avx512 the reducer's loops are plain Go, too.
const KernelVariable = "TAXON_KERNEL"

// SeedStep is the step that the values of a warm start are stored under; the first step of the job
// itself comes after it. The value of item i of list k has the key of attempt 1 of task offset + i,
// where offset is the number of items of the lists before k.
const SeedStep = 1

// Method opens the programs of a method's jobs.
type Method interface {
	// Name is the value of --method.
	Name() string
	// Open prepares what the job's tasks share. Its errors are deterministic: other workers would
	// return them as well.
	Open(*Job) (Program, error)
}

// methods are the registered methods by name.
var methods = map[string]Method{}

// Register adds methods to those whose tasks a worker can run. A method's package calls it in init.
// It panics if the name of a method is taken.
func Register(added ...Method) {
	for _, m := range added {
		if methods[m.Name()] != nil {
			panic("two programs have the name " + m.Name())
		}
		methods[m.Name()] = m
	}
}

// Add adds one more method, of a test, until remove is called. It must not be called while another
// goroutine looks methods up.
func Add(m Method) (remove func()) {
	before := methods[m.Name()]
	methods[m.Name()] = m
	return func() {
		if methods[m.Name()] = before; before == nil {
			delete(methods, m.Name())
		}
	}
}

// Names lists the names of the methods, sorted.
func Names() []string { return slices.Sorted(maps.Keys(methods)) }

// Lookup returns the method of a name. Its error is marked by Unfit.
func Lookup(name string) (Method, error) {
	if m := methods[name]; m != nil {
		return m, nil
	}
	return nil, Unfit(fmt.Errorf("this worker does not know method %q: it is older than the coordinator; "+
		"install the same version", name))
}

// Job is a training as its program sees it. Programs must not change it.
type Job struct {
	// ID is the job's id, which keys of its values begin with.
	ID string

	// Spec is the job's specification.
	Spec *taxonv1.JobSpec

	// Plan is the coordinator's plan, with the method's Detail.
	Plan *taxonv1.Plan

	// Tree is the tree or graph that is trained, as the coordinator has built it too.
	Tree *taxonomy.Tree

	// Set is the data, restricted to the rows of the job.
	Set *dataset.Set

	// NoCache says that no task reads what another task of this process has written, so that
	// caching it is useless.
	NoCache bool

	// Unwanted reports whether nobody waits for Open any more. Long work should check it and return
	// early; its result is dropped. A nil Unwanted means that somebody always waits.
	Unwanted func() bool
}

// Program runs a job's tasks. It must be safe for several goroutines.
type Program interface {
	// Run runs a task and returns its figures, one for each of the plan's sums. It returns soon
	// after ctx ends. An error made by Deterministic fails the job.
	Run(context.Context, *Task) (method.Sums, error)
}

// InitialWeights returns the weights that a node of a job begins with, as ascending columns, the
// bias last, and values. In a tree they are the entries in which the node differs from its parent,
// so a node that begins at its parent has none. In a graph they are all nonzeros.
type InitialWeights func(node int) (columns []uint32, values []float32)

// WarmStarter is implemented by a Program whose job can begin at given weights.
type WarmStarter interface {
	// WarmStart returns the values that the job begins with, under the keys that SeedStep
	// describes, and the names of their families.
	WarmStart(ctx context.Context, from InitialWeights) (values []store.Value, families []string, err error)
}

// StateConverter is implemented by a Method whose jobs can begin where a job with other options
// ended (engine.Branch).
type StateConverter interface {
	// ConvertedFamilies returns the names of the families that the new job begins with.
	ConvertedFamilies() []string
	// ConvertValue turns a value of such a family, written by the finished job, into a value of the
	// new job.
	ConvertValue(name string, data []byte, from, to *taxonv1.Options) ([]byte, error)
}

// deterministicError is an error that every worker would return.
type deterministicError struct{ error }

func (e deterministicError) Unwrap() error { return e.error }

// Deterministic marks an error that the same task would return on every worker, so that retrying is
// pointless. Deterministic(nil) is nil.
func Deterministic(err error) error {
	if err == nil {
		return nil
	}
	return deterministicError{err}
}

// UnknownOperation returns the error of a task whose operation the program does not have.
func UnknownOperation(op string) error {
	return Deterministic(fmt.Errorf("this worker does not know operation %q: it is older than the coordinator", op))
}

// IsDeterministic reports whether an error in err's chain was marked by Deterministic.
func IsDeterministic(err error) bool {
	var d deterministicError
	return errors.As(err, &d)
}

// unfitError is an error that every task of the job would return on this worker.
type unfitError struct{ error }

func (e unfitError) Unwrap() error { return e.error }

// Unfit marks an error that is due to the configuration of this worker: every task of the job would
// return it here, but not on other workers. Unfit(nil) is nil.
func Unfit(err error) error {
	if err == nil {
		return nil
	}
	return unfitError{err}
}

// IsUnfit reports whether an error in err's chain was marked by Unfit.
func IsUnfit(err error) bool {
	var u unfitError
	return errors.As(err, &u)
}
