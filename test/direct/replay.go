package direct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/jobspec"
	"taxon/internal/linalg/contribution"
	rr "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/test/jobs"
	"taxon/worker/program"
)

// Replay is the state of a training without the runtime.
type Replay struct {
	plan     *rr.Plan
	set      *dataset.Set
	tree     *taxonomy.Tree
	forest   *reducer.Forest
	internal []int32 // tree node -> internal node; -1 for a terminal
	problem  *mapper.Problem
	features int

	blocks []solved                           // last committed output, by block
	x      map[taxonv1.Place]*reducer.Vectors // vectors by the REDUCE task that wrote them
	zero   *reducer.Vectors
	lists  joined
	nodes  jobs.Nodes // weights of the last EMIT step
}

// solved is the output of a MAP task.
type solved struct {
	at    taxonv1.Place
	state *mapper.State
	in    []contribution.Contribution
}

// made is the output of a task, which is committed after its step.
type made struct {
	solved  solved
	vectors *reducer.Vectors
	weights []mapper.Override
}

// New prepares a recorded job on its data.
func New(job *taxonv1.JobResult, set *dataset.Set) (*Replay, error) {
	spec := job.GetSpec()
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		return nil, err
	}
	o, err := rr.SettingsOf(spec.GetOptions())
	if err != nil {
		return nil, err
	}
	loss, err := mapper.ParseLoss(o.Loss)
	if err != nil {
		return nil, err
	}
	plan, err := rr.Detail(job.GetPlan().GetDetail())
	if err != nil {
		return nil, err
	}
	r := &Replay{plan: plan, set: set, tree: tree, x: map[taxonv1.Place]*reducer.Vectors{}}
	r.problem = mapper.NewProblem(set.Matrix, loss, o.C, float32(o.Bias))
	if r.problem.Kernel, err = mapper.ParseKernel(os.Getenv(program.KernelVariable)); err != nil {
		return nil, err
	}
	r.features = int(r.plan.RangeBegin[len(r.plan.RangeBegin)-1])
	r.blocks = make([]solved, len(r.plan.BlockBegin)-1)
	r.number(&o)
	r.zero = reducer.Zero(len(r.forest.Parent))
	return r, nil
}

// number numbers the internals in depth-first order.
func (r *Replay) number(o *rr.Settings) {
	sets, _ := rr.NodeSets(r.tree, o)
	internals := r.tree.Internals()
	n := len(internals)
	r.forest = &reducer.Forest{Parent: make([]int32, n), Terminals: make([]int32, n), Children: make([]int32, n),
		Set: make([]int32, n)}
	r.internal = make([]int32, r.tree.Len())
	for i := range r.internal {
		r.internal[i] = -1
	}
	for p, i := range internals {
		r.internal[i] = int32(p)
		r.forest.Set[p] = int32(sets[i])
	}
	for i := range r.internal {
		up := r.parent(uint32(i))
		if p := r.internal[i]; p >= 0 {
			r.forest.Parent[p] = up
		}
		if up >= 0 && r.tree.Leaf[i] {
			r.forest.Terminals[up]++
		} else if up >= 0 {
			r.forest.Children[up]++
		}
	}
}

// parent returns the internal above a tree node, or -1 if that is the zero vector.
func (r *Replay) parent(n uint32) int32 {
	if p := r.tree.Parent[n]; p >= 0 {
		return r.internal[p]
	}
	return -1
}

