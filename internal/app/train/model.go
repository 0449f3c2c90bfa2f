package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
)

// modelOptions returns the options as the model's manifest stores them.
func (t *Training) modelOptions() model.Options {
	o := t.Spec.GetOptions()
	m := model.Options{
		Method: o.GetMethod(), Loss: o.Value("loss"), Bias: registry.Number(o, "bias"), Graph: t.graphSum(),
		WarmStart:  t.warmSum,
		PriorShift: t.o.Shift, EarlyStop: t.earlySum,
		Own: registry.Manifest(t.Spec),
	}
	delete(m.Own, "loss")
	delete(m.Own, "bias")
	if t.Structure != nil && !t.o.flat() && t.Structure.IsDAG() {
		m.DAG = t.o.DAG
	}
	return m
}

// graphSum returns the digest of the graph's edges. It is empty if there is no graph.
func (t *Training) graphSum() string {
	if t.Edges == nil || t.o.flat() {
		return ""
	}
	h := sha256.New()
	// Encoding strings and numbers can't fail, nor can writing to a hash.
	_ = json.NewEncoder(h).Encode(t.Edges)
	return hex.EncodeToString(h.Sum(nil))
}

// sumOf returns the SHA-256 of a file, or the fingerprint of an ingested data set. It is empty if
// path is empty.
func sumOf(path string) (string, error) {
	switch {
	case path == "":
		return "", nil
	case dataset.LooksIngested(path):
		set, err := dataset.Open(path)
		if err != nil {
			return "", err
		}
		return set.Fingerprint, set.Close()
	}
	data, err := fs.ReadFile(context.Background(), path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// optionsDiffer returns the name of an option that differs and affects the result, or "". With caps
// it also compares the stopping criteria.
func optionsDiffer(a, b model.Options, caps bool) string {
	var diffs []string
	for _, o := range [][3]string{{"method", a.Method, b.Method}, {"graph", a.Graph, b.Graph}, {"dag", a.DAG, b.DAG},
		{"early-stop", a.EarlyStop, b.EarlyStop}} {
		if o[1] != o[2] {
			diffs = append(diffs, fmt.Sprintf("%s %s, not %s", o[0], cmp.Or(o[1], "none"), cmp.Or(o[2], "none")))
		}
	}
	return strings.Join(append(diffs, registry.Differ(b.Method, stored(a), stored(b), caps)...), ", ")
}

// stored returns options in their JSON form, as in a manifest, by name.
func stored(o model.Options) map[string]json.RawMessage {
	out := map[string]json.RawMessage{"bias": method.Encode(o.Bias), "loss": method.Encode(o.Loss),
		"prior_shift": method.Encode(o.PriorShift), "warm_start": method.Encode(o.WarmStart)}
	maps.Copy(out, o.Own)
	return out
}

// sameStructure reports whether two structures are equal.
func sameStructure(a, b *taxonomy.Structure) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Names, b.Names) && slices.Equal(a.Parents, b.Parents) && slices.Equal(a.Children, b.Children)
}

// Identity is the set of properties that must be equal for a training to resume from a checkpoint.
type Identity struct {
	Options   model.Options `json:"options"`
	Data      string        `json:"data"`
	Structure string        `json:"structure"`
}

// Same reports whether two trainings are the same, including their stopping criteria.
func (id Identity) Same(other Identity) bool {
	return optionsDiffer(id.Options, other.Options, true) == "" && id.Data == other.Data && id.Structure == other.Structure
}

// Identity returns the identity of this training, including its stopping criteria.
func (t *Training) Identity() Identity {
	h := sha256.New()
	if t.Structure != nil {
		// Encoding strings and numbers can't fail, nor can writing to a hash.
		_ = json.NewEncoder(h).Encode(t.Structure)
	}
	return Identity{Options: t.modelOptions(), Data: t.Set.Fingerprint, Structure: hex.EncodeToString(h.Sum(nil))}
}

// Meta returns the description of the model.
func (t *Training) Meta() model.Meta {
	s := t.Set
	m := model.Meta{
		Options: t.modelOptions(), Form: registry.Form(t.Spec.GetOptions()), Tree: t.Tree, Structure: t.Structure,
		Labels:      s.Labels,
		LabelCounts: t.documentCounts(), Feature: s.Feature,
		Data: model.DataInfo{
			Fingerprint: s.Fingerprint, Instances: s.Matrix.Rows, LabelTerms: len(s.Terms), Nonzeros: s.Matrix.NNZ,
			LabelWeight: s.Source.LabelWeight,
			Positives:   s.Stats.LabelEntries - int64(len(s.Terms)), ZeroBased: s.Source.ZeroBased || s.Source.Form == "xmc",
			Text:            s.Stats.Text,
			Strings:         s.Source.Strings,
			InstanceWeights: s.Stats.Weight, Table: s.Table, Words: s.Source.Words,
		},
	}
	if s.Vocabulary != nil {
		m.Text = &model.Text{Vocabulary: s.Vocabulary, IDF: s.IDF}
	}
	return m
}

// documentCounts returns the number of documents of each label.
func (t *Training) documentCounts() []uint32 {
	d := t.Spec.GetData()
	counts := slices.Clone(d.GetLabelInstances())
	for l, n := range d.GetLabelTerms() {
		counts[l] -= min(n, counts[l])
	}
	return counts
}

// report returns the model's report on the job.
func (t *Training) report(st *taxonv1.JobStatus) model.Report {
	r := model.Report{
		Method:    t.o.Job.Method,
		Instances: t.Set.Matrix.Rows, Features: t.Set.Matrix.Cols, Nonzeros: t.Set.Matrix.NNZ,
		Nodes: t.Tree.Len(), Terminals: len(t.Tree.Terminals()), Sweeps: int(st.GetSweep()),
		StoppedBy: st.GetStoppedBy(), Seconds: st.GetSeconds(),
		CPUSeconds: t.usage.cpuSeconds, PeakRSSBytes: PeakRSS(), CapsBefore: jobs.CapsBefore(st), Better: jobs.BetterOf(st),
		Own: jobs.OwnKeys(st),
	}
	t.Complete(&r)
	jobs.Certify(&r, st.GetCertificate())
	return r
}

// Complete adds to a report the total weight and the kinds of the instances, which a job's status lacks.
func (t *Training) Complete(r *model.Report) {
	r.Weights = t.Set.Stats.Weight
	r.Count(t.Set.Matrix.Rows, len(t.Set.Terms))
}

// structureOf returns the structure of a specification.
func structureOf(s *taxonv1.Structure) *taxonomy.Structure {
	if s == nil {
		return nil
	}
	return &taxonomy.Structure{Names: s.GetNames(), Parents: s.GetParents(), Children: s.GetChildren()}
}

// GiveStructure adds the user's structure to the specification if the job trains on another one,
// because the model keeps it.
func (t *Training) GiveStructure() {
	given := t.Structure
	if given == nil || !t.Spec.GetStructure().GetGraph() && sameStructure(given, structureOf(t.Spec.GetStructure())) {
		return
	}
	t.Spec.Given = &taxonv1.Structure{Names: given.Names, Parents: given.Parents, Children: given.Children}
}

// takeStructure reads the user's structure from the specification.
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
