package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/data/taxonomy"
	"taxon/internal/data/text"
	"taxon/internal/model/calibration"
	"taxon/internal/model/form"
	"taxon/internal/model/labelset"
)

// Options are the options of the training. Own holds the options that only the method and the
// trainer know. They are named as on the command line, with underscores for hyphens.
type Options struct {
	Method string `json:"method"`
	Loss   string `json:"loss,omitempty"`
	// Bias is the value of the bias feature. Zero means that there is none.
	Bias float64 `json:"bias"`
	// Graph is the hex SHA-256 of the edges of the class graph.
	Graph string `json:"graph,omitempty"`
	// DAG is the treatment of a structure in which classes have several parents.
	DAG string `json:"dag,omitempty"`
	// PriorShift is the factor of the prior shift in the bias weights of the terminals.
	PriorShift float64 `json:"prior_shift,omitempty"`
	// WarmStart is the weights_sha256 of the model that the training started at.
	WarmStart string `json:"warm_start,omitempty"`
	// EarlyStop is the hex SHA-256 of the held-out data that ended the training.
	EarlyStop string `json:"early_stop,omitempty"`

	Own map[string]json.RawMessage `json:"-"`
}

// DataInfo describes the training data and how they were read, so that instances to predict are
// read in the same way.
type DataInfo struct {
	// Fingerprint is the hex SHA-256 of the content.
	Fingerprint string `json:"fingerprint"`
	Instances   int    `json:"instances"`
	Nonzeros    int64  `json:"nonzeros"`
	// LabelTerms is the number of instances that are texts about labels. The rest are documents.
	LabelTerms int `json:"terms,omitempty"`
	// LabelWeight is the weight of each term. It is zero if there are none.
	LabelWeight float64 `json:"label_weight,omitempty"`
	// Positives is the sum over the documents of their numbers of labels.
	Positives int64 `json:"positives"`
	// ZeroBased reports that indices in the input started at 0.
	ZeroBased bool `json:"zero_based"`
	// Text reports that instances were text. There is a vocabulary then.
	Text bool `json:"text"`
	// Strings holds the flags of the kernel if instances were sequences, and is empty otherwise.
	Strings string `json:"strings,omitempty"`

	// InstanceWeights is the sum of the instances' weights. It is zero if all were 1.
	InstanceWeights float64 `json:"instance_weights,omitempty"`

	// Table holds the columns and the scaling of numbers. It is nil if the data are not from
	// tables.
	Table *table.Schema `json:"table,omitempty"`
	// Words describes how texts became features. It is nil if all its options have their defaults,
	// or if there was no text.
	Words *dataset.Words `json:"words,omitempty"`
}

// Documents returns the number of documents.
func (d *DataInfo) Documents() int { return d.Instances - d.LabelTerms }

// Terms returns the options by which texts become terms.
func (d *DataInfo) Terms() text.Options {
	if d.Words == nil {
		return text.Options{}
	}
	return d.Words.Options
}

// maxSingleLabel is the mean number of labels per instance up to which data count as single-label
// data, for which the best class alone is predicted.
const maxSingleLabel = 1.1

// MultiLabel reports whether documents have so many labels that the best class alone is a poor
// prediction.
func (d DataInfo) MultiLabel() bool {
	return float64(d.Positives) > maxSingleLabel*float64(d.Documents())
}

