package report

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/evaluate"
	"taxon/internal/model/explain"
	"taxon/internal/model/measure"
	"taxon/internal/model/predict"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Options configure a report.
type Options struct {
	Model string
	// Data is the test data. If its path is empty, there is no test data.
	Data predict.Input
	// Compare lists models to compare with.
	Compare []string
	// Out is the file to write. If it ends in .md, a model card is written.
	Out string
}

// Summary describes the written report, as `taxon report --json` prints it.
type Summary struct {
	Out       string `json:"out"`
	Bytes     int64  `json:"bytes"`
	Instances int    `json:"instances,omitempty"`
}

// These are the tasks of models, as model hubs name them.
const (
	tableTask = "tabular-classification"
	textTask  = "text-classification"
)

// view is the content of the page.
type view struct {
	Name, Method, Certificate string
	Report                    *model.Report
	Facts                     []fact
	Charts                    []g.Node
	Data                      string
	Result                    *measure.Result
	Measures                  []figure
	Reliability               g.Node
	Classes                   []classView
	Confusion                 []*place
	Worst                     []worst
	Others                    []other
	Again                     []string
	// Task is the task of a model card, as model hubs name it.
	Task         string
	Hierarchical bool
}

// Short returns the last part of the model's path. Readers of a card do not have the folders.
func (v *view) Short() string { return filepath.Base(v.Name) }

// DataName returns the last part of the data's path.
func (v *view) DataName() string { return filepath.Base(v.Data) }

// fact is a line of the table of properties.
type fact struct{ Name, Value string }

// figure is a number with its explanation.
type figure struct{ Name, Value, Means string }

// classView is a row of the table of classes.
type classView struct {
	Label                       string
	Trained                     int64
	Instances, Predicted, Right int64
	Precision, Recall, F1       float64
	Instead                     string
}

// place is a node of the hierarchy, with the mistakes whose paths separate there.
type place struct {
	Name             string
	Instances, Parts int64
	// Inside counts the mistakes here and below.
	Inside int64
	Pairs  []string
	Below  []*place
	// Top reports that the node has no parent on the page.
	Top bool
}

// worst is one of the worst mistakes.
type worst struct {
	Row              int64
	Truth, Predicted string
	Steps            int
	Why              []levelPair
}

// levelPair lists the features that contributed most to the predicted class and to the true one.
type levelPair struct{ What, Features string }

// other is a model to compare with.
type other struct {
	Name string
	// Result holds the measures of this model, with the tests against the other.
	Result *measure.Result
}

