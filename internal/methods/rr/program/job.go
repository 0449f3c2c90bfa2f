package program

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"taxon/coordinator/method"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/jobspec"
	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	"taxon/reducer"
	"taxon/worker/program"
)

func init() { program.Register(Method("rr-svm"), Method("rr-lr"), Method("bsvm"), Method("blr")) }

// Method is a member of the family, by its name. The options determine what it trains.
type Method string

// Name implements program.Method.
func (m Method) Name() string { return string(m) }

// job holds the data that all tasks of a job share on this worker: the data set, the tree and the
// numbering of its internal nodes. It is read-only once built, except for the scratch pool and the
// caches.
type job struct {
	id        string
	plan      *params.Plan
	set       *dataset.Set
	tree      *taxonomy.Tree
	options   params.Settings
	problem   *mapper.Problem
	form      *form   // form of the loss
	partFlags int     // flags of contributions
	total     float64 // sum of the instances' weights
	graph     *graph  // nil for a tree
	forest    *reducer.Forest
	internal  []int32 // tree node -> index among the internals; -1 for a terminal

	// groups lists the internals of each block group, ascending: its blocks' parents and their
	// ancestors.
	groups   [][]int32
	groupOf  []int  // block -> group
	features uint32 // d, plus one with a bias
	scratch  scratchPool
	apart    bool // a slot's memory is used for one kind of task at a time
	vectors  vectorCache
	numbers  atomic.Uint64 // last number given to vectors: reducer.Internals.Number
	recent   recent
	noCache  bool // disables recent and blocks
	blocks   blocks
}

// Open implements program.Method.
func (m Method) Open(p *program.Job) (program.Program, error) { return open(p) }

func open(p *program.Job) (*job, error) {
	spec, set := p.Spec, p.Set
	plan, err := params.Detail(p.Plan.GetDetail())
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if n := len(p.Plan.GetSums()); n != figures {
		return nil, fmt.Errorf("plan: tasks are to report %d figures, this worker's have %d: it is of another version "+
			"than the coordinator", n, figures)
	}
	o, err := params.SettingsOf(spec.GetOptions())
	if err != nil {
		return nil, err
	}
	loss, err := mapper.ParseLoss(o.Loss)
	if err != nil {
		return nil, err
	}
	j := &job{id: p.ID, plan: plan, set: set, tree: p.Tree, options: o, form: formOf(loss), noCache: p.NoCache}
	j.features = uint32(set.Matrix.Cols)
	if o.Bias > 0 {
		j.features++
	}
	j.problem = mapper.NewProblem(set.Matrix, loss, o.C, float32(o.Bias))
	j.problem.Weight = set.Weight
	j.total = j.problem.Total()
	if loss != mapper.Hinge {
		j.partFlags = partDegrees
	}
	if j.problem.Kernel, err = mapper.ParseKernel(os.Getenv(program.KernelVariable)); err != nil {
		return nil, fmt.Errorf("%s: %w", program.KernelVariable, err)
	}
	if err := j.problem.Check(); err != nil {
		return nil, err
	}
	j.apart = params.SlotBytes(o.Loss, spec.GetData()) >= params.ApartBytes
	sets, _ := params.NodeSets(j.tree, &o)
	if j.tree.IsGraph() {
		j.numberGraph(sets, p.Unwanted)
	} else {
		j.numberTree(sets)
	}
	if o.Bias > 0 && o.BiasPull == jobspec.BiasZero {
		j.forest.Apart = j.features
	}
	j.group()
	j.vectors.most = params.KeptGroups
	if j.form.dense {
		j.vectors.most = 1
		j.noCache = true
	}
	return j, nil
}

// figures is the number of a task's figures.
const figures = params.SumVisits + 1

// Run implements program.Program.
func (j *job) Run(ctx context.Context, t *program.Task) (sums method.Sums, err error) {
	k := &task{Task: t, job: j}
	// after a panic its state is unknown, so it is not put back
	s := j.scratch.acquire()
	s.open(j, t.List == params.Ranges)
	switch t.Op {
	case params.OpMap:
		sums, err = k.solve(ctx, s)
	case params.OpReduce:
		sums, err = k.reduce(ctx, s)
	case params.OpEmitMap:
		sums, err = make(method.Sums, figures), k.emitBlock(ctx, s)
	case params.OpEmitReduce:
		sums, err = make(method.Sums, figures), k.emitRange(ctx, s)
	default:
		err = program.UnknownOperation(t.Op)
	}
	j.scratch.release(s)
	return sums, err
}

// task is a running task of the job.
type task struct {
	*program.Task
	job *job
}

// item checks that the task's item is among the `items` of a list, and decodes its parameters.
func (k *task) item(list, items int, into any) (uint32, error) {
	if k.List != list || k.Item >= items {
		return 0, program.Deterministic(fmt.Errorf("%s of item %d of list %d: the plan has %d in list %d", k.Op, k.Item,
			k.List, items, list))
	}
	if err := method.Decode(k.Params, into); err != nil {
		return 0, program.Deterministic(fmt.Errorf("parameters of %s: %w", k.Op, err))
	}
	return uint32(k.Item), nil
}