// Report holds the figures of a finished training. It has the JSON keys of `train --json`.
type Report struct {
	Method    string `json:"method"`
	Instances int    `json:"instances"`
	// Documents and Terms are the instances that are documents, and texts about labels. Both are 0 if
	// there are no such texts.
	Documents int `json:"documents,omitempty"`
	Terms     int `json:"terms,omitempty"`
	// Weights is the sum of the instances' weights. It is zero if all were 1.
	Weights   float64 `json:"instance_weights,omitempty"`
	Features  int     `json:"features"`
	Nonzeros  int64   `json:"nonzeros"`
	Nodes     int     `json:"nodes"`
	Terminals int     `json:"terminals"`
	Sweeps    int     `json:"sweeps"`
	Objective float64 `json:"objective"`
	// Dual is the dual objective. It is nil if the method has no certificate.
	Dual *float64 `json:"dual"`
	// Gap is the relative duality gap (P-D)/P. It is nil if Dual is.
	Gap *float64 `json:"gap"`
	// Certificate is gap, lower_bound or stationarity.
	Certificate  string  `json:"certificate,omitempty"`
	StoppedBy    string  `json:"stopped_by"`
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	// WeightsSHA256 is filled in by Writer.Close.
	WeightsSHA256 string `json:"weights_sha256"`

	// Better is an earlier sweep with a better certificate, of a training that ran out of time. It
	// is nil if there was none.
	Better *Better `json:"better,omitempty"`
	// CapsBefore are the caps of earlier runs of a training that was resumed, oldest first.
	CapsBefore []PastCaps `json:"caps_before,omitempty"`

	// CutoffSeconds is, for multi-label data, the time of fitting cut-offs, including the trainings
	// on parts. Seconds does not include it.
	CutoffSeconds *float64 `json:"cutoff_seconds,omitempty"`
	CutoffCPU     *float64 `json:"cutoff_cpu_seconds,omitempty"`
	// CutoffGoal is the measure that the cut-offs maximise.
	CutoffGoal string `json:"cutoff_goal,omitempty"`
	// CutoffRule is the rule that is best by this measure.
	CutoffRule string `json:"cutoff_rule,omitempty"`
	// HeldOut is the performance of the cut-offs on held-out rows.
	HeldOut *labelset.HeldOut `json:"held_out,omitempty"`

	Calibration *Calibrated `json:"calibration,omitempty"`
	// Pruned is the cost of pruning. It is nil if the model is not pruned, or if the cost is
	// unknown.
	Pruned *PruneCost `json:"pruned,omitempty"`

	// Own holds the options and figures that only this method reports. In JSON their keys are
	// beside the others.
	Own map[string]json.RawMessage `json:"-"`
}

// Better is an earlier sweep whose certificate is better than the certificate of the written
// weights.
type Better struct {
	Sweep int     `json:"sweep"`
	Gap   float64 `json:"gap"`
}

// Count sets the number of instances, of which terms are texts about labels.
func (r *Report) Count(instances, terms int) {
	if r.Instances = instances; terms > 0 {
		r.Documents, r.Terms = instances-terms, terms
	}
}

// PastCaps are the caps that a training had before it was resumed with others. Trainings with equal
// options and past caps have equal weights, except where a cap on seconds ended one, because that
// depends on the machine's speed.
type PastCaps struct {
	// Sweep is the last sweep under these caps.
	Sweep int     `json:"sweep"`
	Gap   float64 `json:"gap"`
	// MaxSweeps is 0 without a cap.
	MaxSweeps int `json:"max_sweeps"`
	// MaxSeconds is 0 without a cap.
	MaxSeconds float64 `json:"max_seconds"`
}

// String describes the limits that a training had, and up to which sweep.
func (c PastCaps) String() string {
	s := fmt.Sprintf("‹gap=%g›", c.Gap)
	if c.MaxSweeps > 0 {
		s += fmt.Sprintf(" ‹max-sweeps=%d›", c.MaxSweeps)
	}
	if c.MaxSeconds > 0 {
		s += fmt.Sprintf(" ‹max-time=%g›", c.MaxSeconds)
	}
	return s + fmt.Sprintf(" up to sweep %d", c.Sweep)
}

// TraceRow is one line of trace.jsonl, which describes a sweep. Figures that were not computed are
// nil.
type TraceRow struct {
	Sweep     int      `json:"sweep"`
	Phase     string   `json:"phase"`
	Objective *float64 `json:"objective"`
	Dual      *float64 `json:"dual"`
	Gap       *float64 `json:"gap"`
	// Bound is the lower bound of the evidence, -Objective.
	Bound   *float64 `json:"bound,omitempty"`
	Seconds float64  `json:"seconds"`
	MicroF1 *float64 `json:"micro_f1,omitempty"`
	MacroF1 *float64 `json:"macro_f1,omitempty"`
}

// Named reports whether features have names.
func (m *Model) Named() bool { return m.Text != nil || len(m.terms) > 0 }

