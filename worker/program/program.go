// Package program is the seam between the worker and the methods that it trains by: what a
// method's code is given, and what it gives back. The worker knows tasks and values. A method's
// program knows what a task computes, reads and writes. The coordinator's side of the seam is
// coordinator/method.
//
// A method's program is the package program of its folder in internal/methods, and registers itself
// here. What it writes depends on the task alone, never on which worker ran it or what that worker ran before.
// Its caches hold only values that the store would give again.
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

// KernelVariable names the environment variable that forces one of mapper's kernels. With any but
// avx512 the reducer's loops are plain Go, too.
const KernelVariable = "TAXON_KERNEL"

// SeedStep is the step that a job's seeds are stored under: its first own one comes after.
// Item i of list k is seeded as written by task offset + i, attempt 1; offset is the number of
// items of the lists before k.
const SeedStep = 1

// Method makes programs.
type Method interface {
	// Name is the value of --method.
	Name() string
	// Open prepares what the job's tasks share. Its errors come again anywhere.
	Open(*Job) (Program, error)
}

// methods are those that have registered themselves.
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

// Add lists one more method, of a test's own, until remove is called. Not for use while another
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

// Names lists the methods, sorted.
func Names() []string { return slices.Sorted(maps.Keys(methods)) }

// Lookup finds a method by its name. The error is marked by Unfit.
func Lookup(name string) (Method, error) {
	if m := methods[name]; m != nil {
		return m, nil
	}
	return nil, Unfit(fmt.Errorf("this worker does not know method %q: it is older than the coordinator; install the same version", name))
}

// Job is a training as its program sees it. Read-only.
type Job struct {
	ID   string
	Spec *taxonv1.JobSpec
	Plan *taxonv1.Plan
	Tree *taxonomy.Tree
	Set  *dataset.Set
	// NoCache: no task reads what another one of this process has written, so nothing of it need be kept.
	NoCache bool
	// Unwanted says that nobody waits for the job's opening any more: what takes long ends early then,
	// and what it gives is of no use. nil: never.
	Unwanted func() bool
}

// Program runs a job's tasks. For several goroutines.
type Program interface {
	// Run runs a task, to the end of ctx at most, and returns its figures, one for each of
	// the plan's sums. An error made by Deterministic fails the job.
	Run(context.Context, *Task) (method.Sums, error)
}

// InitialWeights gives the weights that a job is to begin with: of each tree node, ascending, the
// columns (the bias last) where it differs from its parent, with its values there; nothing
// for a node that begins at its parent. Of a graph's nodes: all nonzeros.
type InitialWeights func(node int) (columns []uint32, values []float32)

// WarmStarter is a Program whose job can begin at given weights.
type WarmStarter interface {
	// WarmStart makes the values that the job begins with, under the keys that SeedStep
	// tells of, and names their families.
	WarmStart(ctx context.Context, from InitialWeights) (values []store.Value, families []string, err error)
}

// StateConverter is a Method whose jobs can begin where one of other options stands (engine.Branch).
type StateConverter interface {
	// ConvertedFamilies names the families that the new job begins with.
	ConvertedFamilies() []string
	// ConvertValue turns a value of such a family, of the finished job, into one of the new job.
	ConvertValue(name string, data []byte, from, to *taxonv1.Options) ([]byte, error)
}

// deterministicError is an error that would come again anywhere.
type deterministicError struct{ error }

func (e deterministicError) Unwrap() error { return e.error }

// Deterministic marks an error that the same task would meet again on any worker, so that
// trying again is pointless. Deterministic(nil) is nil.
func Deterministic(err error) error {
	if err == nil {
		return nil
	}
	return deterministicError{err}
}

// UnknownOperation is the error of a task whose operation the program does not have.
func UnknownOperation(op string) error {
	return Deterministic(fmt.Errorf("this worker does not know operation %q: it is older than the coordinator", op))
}

// IsDeterministic says whether an error in err's chain was marked by Deterministic.
func IsDeterministic(err error) bool {
	var d deterministicError
	return errors.As(err, &d)
}

// unfitError is an error that this worker meets again with any task of the job.
type unfitError struct{ error }

func (e unfitError) Unwrap() error { return e.error }

// Unfit marks an error that is due to how this worker is set up: it would come again here
// with any task of the job, but not on others. Unfit(nil) is nil.
func Unfit(err error) error {
	if err == nil {
		return nil
	}
	return unfitError{err}
}

// IsUnfit says whether an error in err's chain was marked by Unfit.
func IsUnfit(err error) bool {
	var u unfitError
	return errors.As(err, &u)
}
