package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"taxon/coordinator/method/registry"
	"taxon/internal/jobs"
	"taxon/internal/jobspec"
	"taxon/internal/model"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

func (t *Training) modelOptions() model.Options {
	o := t.o.Job
	m := model.Options{
		Method: o.Method, Loss: o.Loss, Schedule: o.Schedule, C: o.C, Bias: o.Bias, Gap: o.Gap,
		MaxSweeps: int(o.MaxSweeps), MaxSeconds: o.MaxSeconds, Prune: o.Prune, Seed: o.Seed, Stiffness: o.Stiffness,
		Momentum: o.Momentum, InnerEpochs: int(o.InnerEpochs), EvalEvery: int(o.EvalEvery), CheckpointSweeps: int(o.CheckpointSweeps),
		Graph: t.graphSum(), WarmStart: t.warmSum, PriorShift: t.o.Shift,
	}
	if t.Structure != nil && !t.o.flat() && t.Structure.IsDAG() {
		m.DAG = t.o.DAG
	}
	if t.Spec.GetStructure().GetGraph() {
		m.Anchor = o.Anchor
		if o.Schedule == jobspec.ScheduleColour {
			m.Colouring = o.Colouring
		}
	}
	if w := o.InternalWeight; t.Spec.GetStructure() != nil && w != 0 && w != 1 { // 0: a job of a program that left it out
		m.InternalWeight = w
	}
	if o.PositiveWeight != "1" {
		m.PositiveWeight = o.PositiveWeight
	}
	return m
}

// graphSum is the fingerprint of --graph's edges; "": there is none.
func (t *Training) graphSum() string {
	if t.Edges == nil || t.o.flat() {
		return ""
	}
	h := sha256.New()
	// Encoding slices of strings and numbers can't fail, nor can writing to a hash.
	_ = json.NewEncoder(h).Encode(t.Edges)
	return hex.EncodeToString(h.Sum(nil))
}

// optionsDiffer names the options that matter to the result and differ; how often a
// checkpoint is written does not matter.
func optionsDiffer(a, b model.Options) string {
	a.CheckpointSweeps, b.CheckpointSweeps = 0, 0
	var diffs []string
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		if x, y := va.Field(i).Interface(), vb.Field(i).Interface(); x != y {
			name, _, _ := strings.Cut(va.Type().Field(i).Tag.Get("json"), ",")
			diffs = append(diffs, fmt.Sprintf("%s %v, not %v", name, x, y))
		}
	}
	return strings.Join(diffs, ", ")
}

func sameStructure(a, b *taxonomy.Structure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Names, b.Names) && slices.Equal(a.Parents, b.Parents) && slices.Equal(a.Children, b.Children)
}

// Identity is what a checkpoint must agree with to be gone on from.
type Identity struct {
	Options   model.Options `json:"options"`
	Data      string        `json:"data"`
	Structure string        `json:"structure"`
}

// Identity is what the training is, caps included.
func (t *Training) Identity() Identity {
	h := sha256.New()
	if t.Structure != nil {
		// Encoding slices of strings and numbers can't fail, nor can writing to a hash.
		_ = json.NewEncoder(h).Encode(t.Structure)
	}
	return Identity{Options: t.modelOptions(), Data: t.Set.Fingerprint, Structure: hex.EncodeToString(h.Sum(nil))}
}

// Meta is what the model is told of itself.
func (t *Training) Meta() model.Meta {
	s := t.Set
	m := model.Meta{
		Options: t.modelOptions(), Form: registry.Form(t.Spec.GetOptions()), Tree: t.Tree, Structure: t.Structure, Labels: s.Labels,
		LabelCounts: t.Spec.GetData().GetLabelInstances(), Feature: s.Feature,
		Data: model.DataInfo{
			Fingerprint: s.Fingerprint, Instances: s.Matrix.Rows, Nonzeros: s.Matrix.NNZ,
			Positives: s.Stats.LabelEntries, ZeroBased: s.Source.ZeroBased || s.Source.Form == "xmc", Text: s.Stats.Text,
			InstanceWeights: s.Stats.Weight,
		},
	}
	if s.Vocabulary != nil {
		m.Text = &model.Text{Vocabulary: s.Vocabulary, IDF: s.IDF}
	}
	return m
}

func (t *Training) report(st *taxonv1.JobStatus) model.Report {
	o := t.o.Job
	r := model.Report{
		Method: o.Method, Loss: o.Loss, C: o.C, Bias: o.Bias, Schedule: o.Schedule, Seed: o.Seed,
		Instances: t.Set.Matrix.Rows, Features: t.Set.Matrix.Cols, Nonzeros: t.Set.Matrix.NNZ,
		Nodes: t.Tree.Len(), Terminals: len(t.Tree.Terminals()), Sweeps: int(st.GetSweep()),
		StoppedBy: st.GetStoppedBy(), Seconds: st.GetSeconds(),
		CPUSeconds: t.usage.cpuSeconds, PeakRSSBytes: PeakRSS(), CapsBefore: jobs.CapsBefore(st), Better: jobs.BetterOf(st), Own: jobs.OwnKeys(st),
	}
	t.Complete(&r)
	if c := st.GetCertificate(); c.GetPrimalOnly() {
		r.Objective = c.GetObjective()
	} else if c != nil {
		r.Objective, r.Dual, r.Gap = c.GetObjective(), &c.Dual, &c.Gap
	}
	return r
}

// Complete adds what a job's status does not tell: the instances' weights, and what only a
// training on a graph has.
func (t *Training) Complete(r *model.Report) {
	r.Weights = t.Set.Stats.Weight
	if !t.Tree.IsGraph() {
		return
	}
	r.Anchor = &t.o.Job.Anchor
	if t.o.Job.Schedule == jobspec.ScheduleColour {
		_, sets := jobspec.NodeSets(t.Tree, t.Spec.GetOptions())
		r.Colours = int(sets)
	}
}

func structureOf(s *taxonv1.Structure) *taxonomy.Structure {
	if s == nil {
		return nil
	}
	return &taxonomy.Structure{Names: s.GetNames(), Parents: s.GetParents(), Children: s.GetChildren()}
}

// GiveStructure adds the structure as the user gave it to the specification, where what
// is trained on is another one: a model keeps it.
func (t *Training) GiveStructure() {
	given := t.Structure
	if given == nil || !t.Spec.GetStructure().GetGraph() && sameStructure(given, structureOf(t.Spec.GetStructure())) {
		return
	}
	t.Spec.Given = &taxonv1.Structure{Names: given.Names, Parents: given.Parents, Children: given.Children}
}

// takeStructure is the way back.
func (t *Training) takeStructure() {
	trained, given := t.Spec.GetStructure(), t.Spec.GetGiven()
	switch {
	case given != nil && trained.GetGraph():
		t.Structure, t.o.DAG = structureOf(given), "graph"
	case given != nil:
		t.Structure, t.o.DAG = structureOf(given), "first-parent"
	case trained.GetGraph():
		t.Edges = structureOf(trained)
	default:
		t.Structure = structureOf(trained)
	}
}