// Write writes the report.
func Write(ctx context.Context, o Options, ui progress.Reporter) (*Summary, error) {
	m, err := model.Open(o.Model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := predict.RefuseOverwrite("report", "out", o.Out, o.Data.Path, o.Model); err != nil {
		return nil, err
	}
	o.Data.Text = m.Data.Text
	v := describe(m, o.Model)
	if o.Data.Path != "" {
		if err := v.score(ctx, m, o, ui); err != nil {
			return nil, err
		}
	}
	v.Again = again(m, o)
	s := &Summary{Out: o.Out}
	if v.Result != nil {
		s.Instances = v.Result.Instances
	}
	return s, fs.WriteOut(o.Out, nil, func(w *bufio.Writer) error {
		c := &counter{w: w}
		write := writePage
		if filepath.Ext(o.Out) == ".md" {
			write = writeCard
		}
		err := write(c, v)
		s.Bytes = c.n
		return err
	})
}

// counter counts the bytes written.
type counter struct {
	w *bufio.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// describe returns the part of the page that follows from the model's folder alone.
func describe(m *model.Model, name string) *view {
	r := &m.Manifest.Report
	v := &view{Name: name, Report: r, Method: registry.Words(r.Method, r.Own), Task: tableTask,
		Hierarchical: m.Structure != nil}
	if m.Data.Text {
		v.Task = textTask
	}
	add := func(what, format string, args ...any) {
		v.Facts = append(v.Facts, fact{what, fmt.Sprintf(format, args...)})
	}
	add("Method", "%s", v.Method)
	add("Instances", "%s, %.2f labels each", format.Count(int64(r.Instances)), m.LabelsPerInstance())
	add("Features", "%s", format.Count(int64(r.Features)))
	add("Classes", "%s, in a structure of %s", format.Count(int64(r.Terminals)), format.Counted(int64(r.Nodes), "node",
		"nodes"))
	add("Stopped by", "%s, after %s", r.StoppedBy, format.Counted(int64(r.Sweeps), "sweep", "sweeps"))
	if c := r.Calibration; c != nil {
		add("Probabilities", "by %s, fitted on %s held out", c.Kind, format.Counted(int64(m.Calibration.HeldOut.Instances),
			"instance", "instances"))
	}
	add("Time", "%s, %s of CPU", format.Seconds(r.Seconds), format.Seconds(r.CPUSeconds))
	if r.PeakRSSBytes > 0 { // unknown if there were several processes
		add("Memory", "%s at most", format.Bytes(r.PeakRSSBytes))
	}
	add("Data fingerprint", "%s", m.Data.Fingerprint)
	add("Weights SHA-256", "%s", r.WeightsSHA256)
	switch {
	case r.Gap != nil:
		v.Certificate = fmt.Sprintf("The objective is %.8g, and no weights whatever reach less than %.8g: it could be "+
			"lower by at most %.2g of its value.", r.Objective, *r.Dual, *r.Gap)
	case r.Own["tolerance_reached"] != nil:
		v.Certificate = fmt.Sprintf("The iteration is at a fixed point to %s: further rounds would change no precision and "+
			"no mean by more. The objective is %.8g.", r.Own["tolerance_reached"], r.Objective)
	default:
		v.Certificate = fmt.Sprintf("The objective is %.8g. This method gives no bound on what could be reached.",
			r.Objective)
	}
	v.Charts = curves(m.Trace)
	return v
}

// curves draws the trace.
func curves(trace []model.TraceRow) (out []g.Node) {
	var gapSweep, gapTime, primal, dual, micro, macro, microTime, macroTime series
	primal.name, dual.name, micro.name, macro.name = "objective", "bound", "micro-F1", "macro-F1"
	microTime.name, macroTime.name = micro.name, macro.name
	add := func(s *series, x float64, y *float64, by float64) {
		if y != nil {
			s.x, s.y = append(s.x, x), append(s.y, by**y)
		}
	}
	for _, t := range trace {
		add(&gapSweep, float64(t.Sweep), t.Gap, 1)
		add(&gapTime, t.Seconds, t.Gap, 1)
		add(&primal, float64(t.Sweep), t.Objective, 1)
		add(&dual, float64(t.Sweep), t.Dual, 1)
		add(&micro, float64(t.Sweep), t.MicroF1, 100)
		add(&macro, float64(t.Sweep), t.MacroF1, 100)
		add(&microTime, t.Seconds, t.MicroF1, 100)
		add(&macroTime, t.Seconds, t.MacroF1, 100)
	}
	gapSweep.name, gapTime.name = "gap", "gap"
	for _, c := range []g.Node{
		lineChart("Relative gap by sweep", "sweep", "gap", true, gapSweep),
		lineChart("Relative gap by second", "seconds", "gap", true, gapTime),
		lineChart("Objective and bound", "sweep", "", true, primal, dual),
		lineChart("F1 on test data by sweep", "sweep", "%", false, micro, macro),
		lineChart("F1 on test data by second", "seconds", "%", false, microTime, macroTime),
	} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// score adds all measures on the test data.
func (v *view) score(ctx context.Context, m *model.Model, o Options, ui progress.Reporter) error {
	v.Data = o.Data.Path
	ev := evaluate.Options{Model: o.Model, Data: o.Data, Everything: true}
	ev.Data.AsTrained = true
	r, err := evaluate.Run(ctx, ev, ui)
	if err != nil {
		return err
	}
	v.Result = r
	v.Measures = measures(r)
	if r.Reliability != nil {
		var conf, right series
		conf.name, right.name = "as it should be", "share that came true"
		conf.x, conf.y = []float64{0, 1}, []float64{0, 1}
		for _, b := range r.Reliability {
			if b.Confidence != nil && b.Accuracy != nil {
				right.x, right.y = append(right.x, *b.Confidence), append(right.y, *b.Accuracy)
			}
		}
		v.Reliability = lineChart("Calibration: probability given, and share that came true", "probability", "share", false,
			conf, right)
	}
	for _, name := range o.Compare {
		ev := ev
		ev.Compare, ev.Everything = name, false
		with, err := evaluate.Run(ctx, ev, ui)
		if err != nil {
			return err
		}
		v.Others = append(v.Others, other{name, with})
	}
	seen, err := observe(ctx, m, o.Data, ui)
	if err != nil {
		return err
	}
	v.Classes = seen.classViews()
	v.Confusion = seen.confusion()
	v.Worst, err = seen.mistakes()
	return err
}

// measures lists the measures that were computed.
func measures(r *measure.Result) (out []figure) {
	for _, m := range measure.Measures() {
		if x, ok := m.Of(r); ok && m.Card != nil {
			out = append(out, figure{m.Card.Title, m.Card.Of(&m, x),
				strings.ReplaceAll(m.Card.Text, "{classes}", format.Count(int64(r.Classes)))})
		}
	}
	return out
}

// classViews returns the table of classes.
func (o *observed) classViews() []classView {
	trained := map[string]int64{}
	for i, label := range o.m.Labels {
		trained[label] = int64(o.m.LabelCounts[i])
	}
	var out []classView
	for _, label := range slices.Sorted(maps.Keys(o.classes)) {
		c := o.classes[label]
		w := classView{Label: label, Trained: trained[label], Instances: c.instances, Predicted: c.predicted, Right: c.right}
		share := func(of int64) float64 {
			if of == 0 {
				return 0
			}
			return float64(c.right) / float64(of)
		}
		w.Precision, w.Recall = share(c.predicted), share(c.instances)
		if c.right > 0 {
			w.F1 = 2 * w.Precision * w.Recall / (w.Precision + w.Recall)
		}
		names := slices.SortedFunc(maps.Keys(c.instead), func(a, b string) int {
			return cmp.Or(cmp.Compare(c.instead[b], c.instead[a]), strings.Compare(a, b))
		})
		var parts []string
		for _, n := range names[:min(len(names), 3)] {
			parts = append(parts, fmt.Sprintf("%s (%d)", n, c.instead[n]))
		}
		w.Instead = strings.Join(parts, ", ")
		out = append(out, w)
	}
	return out
}

// maxPlaces bounds the number of nodes shown.
const maxPlaces = 2000

// confusion returns the hierarchy with its mistakes, the nodes with most mistakes first.
func (o *observed) confusion() []*place {
	t := o.m.Tree
	root := &place{Name: "the whole hierarchy", Instances: o.rows, Parts: o.parted[0], Inside: o.parted[0],
		Pairs: o.pairWords(0)}
	all := make([]*place, t.Len())
	for n := t.Len() - 1; n >= 0; n-- { // children follow their parents
		if p := all[n]; p != nil || o.parted[n+1] > 0 {
			if p == nil {
				p = &place{}
				all[n] = p
			}
			p.Name, p.Instances, p.Parts, p.Pairs = t.Name[n], o.below[n], o.parted[n+1], o.pairWords(n+1)
			if p.Name == "" {
				p.Name = "(root)"
			}
			p.Inside += p.Parts
			up := root
			if t.Parent[n] >= 0 {
				if up = all[t.Parent[n]]; up == nil {
					up = &place{}
					all[t.Parent[n]] = up
				}
			}
			up.Inside += p.Inside
			up.Below = append(up.Below, p)
		}
	}
	if root.Inside == 0 {
		return nil
	}
	left := maxPlaces
	root.sort(&left)
	if root.Parts == 0 && len(root.Below) == 1 {
		root = root.Below[0]
	}
	root.Top = true
	return []*place{root}
}

// sort sorts the places below p by mistakes, and keeps at most *left of them.
func (p *place) sort(left *int) {
	slices.SortStableFunc(p.Below, func(a, b *place) int {
		return cmp.Or(cmp.Compare(b.Inside, a.Inside),
			strings.Compare(a.Name, b.Name))
	})
	p.Below = p.Below[:min(len(p.Below), max(0, *left))]
	*left -= len(p.Below)
	for _, c := range p.Below {
		c.sort(left)
	}
}

// pairWords describes the children of a place that are most often mistaken for each other.
func (o *observed) pairWords(at int) (out []string) {
	pairs := o.pairs[at]
	keys := slices.SortedFunc(maps.Keys(pairs), func(a, b [2]int32) int {
		return cmp.Or(cmp.Compare(pairs[b], pairs[a]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	for _, k := range keys[:min(len(keys), 5)] {
		out = append(out, fmt.Sprintf("%s taken for %s: %d", o.nodeName(k[0], at), o.nodeName(k[1], at), pairs[k]))
	}
	return out
}

// nodeName returns the name of a node. At its own place, a leaf is marked as such.
func (o *observed) nodeName(n int32, at int) string {
	name := o.m.Tree.Name[n]
	if at > 0 && name == o.m.Tree.Name[at-1] {
		return name + " itself"
	}
	return name
}

// mistakes explains the worst mistakes.
func (o *observed) mistakes() (out []worst, err error) {
	for _, k := range o.worst {
		w := worst{Row: k.row, Truth: o.m.Tree.Name[k.truth], Predicted: o.m.Tree.Name[k.predicted], Steps: k.steps}
		for _, label := range []string{w.Predicted, w.Truth} {
			e, err := (&explain.Options{Label: label, Top: 1, Words: 6}).Explain(o.m, k.columns, k.values)
			if err != nil {
				return nil, err
			}
			w.Why = append(w.Why, levelPair{fmt.Sprintf("%s, score %.3g", label, e.Score), features(e)})
		}
		out = append(out, w)
	}
	return out, nil
}

// features lists the features that contribute most along a path.
func features(e *explain.Explanation) string {
	gain := map[string]float64{}
	for _, l := range e.Path {
		for _, t := range slices.Concat(l.For, l.Against) {
			gain[cmp.Or(t.Word, fmt.Sprint(t.Feature))] += t.Gain
		}
	}
	names := slices.SortedFunc(maps.Keys(gain), func(a, b string) int {
		return cmp.Or(cmp.Compare(gain[b], gain[a]),
			strings.Compare(a, b))
	})
	var parts []string
	for _, n := range names[:min(len(names), 6)] {
		parts = append(parts, fmt.Sprintf("%s %+.2g", n, gain[n]))
	}
	return strings.Join(parts, ", ")
}

// fromPaths reports whether the structure comes from labels that are paths.
func fromPaths(s *taxonomy.Structure, separator string) bool {
	for i, p := range s.Parents {
		if separator == "" || !strings.HasPrefix(s.Names[s.Children[i]], s.Names[p]+separator) {
			return false
		}
	}
	return true
}

// flag returns an option and its value as on a command line.
func flag(name, value string) string { return option.Value(name, format.ShellWord(value)) }

// again returns the command lines that make the model and the report again.
func again(m *model.Model, o Options) []string {
	train := []string{"taxon train ‹data=DATA› ‹out=MODEL›", flag("method", m.Options.Method)}
	own := map[string]json.RawMessage{}
	maps.Copy(own, m.Options.Own)
	own["loss"], _ = json.Marshal(m.Options.Loss) // a string and a finite number never fail
	own["bias"], _ = json.Marshal(m.Options.Bias)
	learned := false
	for _, p := range registry.Of(m.Options.Method) {
		raw, ok := own[p.WireKey()]
		if !ok || p.Carried {
			continue
		}
		if text := p.Text(raw); text != "" && text != p.Default {
			train = append(train, flag(p.Name, text))
			learned = learned || p.Name == method.Families.Name
			if p.Name == "eval-every" {
				train = append(train, "‹test=TEST›")
			}
		}
	}
	if s := m.Options.PriorShift; s != 0 {
		train = append(train, flag("prior-shift", strconv.FormatFloat(s, 'g', -1, 64)))
	}
	if p := m.Manifest.Pruned; p != nil && p.Threshold > 0 {
		train = append(train, flag("threshold", strconv.FormatFloat(p.Threshold, 'g', -1, 64)))
	}
	if d := m.Options.DAG; d != "" && d != "graph" {
		train = append(train, flag("dag", d))
	}
	if m.Data.Words != nil {
		for _, f := range m.Data.Words.Flags() {
			train = append(train, flag(f[0], f[1]))
		}
	}
	weights := m.Data.InstanceWeights
	if n := m.Data.LabelTerms; n > 0 {
		train = append(train, "‹label-text=TERMS›")
		if w := m.Data.LabelWeight; w != 1 {
			train = append(train, flag("label-weight", strconv.FormatFloat(w, 'g', -1, 64)))
		}
		if math.Abs(weights-float64(m.Data.Documents())-float64(n)*m.Data.LabelWeight) < 1e-9*weights {
			weights = 0
		}
	}
	if weights > 0 && (m.Data.Table == nil || m.Data.Table.Weight == "") {
		train = append(train, "‹instance-weights=WEIGHTS›")
	}
	separator := ""
	if t := m.Data.Table; t != nil {
		for _, f := range t.Flags() {
			train = append(train, flag(f[0], f[1]))
		}
		separator = t.PathSeparator
	}
	if m.Structure != nil && !learned && !fromPaths(m.Structure, separator) {
		train = append(train, "‹hierarchy=HIERARCHY›")
	}
	if c := m.Calibration; c != nil {
		train = append(train, flag("calibrate", c.Kind))
	}
	if m.Data.Text && (m.Data.Table == nil || len(m.Data.Table.Text) == 0) {
		train = append(train, "‹text›")
	}
	words := []string{"taxon report", format.ShellWord(o.Model)}
	if o.Data.Path != "" {
		words = append(words, flag("data", o.Data.Path))
	}
	if o.Data.Table.Labels != "" {
		words = append(words, flag("labels", o.Data.Table.Labels))
	}
	for _, c := range o.Compare {
		words = append(words, flag("compare", c))
	}
	words = append(words, flag("out", o.Out))
	return []string{option.Flags(strings.Join(train, " ")), option.Flags(strings.Join(words, " "))}
}