// Word returns the name of a column's feature, which is a word or a number column of a table. It is
// empty if the feature has no name.
func (m *Model) Word(column int) string {
	if m.Text != nil {
		return m.Text.Vocabulary[column]
	}
	if i := int(m.Feature[column]) - 1; i < len(m.terms) {
		return m.terms[i]
	}
	return ""
}

// Text is the mapping from words to columns.
type Text struct {
	// Vocabulary holds the word of each column.
	Vocabulary []string
	// IDF holds the inverse document frequency of each column.
	IDF []float64
}

// Meta holds everything in a model except its weights and its report.
type Meta struct {
	Options Options
	// Form describes the records and the prediction. It is set by the method.
	Form form.Form
	Data DataInfo
	// Tree is the trained tree.
	Tree *taxonomy.Tree
	// Structure is the hierarchy as the user gave it, for evaluation. It is nil if none was given.
	Structure *taxonomy.Structure
	// Labels maps a label id to its name.
	Labels []string
	// LabelCounts maps a label id to the number of training documents that have the label.
	LabelCounts []uint32
	// Feature maps a column to its 1-based index in the input. Its length is the number of columns.
	Feature []uint32
	// Text is nil unless the data were text.
	Text *Text
	// Cutoffs is nil unless cut-offs were fitted, which needs multi-label data.
	Cutoffs *labelset.Cutoffs

	// Calibration is nil unless one was fitted.
	Calibration *calibration.Calibration
}

// columns returns the width of a weight vector, which is the number of features, plus one if there
// is a bias.
func (m *Meta) columns() int {
	if m.Options.Bias > 0 {
		return len(m.Feature) + 1
	}
	return len(m.Feature)
}

// validate returns an error that lists all violations. Readers call it too, because a correct
// checksum does not prove correct content.
func (m *Meta) validate() error {
	errs := []error{m.Form.Check()}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if b := m.Options.Bias; !(b >= 0) || math.IsInf(b, 0) {
		add("bias %v: not a finite number >= 0", b)
	}
	if uint64(len(m.Feature)) >= math.MaxUint32 {
		add("%d features: more than a column number can count", len(m.Feature))
	}
	if len(m.Labels) != len(m.LabelCounts) {
		add("%d labels but %d label counts", len(m.Labels), len(m.LabelCounts))
	}
	for i, l := range m.Labels {
		if l == "" {
			add("label %d has no name", i)
		}
	}
	if m.Structure != nil {
		if err := checkStructure(m.Structure); err != nil {
			add("structure: %w", err)
		}
	}
	if m.Data.Text != (m.Text != nil) {
		add("text data and a vocabulary go together")
	}
	if t := m.Text; t != nil && (len(t.Vocabulary) != len(m.Feature) || len(t.IDF) != len(m.Feature)) {
		add("%d features but %d words and %d idf values", len(m.Feature), len(t.Vocabulary), len(t.IDF))
	}
	if o := m.Data.Terms(); o.Check() != nil {
		add("data.words: %w", o.Check())
	}
	if t := m.Data.Table; t != nil {
		if err := t.Check(m.Data.Text, m.Feature); err != nil {
			add("data.table: %w", err)
		}
	}
	if m.Tree == nil {
		add("no tree")
	} else if err := checkTree(m.Tree, len(m.Labels)); err != nil {
		errs = append(errs, err)
	} else if m.Cutoffs != nil {
		if err := m.Cutoffs.Check(len(m.Labels), len(m.Tree.Terminals())); err != nil {
			errs = append(errs, err)
		}
	}
	if m.Calibration != nil {
		if err := m.Calibration.Check(); err != nil {
			errs = append(errs, err)
		} else if n := len(m.Calibration.Powers); n > 0 && (m.Tree == nil || n != int(m.Tree.MaxDepth())+1) {
			add("calibration: %d powers, which are not the hierarchy's levels", n)
		}
	}
	return errors.Join(errs...)
}

// HasProbabilities reports whether scores can be shown as probabilities.
func (m *Meta) HasProbabilities() bool {
	return m.Form.Probable() || m.Calibration != nil
}