// numberTree numbers the internal nodes in preorder, and counts their children.
func (j *job) numberTree(sets []uint32) {
	f, edges := &reducer.Forest{Inner: j.options.InternalWeight}, jobspec.EdgeWeights(j.tree, j.options.EdgeWeights,
		j.options.InternalWeight)
	j.internal = make([]int32, j.tree.Len())
	for n := range j.internal {
		parent := int32(-1)
		if p := j.tree.Parent[n]; p >= 0 {
			parent = j.internal[p]
		}
		if j.tree.Leaf[n] {
			j.internal[n] = -1
			if parent >= 0 {
				f.Terminals[parent]++
			}
			continue
		}
		j.internal[n] = int32(len(f.Parent))
		if parent >= 0 {
			f.Children[parent]++
		}
		if edges != nil {
			f.Edge, f.Below = append(f.Edge, edges[n]), append(f.Below, 0)
			if parent >= 0 {
				f.Below[parent] += edges[n]
			}
		}
		f.Parent = append(f.Parent, parent)
		f.Terminals = append(f.Terminals, 0)
		f.Children = append(f.Children, 0)
		f.Set = append(f.Set, int32(sets[n]))
	}
	j.forest = f
}

// group lists, for each block group, the internals that its blocks need. Internals that no block
// needs are added to the first group, so that every vector belongs to a group.
func (j *job) group() {
	begin, internals := j.plan.GroupBegin, len(j.forest.Parent)
	placed := make([]bool, internals)
	j.groupOf = make([]int, len(j.plan.BlockBegin)-1)
	for g := range len(begin) - 1 {
		seen := make([]bool, internals)
		for b := begin[g]; b < begin[g+1]; b++ {
			j.groupOf[b] = g
			for _, n := range j.terminals(b) {
				j.see(n, seen)
			}
		}
		var nodes []int32
		for p, in := range seen {
			if in {
				nodes, placed[p] = append(nodes, int32(p)), true
			}
		}
		j.groups = append(j.groups, nodes)
	}
	for p, in := range placed {
		if !in {
			j.groups[0] = append(j.groups[0], int32(p))
		}
	}
	slices.Sort(j.groups[0])
}

// parentsWithin maps each node of a group to the index of its parent within the group, which
// contains all parents.
func (j *job) parentsWithin(group int) []int32 {
	nodes := j.groups[group]
	out := make([]int32, len(nodes))
	for i, n := range nodes {
		out[i] = -1
		if p := j.forest.Parent[n]; p >= 0 {
			at, _ := slices.BinarySearch(nodes, p)
			out[i] = int32(at)
		}
	}
	return out
}

// see marks the internals that terminal n needs: its parent and ancestors or, on a graph, the
// neighbours of its leaf group.
func (j *job) see(n uint32, seen []bool) {
	p := j.parent(n)
	switch {
	case p < 0:
	case j.graph != nil:
		for _, q := range j.graph.LeafGroups[p].Nodes {
			seen[q] = true
		}
	default:
		for ; p >= 0 && !seen[p]; p = j.forest.Parent[p] {
			seen[p] = true
		}
	}
}

// oneGroup reports whether there is a single group, which contains all internals.
func (j *job) oneGroup() bool {
	return len(j.groups) == 1 && len(j.groups[0]) == len(j.forest.Parent)
}

// terminals returns the terminals of block b, as tree nodes.
func (j *job) terminals(b uint32) []uint32 {
	return j.plan.Block(int(b))
}

// parent returns the parent of terminal n among the internals or, on a graph, its leaf group. It is
// -1 if the zero vector is the parent.
func (j *job) parent(n uint32) int32 {
	if j.graph != nil {
		return j.graph.leafGroupOf[n]
	}
	if p := j.tree.Parent[n]; p >= 0 {
		return j.internal[p]
	}
	return -1
}

// parents returns the number of internal nodes or, on a graph, of leaf groups.
func (j *job) parents() int {
	if j.graph != nil {
		return len(j.graph.LeafGroups)
	}
	return len(j.forest.Parent)
}

// positives returns the rows labelled with terminal n, ascending.
func (j *job) positives(n uint32) []uint32 {
	l := j.tree.Label[n]
	if l < 0 {
		return nil
	}
	return j.set.PosRows[j.set.PosBegin[l]:j.set.PosBegin[l+1]]
}

// positiveWeight returns the factor of C for the positives of terminal n.
func (j *job) positiveWeight(n uint32) float64 {
	return jobspec.PositiveWeight(j.options.PositiveWeight, j.problem.Count(j.positives(n)), j.total)
}

// ranges returns the bounds of the feature ranges.
func (j *job) ranges() []uint32 { return j.plan.RangeBegin }

// scratch is the reusable memory of a task.
type scratch struct {
	solver  mapper.Solver
	reduce  reducer.Scratch
	vectors [2]rangeMemory // current and previous internals of a range
	walk    reducer.Walk
	mean    [mapper.Lanes][]float32

	// sum, rounding and edges are used on graphs: see leafGroupMean.
	sum      []float64
	rounding [mapper.Lanes][]float64
	edges    []edgeSums // edge sums of each slot
}

// open makes room for a task on a block or a range. If the memory is large, it releases the memory
// of the other kind of tasks.
func (s *scratch) open(j *job, ranges bool) {
	switch {
	case ranges && j.apart:
		*s = scratch{reduce: s.reduce, vectors: s.vectors}
	case !ranges && j.apart:
		s.reduce, s.vectors = reducer.Scratch{}, [2]rangeMemory{}
	}
	if s.reduce.Plain = j.problem.Kernel.String() != "avx512"; !ranges && s.solver == nil {
		s.solver = j.problem.NewSolver()
	}
}
