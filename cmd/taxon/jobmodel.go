package main

import (
	"taxon/internal/dataset"
	"taxon/internal/model"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// optionsOf turns a job's options back into train's flags: the inverse of proto.
func optionsOf(o *taxonv1.Options) trainOptions {
	inner := o.GetInternalWeight()
	if inner == 0 { // a job of a program that left it out
		inner = 1
	}
	return trainOptions{
		method: o.GetMethod(), loss: o.GetLoss(), schedule: o.GetSchedule(), c: o.GetC(), bias: o.GetBias(), gap: o.GetGap(),
		maxSweeps: int(o.GetMaxSweeps()), maxTime: o.GetMaxSeconds(), prune: o.GetPrune(), seed: o.GetSeed(),
		stiffness: o.GetStiffness(), momentum: o.GetMomentum(), epochs: int(o.GetInnerEpochs()),
		evalEvery: int(o.GetEvalEvery()), checkpoint: int(o.GetCheckpointSweeps()),
		anchor: o.GetAnchor(), inner: inner, colouring: o.GetColouring(), positive: o.GetPositiveWeight(),
	}
}

func structureOf(s *taxonv1.Structure) *taxonomy.Structure {
	if s == nil {
		return nil
	}
	return &taxonomy.Structure{Names: s.GetNames(), Parents: s.GetParents(), Children: s.GetChildren()}
}

// giveStructure adds the structure as the user gave it to the specification, where what
// is trained on is another one: a model keeps it.
func (t *training) giveStructure() {
	given := t.structure
	if given == nil || !t.spec.GetStructure().GetGraph() && sameStructure(given, structureOf(t.spec.GetStructure())) {
		return
	}
	t.spec.Given = &taxonv1.Structure{Names: given.Names, Parents: given.Parents, Children: given.Children}
}

// takeStructure is the way back.
func (t *training) takeStructure() {
	trained, given := t.spec.GetStructure(), t.spec.GetGiven()
	switch {
	case given != nil && trained.GetGraph():
		t.structure, t.o.dag = structureOf(given), "graph"
	case given != nil:
		t.structure, t.o.dag = structureOf(given), "first-parent"
	case trained.GetGraph():
		t.edges = structureOf(trained)
	default:
		t.structure = structureOf(trained)
	}
}

// describeModel says what a job's model has beside its weights.
func describeModel(spec *taxonv1.JobSpec, tree *taxonomy.Tree, names *dataset.Set) (model.Meta, func(*model.Report)) {
	o := optionsOf(spec.GetOptions())
	t := &training{o: &o, spec: spec, tree: tree, set: names}
	t.takeStructure()
	return t.meta(), t.reportGraph
}
