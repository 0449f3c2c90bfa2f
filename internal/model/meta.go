package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"taxon/internal/data/table"
	"taxon/internal/data/taxonomy"
	"taxon/internal/model/calibration"
	"taxon/internal/model/form"
	"taxon/internal/model/labelset"
)

// Options are the options of the training. Own holds those that only the method and the trainer
// know. Names are those of the command line, with underscores.
type Options struct {
	Method     string  `json:"method"`
	Loss       string  `json:"loss,omitempty"`
	Bias       float64 `json:"bias"`                  // 0: no bias feature
	Graph      string  `json:"graph,omitempty"`       // hex SHA-256 of the edges of --graph
	DAG        string  `json:"dag,omitempty"`         // how a structure with several parents was read
	PriorShift float64 `json:"prior_shift,omitempty"` // in the bias weights of the terminals; unset: 0
	WarmStart  string  `json:"warm_start,omitempty"`  // weights_sha256 of the model that it began at
	EarlyStop  string  `json:"early_stop,omitempty"`  // hex SHA-256 of the held-out data that ended it

	Own map[string]json.RawMessage `json:"-"`
}

// DataInfo says what the training data were and how they were read, so that instances to predict
// are read alike.
type DataInfo struct {
	Fingerprint string `json:"fingerprint"` // hex SHA-256 of the content
	Instances   int    `json:"instances"`
	Nonzeros    int64  `json:"nonzeros"`
	Positives   int64  `json:"positives"`         // sum over instances of their labels
	ZeroBased   bool   `json:"zero_based"`        // indices in the input counted from 0
	Text        bool   `json:"text"`              // instances were text: there is a vocabulary
	Strings     string `json:"strings,omitempty"` // instances were sequences: the flags of their kernel

	InstanceWeights float64 `json:"instance_weights,omitempty"` // their sum; unset: all were 1

	// of data from tables: the columns, and how numbers are scaled
	Table *table.Schema `json:"table,omitempty"`
}

// maxSingleLabel: data with at most this many labels an instance are single-label data. Their
// prediction is the best class alone.
const maxSingleLabel = 1.1

// MultiLabel says whether instances have so many labels that the best class alone is no good
// prediction.
func (d DataInfo) MultiLabel() bool {
	return float64(d.Positives) > maxSingleLabel*float64(d.Instances)
}

// Report holds the figures of a finished training (the keys of `train --json`).
type Report struct {
	Method        string   `json:"method"`
	Instances     int      `json:"instances"`
	Weights       float64  `json:"instance_weights,omitempty"` // their sum; unset: all were 1
	Features      int      `json:"features"`
	Nonzeros      int64    `json:"nonzeros"`
	Nodes         int      `json:"nodes"`
	Terminals     int      `json:"terminals"`
	Sweeps        int      `json:"sweeps"`
	Objective     float64  `json:"objective"`
	Dual          *float64 `json:"dual"`                  // nil: the method has no certificate
	Gap           *float64 `json:"gap"`                   // relative, (P-D)/P; nil as Dual
	Certificate   string   `json:"certificate,omitempty"` // gap, lower_bound or stationarity
	StoppedBy     string   `json:"stopped_by"`
	Seconds       float64  `json:"seconds"`
	CPUSeconds    float64  `json:"cpu_seconds"`
	PeakRSSBytes  int64    `json:"peak_rss_bytes"`
	WeightsSHA256 string   `json:"weights_sha256"` // filled in by Writer.Close

	// of a training that ran out of time; nil: no sweep was better
	Better *Better `json:"better,omitempty"`
	// caps of earlier runs of a training that was resumed, oldest first
	CapsBefore []PastCaps `json:"caps_before,omitempty"`

	// multi-label data: time of hold-out and fit, not in Seconds
	CutoffSeconds *float64          `json:"cutoff_seconds,omitempty"`
	CutoffCPU     *float64          `json:"cutoff_cpu_seconds,omitempty"`
	CutoffGoal    string            `json:"cutoff_goal,omitempty"` // at which they aim
	CutoffRule    string            `json:"cutoff_rule,omitempty"` // the rule that came nearest to it
	HeldOut       *labelset.HeldOut `json:"held_out,omitempty"`    // what the cut-offs reached there

	Calibration *Calibrated `json:"calibration,omitempty"`
	// what that cost; nil: the model is whole, or nobody has measured
	Pruned *PruneCost `json:"pruned,omitempty"`

	// Own has the options and figures that only this method reports. In JSON they stand beside
	// the others.
	Own map[string]json.RawMessage `json:"-"`
}

