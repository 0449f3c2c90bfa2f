// Package jobs generates small training jobs for tests and measurements: data in memory, a
// hierarchy, and the specification that a client would submit.
package jobs

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/linalg/sparse"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"
)

// Job is data with a hierarchy over its labels. A nil Structure makes it flat.
type Job struct {
	Set       *dataset.Set
	Structure *taxonomy.Structure
}

// Small generates a job: short documents of common and of class words, labels at the leaves and
// internal nodes of a forest with two roots, a few rows without words, some with two labels. The
// same arguments give the same job.
func Small(seed uint64, rows, classes int) *Job {
	r := rand.New(rand.NewPCG(seed, 17))
	j := &Job{Structure: forest(r, classes)}
	cols := 20 + 3*classes
	index, value := make([][]uint32, rows), make([][]float32, rows)
	labels := make([][]uint32, rows)
	for i := range index {
		class := uint32(r.IntN(classes))
		labels[i] = append(labels[i], class)
		if other := uint32(r.IntN(classes)); other != class && r.IntN(10) == 0 {
			labels[i] = append(labels[i], other)
			slices.Sort(labels[i])
		}
		if r.IntN(25) > 0 {
			index[i], value[i] = document(r, class, classes, cols)
		}
	}
	j.Set = newSet(cols, index, value, labels, classes)
	return j
}

// Awkward generates rows over a dozen features of which some never occur, with duplicates, one row
// without features, one without a label, and a class of one row.
func Awkward(seed uint64, rows, classes int) *Job {
	const cols = 12
	r := rand.New(rand.NewPCG(seed, 23))
	index, value, labels := make([][]uint32, rows), make([][]float32, rows), make([][]uint32, rows)
	for i := range rows {
		if i%5 == 4 {
			index[i], value[i], labels[i] = index[i-1], value[i-1], labels[i-1]
			continue
		}
		class := uint32(i % (classes - 1))
		labels[i] = []uint32{class}
		for f := range uint32(cols) {
			if f%5 != 3 && (f == class || r.IntN(3) == 0) {
				index[i], value[i] = append(index[i], f), append(value[i], float32(0.3+r.NormFloat64()))
			}
		}
	}
	index[0], value[0], labels[1] = nil, nil, nil
	labels[2] = []uint32{uint32(classes - 1)}
	return &Job{Set: newSet(cols, index, value, labels, classes)}
}

// FirstLabels returns the job without its structure, and with only the first label of each row.
func (j *Job) FirstLabels() *Job {
	s := *j.Set
	of := make([][]uint32, len(s.Labels))
	index := make([]uint32, s.Matrix.Rows)
	for i := range index {
		l := s.LabelIndex[s.LabelBegin[i]]
		index[i], of[l] = l, append(of[l], uint32(i))
	}
	s.LabelIndex, s.LabelBegin, s.PosRows, s.PosBegin = index, []uint64{0}, nil, []uint64{0}
	for i := range index {
		s.LabelBegin = append(s.LabelBegin, uint64(i+1))
	}
	for _, rows := range of {
		s.PosRows = append(s.PosRows, rows...)
		s.PosBegin = append(s.PosBegin, uint64(len(s.PosRows)))
	}
	return &Job{Set: &s}
}

// forest puts class k below an earlier one, mostly. Every second class is a leaf.
func forest(r *rand.Rand, classes int) *taxonomy.Structure {
	s := &taxonomy.Structure{}
	for k := range classes {
		s.Names = append(s.Names, name(k))
		if k >= 2 {
			s.Parents = append(s.Parents, uint32(r.IntN((k+1)/2)))
			s.Children = append(s.Children, uint32(k))
		}
	}
	return s
}

func name(class int) string { return fmt.Sprintf("class-%d", class) }

// document generates words: common ones, the class's own and those of its neighbours.
func document(r *rand.Rand, class uint32, classes, cols int) (idx []uint32, val []float32) {
	for range 4 {
		idx = append(idx, uint32(r.IntN(20)), uint32(20+(3*int(class)+r.IntN(6))%(cols-20)))
	}
	slices.Sort(idx)
	idx = slices.Compact(idx)
	norm := 0.0
	for range idx {
		x := 0.2 + r.Float64()
		val = append(val, float32(x))
		norm += x * x
	}
	for k := range val {
		val[k] = float32(float64(val[k]) / math.Sqrt(norm))
	}
	return idx, val
}

// newSet arranges rows as dataset.Open does, except for the order of columns.
func newSet(cols int, index [][]uint32, value [][]float32, labels [][]uint32, classes int) *dataset.Set {
	s := &dataset.Set{Matrix: sparse.FromRows(cols, index, value), FeatureRows: make([]uint32, cols),
		LabelBegin: []uint64{0}, PosBegin: []uint64{0}}
	h := fnv.New128a()
	positive := make([][]uint32, classes)
	for i, row := range index {
		for k, f := range row {
			s.FeatureRows[f]++
			// a hash accepts everything
			_ = binary.Write(h, binary.LittleEndian, []uint32{uint32(i), f, math.Float32bits(value[i][k])})
		}
		for _, l := range labels[i] {
			s.LabelIndex = append(s.LabelIndex, l)
			positive[l] = append(positive[l], uint32(i))
		}
		s.LabelBegin = append(s.LabelBegin, uint64(len(s.LabelIndex)))
	}
	for f := range cols {
		s.Feature = append(s.Feature, uint32(f+1))
	}
	for l := range classes {
		s.Labels = append(s.Labels, name(l))
		s.PosRows = append(s.PosRows, positive[l]...)
		s.PosBegin = append(s.PosBegin, uint64(len(s.PosRows)))
	}
	s.Fingerprint = hex.EncodeToString(h.Sum(nil))
	return s
}

// Defaults returns a job's options for tests that need no others.
func Defaults() *taxonv1.Options {
	return methodtest.Options("rr-svm", "loss", "hinge", "schedule", "twoblock", "c", 1, "bias", 1, "gap", 1e-3,
		"max_sweeps", 200, "prune", "empty", "seed", 1, "stiffness", "support", "momentum", "fista")
}

// Spec returns the specification that a client submits.
func (j *Job) Spec(o *taxonv1.Options) *taxonv1.JobSpec {
	spec := &taxonv1.JobSpec{Options: o, Data: program.DescribeData(j.Set)}
	if t := j.Structure; t != nil {
		spec.Structure = &taxonv1.Structure{Names: t.Names, Parents: t.Parents, Children: t.Children}
	}
	return spec
}

// Nodes holds final weights, node by node, as worker.StreamWeights yields them.
type Nodes struct {
	Columns [][]uint32
	Values  [][]float32
}

// Add adds the next node's weights.
func (n *Nodes) Add(_ int, columns []uint32, values []float32) error {
	n.Columns, n.Values = append(n.Columns, slices.Clone(columns)), append(n.Values, slices.Clone(values))
	return nil
}

// Hash returns a hash of the weights' bits.
func (n *Nodes) Hash() string {
	h := fnv.New128a()
	for i := range n.Columns {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(n.Columns[i])))
		_ = binary.Write(h, binary.LittleEndian, n.Columns[i])
		_ = binary.Write(h, binary.LittleEndian, n.Values[i])
	}
	return hex.EncodeToString(h.Sum(nil))
}