// checkTree verifies that t is numbered in depth-first preorder, that its slices agree, and that it
// has a terminal. Walks and predictions rely on this.
func checkTree(t *taxonomy.Tree, labels int) error {
	n := t.Len()
	if len(t.Kind) != n || len(t.Name) != n || len(t.Label) != n || len(t.Depth) != n || len(t.Leaf) != n {
		return fmt.Errorf("tree: slices of unequal length")
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("tree: %d nodes: more than a node number can count", n)
	}
	var path []int32
	terminals := 0
	for i := range n {
		p := t.Parent[i]
		for len(path) > 0 && path[len(path)-1] != p {
			path = path[:len(path)-1]
		}
		switch {
		case p < -1 || p >= 0 && len(path) == 0:
			return fmt.Errorf("tree: node %d with parent %d: not in depth-first order", i, p)
		case p >= 0 && t.Leaf[p]:
			return fmt.Errorf("tree: node %d under the terminal %d", i, p)
		case int(t.Depth[i]) != len(path):
			return fmt.Errorf("tree: node %d has depth %d, not %d", i, t.Depth[i], len(path))
		case t.Label[i] < -1 || int(t.Label[i]) >= labels:
			return fmt.Errorf("tree: node %d: no label %d", i, t.Label[i])
		case (t.Kind[i] == taxonomy.Virtual) != (t.Name[i] == ""):
			return fmt.Errorf("tree: node %d: a virtual root has no name, any other node has one", i)
		case t.Kind[i] == taxonomy.Virtual && t.Leaf[i]:
			return fmt.Errorf("tree: node %d: a virtual root is no terminal", i)
		}
		if _, ok := kindName(t.Kind[i]); !ok {
			return fmt.Errorf("tree: node %d: unknown kind %d", i, t.Kind[i])
		}
		if t.Leaf[i] {
			terminals++
		}
		path = append(path, int32(i))
	}
	if terminals == 0 {
		return fmt.Errorf("tree: no terminal")
	}
	return nil
}

// checkStructure verifies the user's hierarchy.
func checkStructure(s *taxonomy.Structure) error {
	for i, name := range s.Names {
		if name == "" {
			return fmt.Errorf("name %d is empty", i)
		}
	}
	return s.Check()
}

var kindNames = [...]string{taxonomy.Node: "node", taxonomy.Spawned: "spawned", taxonomy.Virtual: "virtual",
	taxonomy.Dummy: "dummy"}

// kindName returns the name of k in files, if it has one.
func kindName(k taxonomy.Kind) (string, bool) {
	if int(k) >= len(kindNames) {
		return "", false
	}
	return kindNames[k], true
}

// kindOf is the inverse of kindName.
func kindOf(s string) (taxonomy.Kind, bool) {
	for k, name := range kindNames {
		if name == s {
			return taxonomy.Kind(k), true
		}
	}
	return 0, false
}

// These are the same types without their methods, for encoding.
type (
	plainReport  Report
	plainOptions Options
)

// MarshalJSON writes the method's own keys after those that all reports have.
func (r Report) MarshalJSON() ([]byte, error) { return JoinObjects(plainReport(r), r.Own) }

// UnmarshalJSON puts keys that not all reports have into Own.
func (r *Report) UnmarshalJSON(b []byte) (err error) {
	r.Own, err = splitObject(b, (*plainReport)(r))
	return err
}

// MarshalJSON writes the method's own keys after the others.
func (o Options) MarshalJSON() ([]byte, error) { return JoinObjects(plainOptions(o), o.Own) }

// UnmarshalJSON puts keys that not all models have into Own.
func (o *Options) UnmarshalJSON(b []byte) (err error) {
	o.Own, err = splitObject(b, (*plainOptions)(o))
	return err
}

// splitObject reads an object into a struct, and returns the members that are not fields of it.
func splitObject[T any](b []byte, into *T) (own map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(b, into); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &own); err != nil {
		return nil, err
	}
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(own, name)
	}
	if len(own) == 0 {
		return nil, nil
	}
	return own, nil
}

// JoinObjects writes the members of several JSON objects as one object, in their order.
func JoinObjects(values ...any) ([]byte, error) {
	out := []byte{'{'}
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if b = bytes.TrimSpace(b); bytes.Equal(b, []byte("null")) {
			continue
		}
		if len(b) < 2 || b[0] != '{' {
			return nil, fmt.Errorf("%T is no JSON object", v)
		}
		if b = b[1 : len(b)-1]; len(b) > 0 && len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	return append(out, '}'), nil
}
