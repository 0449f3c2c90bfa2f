package report

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	texttemplate "text/template"

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

// Options say what is reported, and where it is written.
type Options struct {
	Model   string
	Data    predict.Input // test data; no path: none
	Compare []string      // models
	Out     string        // a file; ending in .md: a model card
}

// Summary is what was written, `taxon report --json`.
type Summary struct {
	Out       string `json:"out"`
	Bytes     int64  `json:"bytes"`
	Instances int    `json:"instances,omitempty"`
}

//go:embed report.html
var page string

// card is a model card, as model hubs read them: figures in YAML, then Markdown.
//
//go:embed card.md
var card string

var (
	htmlPage  = template.Must(template.New("report").Funcs(functions).Parse(page))
	modelCard = texttemplate.Must(texttemplate.New("card").Funcs(functions).Parse(card))
)

var functions = map[string]any{
	"percent": func(x float64) string { return fmt.Sprintf("%.1f", 100*x) },
	"count":   func(n any) string { return format.Count(whole(n)) },
	"counted": func(n any, one, several string) string { return format.Counted(whole(n), one, several) },
	"p": func(x float64) string {
		if x < 1e-4 {
			return "< 0.0001"
		}
		return fmt.Sprintf("%.2g", x)
	},
	"sure": func(p float64) bool { return p < 0.05 },
	"g":    func(x float64) string { return fmt.Sprintf("%.4g", x) },
	"name": func(names []string, n int32) string { return names[n] },
	"json": func(s string) (string, error) { // a string of YAML, too
		b, err := json.Marshal(s)
		return string(b), err
	},
	"cell": strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ", "*", `\*`, "_", `\_`, "`", "\\`").Replace,
}

func whole(n any) int64 {
	switch n := n.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// view is what the page shows.
type view struct {
	Name, Method, Certificate string
	Report                    *model.Report
	Facts                     []fact
	Charts                    []template.HTML
	Data                      string
	Result                    *measure.Result
	Measures                  []figure
	Reliability               template.HTML
	Classes                   []classView
	Confusion                 []*place
	Worst                     []worst
	Others                    []other
	Again                     []string
	Task                      string // of a model card, as model hubs name it
	Hierarchical              bool
}

// Short and DataName are the last parts of paths. Readers of a card do not have the folders.
func (v *view) Short() string    { return filepath.Base(v.Name) }
func (v *view) DataName() string { return filepath.Base(v.Data) }

type fact struct{ Name, Value string }

// figure is a number with its meaning.
type figure struct{ Name, Value, Means string }

type classView struct {
	Label                       string
	Trained                     int64
	Instances, Predicted, Right int64
	Precision, Recall, F1       float64
	Instead                     string
}

// place is a node of the hierarchy with the mistakes whose paths separate there.
type place struct {
	Name             string
	Instances, Parts int64
	Inside           int64 // mistakes here and below
	Pairs            []string
	Below            []*place
	Top              bool // it has none above it
}

type worst struct {
	Row         int64
	Truth, Said string
	Steps       int
	Why         []levelPair
}

// levelPair has the features that added most to the predicted class and to the true one.
type levelPair struct{ What, Features string }

type other struct {
	Name   string
	Result *measure.Result // of this model, with the tests against the other
}

// Write makes the report.
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
		var form interface{ Execute(io.Writer, any) error } = htmlPage
		if filepath.Ext(o.Out) == ".md" {
			form = modelCard
		}
		err := form.Execute(c, v)
		s.Bytes = c.n
		return err
	})
}

type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// describe shows the contents of the model's own folder.
func describe(m *model.Model, name string) *view {
	r := &m.Manifest.Report
	v := &view{Name: name, Report: r, Method: registry.Words(r.Method, r.Own), Task: "tabular-classification",
		Hierarchical: m.Structure != nil}
	if m.Data.Text {
		v.Task = "text-classification"
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
	if r.PeakRSSBytes > 0 { // that of many processes is not known
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
func curves(trace []model.TraceRow) (out []template.HTML) {
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
	for _, c := range []template.HTML{
		lineChart("Relative gap by sweep", "sweep", "gap", true, gapSweep),
		lineChart("Relative gap by second", "seconds", "gap", true, gapTime),
		lineChart("Objective and bound", "sweep", "", true, primal, dual),
		lineChart("F1 on test data by sweep", "sweep", "%", false, micro, macro),
		lineChart("F1 on test data by second", "seconds", "%", false, microTime, macroTime),
	} {
		if c != "" {
			out = append(out, c)
		}
	}
	return out
}

// score adds all figures of the test data.
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

// measures lists the figures that there are.
func measures(r *measure.Result) (out []figure) {
	for _, m := range measure.Measures() {
		if x, ok := m.Of(r); ok && m.Card != nil {
			out = append(out, figure{m.Card.Title, m.Card.Of(&m, x),
				strings.ReplaceAll(m.Card.Text, "{classes}", format.Count(int64(r.Classes)))})
		}
	}
	return out
}

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

// maxPlaces bounds the nodes that are shown.
const maxPlaces = 2000

// confusion is the hierarchy with its mistakes, the nodes with most mistakes first.
func (o *observed) confusion() []*place {
	t := o.m.Tree
	root := &place{Name: "the whole hierarchy", Instances: o.rows, Parts: o.parted[0], Inside: o.parted[0],
		Pairs: o.pairWords(0)}
	all := make([]*place, t.Len())
	for n := t.Len() - 1; n >= 0; n-- { // children come behind their parents
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

// pairWords are the children of a place that are most often mistaken for each other.
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

// nodeName is a node's name. The name of a leaf for the place itself says so.
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
		w := worst{Row: k.row, Truth: o.m.Tree.Name[k.truth], Said: o.m.Tree.Name[k.said], Steps: k.steps}
		for _, label := range []string{w.Said, w.Truth} {
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

// features are those that add most along a path, in words.
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

// fromPaths says whether the structure comes from labels that are paths.
func fromPaths(s *taxonomy.Structure, separator string) bool {
	for i, p := range s.Parents {
		if separator == "" || !strings.HasPrefix(s.Names[s.Children[i]], s.Names[p]+separator) {
			return false
		}
	}
	return true
}

// flag is an option and its value on a command line.
func flag(name, value string) string { return option.Value(name, format.ShellWord(value)) }

// again is the commands that make the model and the report again.
func again(m *model.Model, o Options) []string {
	train := []string{"taxon train ‹data=DATA› ‹out=MODEL›", flag("method", m.Options.Method)}
	for _, p := range registry.Of(m.Options.Method) {
		raw, ok := m.Options.Own[p.WireKey()]
		if !ok || p.Carried {
			continue
		}
		if text := p.Text(raw); text != "" && text != p.Default {
			train = append(train, flag(p.Name, text))
			if p.Name == "eval-every" {
				train = append(train, "‹test=TEST›")
			}
		}
	}
	separator := ""
	if t := m.Data.Table; t != nil {
		for _, f := range t.Flags() {
			train = append(train, flag(f[0], f[1]))
		}
		separator = t.PathSeparator
	}
	if m.Structure != nil && !fromPaths(m.Structure, separator) {
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