// Better is a sweep with a better certificate than the weights that were written, which are of a
// later sweep.
type Better struct {
	Sweep int     `json:"sweep"`
	Gap   float64 `json:"gap"`
}

// PastCaps are the caps that a training had until it was resumed with others. Trainings with
// equal options and past caps have equal weights, except where a cap on seconds ended one: then
// the clock had a say.
type PastCaps struct {
	Sweep      int     `json:"sweep"` // the last sweep done under them
	Gap        float64 `json:"gap"`
	MaxSweeps  int     `json:"max_sweeps"`  // 0: no cap
	MaxSeconds float64 `json:"max_seconds"` // 0: no cap
}

// TraceRow is one sweep of trace.jsonl; nil where a figure was not computed.
type TraceRow struct {
	Sweep     int      `json:"sweep"`
	Phase     string   `json:"phase"`
	Objective *float64 `json:"objective"`
	Dual      *float64 `json:"dual"`
	Gap       *float64 `json:"gap"`
	Bound     *float64 `json:"bound,omitempty"` // on the evidence: -Objective
	Seconds   float64  `json:"seconds"`
	MicroF1   *float64 `json:"micro_f1,omitempty"`
	MacroF1   *float64 `json:"macro_f1,omitempty"`
}

// Named says whether features have names.
func (m *Model) Named() bool { return m.Text != nil || len(m.terms) > 0 }

// Word is the name of a column's feature: a word, or a number column of a table; "": it has none.
func (m *Model) Word(column int) string {
	if m.Text != nil {
		return m.Text.Vocabulary[column]
	}
	if i := int(m.Feature[column]) - 1; i < len(m.terms) {
		return m.terms[i]
	}
	return ""
}

// Text is what turns words into columns.
type Text struct {
	Vocabulary []string  // column -> word
	IDF        []float64 // column -> idf
}

// Meta is everything in a model except its weights and its report.
type Meta struct {
	Options Options
	// what the records hold and how they predict; the method sets it
	Form        form.Form
	Data        DataInfo
	Tree        *taxonomy.Tree      // the trained tree
	Structure   *taxonomy.Structure // as the user gave it, for evaluation; nil: none was given
	Labels      []string            // label id -> name
	LabelCounts []uint32            // label id -> training instances that bear it
	// column -> index in the input, 1-based; its length is the number of columns
	Feature []uint32
	Text    *Text             // nil unless the data were text
	Cutoffs *labelset.Cutoffs // nil unless fitted: multi-label data

	Calibration *calibration.Calibration // nil unless fitted
}

// columns is the width of a weight vector: the features and the bias, if any.
func (m *Meta) columns() int {
	if m.Options.Bias > 0 {
		return len(m.Feature) + 1
	}
	return len(m.Feature)
}

// validate reports all violations at once. Readers call it too, as a right checksum does not make
// a file sound.
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

// HasProbabilities says whether scores can be shown as probabilities.
func (m *Meta) HasProbabilities() bool {
	return m.Form.Probable() || m.Calibration != nil
}

// checkTree verifies that t is numbered in depth-first preorder, that its slices agree and that
// it has a terminal. Walks and predictions rely on that.
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

func kindName(k taxonomy.Kind) (string, bool) {
	if int(k) >= len(kindNames) {
		return "", false
	}
	return kindNames[k], true
}

func kindOf(s string) (taxonomy.Kind, bool) {
	for k, name := range kindNames {
		if name == s {
			return taxonomy.Kind(k), true
		}
	}
	return 0, false
}

// The same types without the methods below.
type (
	plainReport  Report
	plainOptions Options
)

// MarshalJSON writes the method's own keys after those that all reports have.
func (r Report) MarshalJSON() ([]byte, error) { return JoinObjects(plainReport(r), r.Own) }

// UnmarshalJSON puts the keys that not all reports have into Own.
func (r *Report) UnmarshalJSON(b []byte) (err error) {
	r.Own, err = splitObject(b, (*plainReport)(r))
	return err
}

// MarshalJSON writes the method's own keys after the others.
func (o Options) MarshalJSON() ([]byte, error) { return JoinObjects(plainOptions(o), o.Own) }

// UnmarshalJSON puts the keys that not all models have into Own.
func (o *Options) UnmarshalJSON(b []byte) (err error) {
	o.Own, err = splitObject(b, (*plainOptions)(o))
	return err
}

// splitObject reads an object into a struct, and returns the members that are none of its fields.
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
