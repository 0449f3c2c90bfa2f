package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"taxon/coordinator/method/registry"
	"taxon/internal/dataset"
	"taxon/internal/jobs"
	"taxon/internal/jobspec"
	"taxon/internal/model"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// loadCells is the resolution of the features' load in a job's description.
const loadCells = 4096

// describeData is what the coordinator needs to know of a data set.
func describeData(s *dataset.Set) *taxonv1.Data {
	d := &taxonv1.Data{
		Path: "embedded", Fingerprint: s.Fingerprint, Instances: uint64(s.Matrix.Rows), Features: uint64(s.Matrix.Cols),
		Nonzeros: uint64(s.Matrix.NNZ), Labels: s.Labels,
	}
	for l := range s.Labels {
		d.LabelInstances = append(d.LabelInstances, uint32(s.PosBegin[l+1]-s.PosBegin[l]))
	}
	cells := min(loadCells, max(len(s.FeatureRows), 1))
	width := max((len(s.FeatureRows)+cells-1)/cells, 1)
	sum := uint64(0)
	for k := range cells {
		for f := k * width; f < min((k+1)*width, len(s.FeatureRows)); f++ {
			sum += uint64(s.FeatureRows[f])
		}
		d.FeatureCountsLog = append(d.FeatureCountsLog, uint32(sum))
	}
	return d
}

func (t *training) modelOptions() model.Options {
	o := t.o
	m := model.Options{
		Method: o.method, Loss: o.loss, Schedule: o.schedule, C: o.c, Bias: o.bias, Gap: o.gap,
		MaxSweeps: o.maxSweeps, MaxSeconds: o.maxTime, Prune: o.prune, Seed: o.seed, Stiffness: o.stiffness,
		Momentum: o.momentum, InnerEpochs: o.epochs, EvalEvery: o.evalEvery, CheckpointSweeps: o.checkpoint,
		Graph: t.graphSum(), WarmStart: t.warmSum,
	}
	if t.structure != nil && !o.flat() && t.structure.IsDAG() {
		m.DAG = o.dag
	}
	if t.spec.GetStructure().GetGraph() {
		m.Anchor = o.anchor
		if o.schedule == jobspec.ScheduleColour {
			m.Colouring = o.colouring
		}
	}
	if t.spec.GetStructure() != nil && o.inner != 1 {
		m.InternalWeight = o.inner
	}
	if o.positive != "" && o.positive != "1" {
		m.PositiveWeight = o.positive
	}
	m.PriorShift = o.shift
	return m
}

// graphSum is the fingerprint of --graph's edges; "": there is none.
func (t *training) graphSum() string {
	if t.edges == nil || t.o.flat() {
		return ""
	}
	h := sha256.New()
	// Encoding slices of strings and numbers can't fail, nor can writing to a hash.
	_ = json.NewEncoder(h).Encode(t.edges)
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

// identity is what a checkpoint must agree with to be gone on from.
type identity struct {
	Options   model.Options `json:"options"`
	Data      string        `json:"data"`
	Structure string        `json:"structure"`
}

func (t *training) identity() identity {
	h := sha256.New()
	if t.structure != nil {
		// Encoding slices of strings and numbers can't fail, nor can writing to a hash.
		_ = json.NewEncoder(h).Encode(t.structure)
	}
	return identity{Options: t.modelOptions(), Data: t.set.Fingerprint, Structure: hex.EncodeToString(h.Sum(nil))}
}

func (t *training) meta() model.Meta {
	s := t.set
	m := model.Meta{
		Options: t.modelOptions(), Form: registry.Form(t.spec.GetOptions()), Tree: t.tree, Structure: t.structure, Labels: s.Labels,
		LabelCounts: t.spec.GetData().GetLabelInstances(), Feature: s.Feature,
		Data: model.DataInfo{
			Fingerprint: s.Fingerprint, Instances: s.Matrix.Rows, Nonzeros: s.Matrix.NNZ,
			Positives: s.Stats.LabelEntries, ZeroBased: s.Source.ZeroBased || s.Source.Form == "xmc", Text: s.Stats.Text,
		},
	}
	if s.Vocabulary != nil {
		m.Text = &model.Text{Vocabulary: s.Vocabulary, IDF: s.IDF}
	}
	return m
}

func (t *training) report(st *taxonv1.JobStatus) model.Report {
	o := t.o
	r := model.Report{
		Method: o.method, Loss: o.loss, C: o.c, Bias: o.bias, Schedule: o.schedule, Seed: o.seed,
		Instances: t.set.Matrix.Rows, Features: t.set.Matrix.Cols, Nonzeros: t.set.Matrix.NNZ,
		Nodes: t.tree.Len(), Terminals: len(t.tree.Terminals()), Sweeps: int(st.GetSweep()),
		StoppedBy: st.GetStoppedBy(), Seconds: st.GetSeconds(),
		CPUSeconds: t.usage.cpuSeconds, PeakRSSBytes: peakRSS(), CapsBefore: jobs.CapsBefore(st), Better: jobs.BetterOf(st), Own: jobs.OwnKeys(st),
	}
	t.reportGraph(&r)
	if c := st.GetCertificate(); c.GetPrimalOnly() {
		r.Objective = c.GetObjective()
	} else if c != nil {
		r.Objective, r.Dual, r.Gap = c.GetObjective(), &c.Dual, &c.Gap
	}
	return r
}

// reportGraph adds what only a training on a graph has.
func (t *training) reportGraph(r *model.Report) {
	if !t.tree.IsGraph() {
		return
	}
	r.Anchor = &t.o.anchor
	if t.o.schedule == jobspec.ScheduleColour {
		_, sets := jobspec.NodeSets(t.tree, t.spec.GetOptions())
		r.Colours = int(sets)
	}
}