// Run runs all steps, the tasks of each on several goroutines. It checks that every task gives the
// recorded figures, and returns the final weights.
func (r *Replay) Run(ctx context.Context, steps [][]Task, slots int) (*jobs.Nodes, error) {
	benches := make([]*bench, max(slots, 1))
	for k := range benches {
		benches[k] = r.newBench()
	}
	for _, tasks := range steps {
		results, errs := make([]made, len(tasks)), make([]error, len(tasks))
		var next atomic.Int64
		var group sync.WaitGroup
		for _, b := range benches {
			group.Go(func() {
				for k := next.Add(1) - 1; int(k) < len(tasks); k = next.Add(1) - 1 {
					results[k], errs[k] = b.run(ctx, tasks[k])
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		r.commit(tasks, results)
	}
	return &r.nodes, nil
}

// keptSteps is the number of steps for which internals are kept: a lease may refer to the last two
// updates of them, which are a few steps apart.
const keptSteps = 12

// commit makes a step's results available to later steps.
func (r *Replay) commit(tasks []Task, results []made) {
	emit := jobs.Nodes{Columns: make([][]uint32, r.tree.Len()), Values: make([][]float32, r.tree.Len())}
	emitted := false
	for k, t := range tasks {
		m := results[k]
		switch l := t.Lease; l.GetOp() {
		case rr.OpMap:
			r.blocks[l.GetItem()] = m.solved
		case rr.OpReduce:
			r.x[place(l)] = m.vectors
		case rr.OpEmitMap:
			emitted = true
			for lane, n := range r.plan.Block(int(l.GetItem())) {
				emit.Columns[n], emit.Values[n] = m.weights[lane].Feature, m.weights[lane].Value
			}
		case rr.OpEmitReduce:
			for p, n := range r.tree.Internals() {
				a, b := m.vectors.Begin[p], m.vectors.Begin[p+1]
				emit.Columns[n] = append(emit.Columns[n], m.vectors.Feature[a:b]...)
				emit.Values[n] = append(emit.Values[n], m.vectors.Value[a:b]...)
			}
		}
	}
	if emitted {
		r.nodes = emit
	}
	for at := range r.x {
		if at.Step+keptSteps < tasks[0].Lease.Step {
			delete(r.x, at)
		}
	}
}

func place(l *taxonv1.Lease) taxonv1.Place {
	return taxonv1.Place{Step: l.GetStep(), Task: l.GetTask(), Attempt: l.GetAttempt()}
}

// reads returns the places from which a lease reads a family.
func reads(l *taxonv1.Lease, family string, back uint32) []taxonv1.Place {
	for _, in := range l.GetInputs() {
		if in.GetValue() == family && in.GetBack() == back {
			return in.GetRefs().Expand()
		}
	}
	return nil
}

// joined caches the internals over all ranges that were requested last: x and x_prev.
type joined struct {
	mu   sync.Mutex
	last [2]*reducer.Internals
}

// internals joins the vectors that a lease names over all ranges.
func (r *Replay) internals(l *taxonv1.Lease, back uint32) (*reducer.Internals, error) {
	parts, err := r.vectors(l, back)
	if err != nil {
		return nil, err
	}
	r.lists.mu.Lock()
	defer r.lists.mu.Unlock()
	for _, v := range r.lists.last {
		if v != nil && slices.Equal(v.Parts, parts) {
			return v, nil
		}
	}
	v := &reducer.Internals{Parts: parts, Nodes: make([]int32, len(r.forest.Parent))}
	for p := range v.Nodes {
		v.Nodes[p] = int32(p)
	}
	r.lists.last = [2]*reducer.Internals{v, r.lists.last[0]}
	return v, nil
}

// vectors returns the internals' vectors that a lease names, in their last version or the one
// before.
func (r *Replay) vectors(l *taxonv1.Lease, back uint32) ([]*reducer.Vectors, error) {
	var out []*reducer.Vectors
	for _, at := range reads(l, rr.X, back) {
		v := r.zero
		if at.Step != 0 {
			if v = r.x[at]; v == nil {
				return nil, fmt.Errorf("step %d task %d attempt %d gave no vectors", at.Step, at.Task, at.Attempt)
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// contributions restricts the blocks' contributions to [lo, hi), without copying.
func (r *Replay) contributions(l *taxonv1.Lease, lo, hi uint32) (in []contribution.Contribution, err error) {
	for b, at := range reads(l, rr.V, 0) {
		if at != r.blocks[b].at {
			return nil, fmt.Errorf("block %d was solved by %+v, not %+v", b, r.blocks[b].at, at)
		}
		for _, c := range r.blocks[b].in {
			from := sort.Search(len(c.Feature), func(i int) bool { return c.Feature[i] >= lo })
			to := from + sort.Search(len(c.Feature)-from, func(i int) bool { return c.Feature[from+i] >= hi })
			if from < to {
				in = append(in, contribution.Contribution{Parent: c.Parent, Feature: c.Feature[from:to], Sum: c.Sum[from:to],
					Curvature: c.Curvature[from:to]})
			}
		}
	}
	return in, nil
}
