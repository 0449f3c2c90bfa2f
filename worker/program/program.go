// Package program is the seam between the worker and the methods. The worker knows tasks and
// values. A method's program knows what a task computes, reads and writes. The coordinator's side
// of the seam is coordinator/method.
//
// A method's program lives in a package below this one and is listed in program/registry. What it
// writes depends on the task alone, never on which worker runs it or what that worker ran before.
// Its caches hold only values that the store could give again.
package program

import (
	"context"
	"errors"
	"fmt"

	"taxon/coordinator/method"
	"taxon/internal/dataset"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// KernelVariable is the environment variable that selects one of mapper's kernels.
const KernelVariable = "TAXON_KERNEL"

// SeedStep is the step under which the values of a warm start are stored; the job's own steps
// come after it. Item i of list k is stored as if task offset + i had written it at attempt 1,
// where offset is the number of items in the lists before k.
const SeedStep = 1

// Method makes programs.
type Method interface {
	// Name is the value of --method.
	Name() string
	// Open prepares what the job's tasks share. Its errors are deterministic.
	Open(*Job) (Program, error)
}

// Rooted says whether a method without a structure hangs the classes below a root: see
// method.Rooted. The coordinator's half of the method must say the same.
func Rooted(m Method) bool {
	r, ok := m.(method.Rooted)
	return ok && r.Rooted()
}

// Job is a training as its program sees it. Read-only.
type Job struct {
	ID   string
	Spec *taxonv1.JobSpec
	Plan *taxonv1.Plan
	Tree *taxonomy.Tree
	Set  *dataset.Set
	// NoCache: no task reads what another task of this process wrote, so nothing need be kept.
	NoCache bool
}

// Program runs a job's tasks. For several goroutines.
type Program interface {
	// Run runs a task, and gives up when ctx ends. It returns a figure for each of the plan's
	// sums. An error marked by Deterministic fails the job.
	Run(context.Context, *Task) (method.Sums, error)
}

// InitialWeights gives the weights with which a job begins. For each tree node, in ascending
// order, it gives the columns (the bias last) where the node differs from its parent, and the
// node's values there. A node that begins at its parent has none. On a graph it gives all
// nonzeros of a node.
type InitialWeights func(node int) (columns []uint32, values []float32)

// WarmStarter is a Program whose job can begin at given weights.
type WarmStarter interface {
	// WarmStart makes the values with which the job begins, under keys as described at SeedStep,
	// and names their families.
	WarmStart(ctx context.Context, from InitialWeights) (values []store.Value, families []string, err error)
}

// Carrier is a Method whose jobs can begin at the result of a job with other options
// (engine.Branch).
type Carrier interface {
	// Carried names the families with which the new job begins.
	Carried() []string
	// Carry turns a value of such a family, as the finished job wrote it, into one of the new
	// job.
	Carry(name string, data []byte, from, to *taxonv1.Options) ([]byte, error)
}

// deterministicError is an error that every worker would meet.
type deterministicError struct{ error }

func (e deterministicError) Unwrap() error { return e.error }

// Deterministic marks an error that the same task would meet on every worker, so that it is
// pointless to try again. Deterministic(nil) is nil.
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

// unfitError is an error that this worker meets with every task of the job.
type unfitError struct{ error }

func (e unfitError) Unwrap() error { return e.error }

// Unfit marks an error that is due to how this worker is set up. This worker would meet it with
// every task of the job; others would not. Unfit(nil) is nil.
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
