// Package inspect describes what is at a path: a model, a data set, a file of instances, or a class
// structure. It counts the content and estimates the cost of a training on it.
package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"runtime"
	"slices"
	"strconv"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/estimate"
	"taxon/internal/data/dataset"
	"taxon/internal/data/generate"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/parallel"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"
)

// Options configure an inspection and the training that is planned.
type Options struct {
	Path string
	// Text reports that lines are labels, a tab, and text.
	Text bool
	// ZeroBased reports that feature indices start at 0.
	ZeroBased bool
	// Weights is the file with the weights of the instances, if Path is a file of instances. It is
	// empty if there is none.
	Weights string
	// Hierarchy is the file with the class structure of the data. It is empty if there is none.
	Hierarchy string
	// Method is the method of the planned training.
	Method string
	// Said holds the method's options that the user gave.
	Said registry.Values
	// Threads is the number of threads of a training in one process. Zero means all cores.
	Threads int
	// Plan is the cluster for which a plan is made. If it is nil, no plan is made.
	Plan  *Plan
	Files fs.Local
}

// Plan describes a cluster on which the training would run.
type Plan struct {
	estimate.Cluster
	// Cores lists the numbers of cores for which times are estimated, ascending.
	Cores []int
}

// Info is the description of a path. Kind determines which parts it has.
type Info struct {
	// Kind is one of model, dataset, data, structure and shape.
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Bytes is the size on disk.
	Bytes   int64    `json:"bytes,omitempty"`
	Version int      `json:"version,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	// Data is set for the kinds model, dataset and data.
	*Data

	// Structure is the class structure as the user gave it.
	Structure *taxonomy.Shape `json:"structure,omitempty"`
	// Tree is the tree that is or would be trained.
	Tree *Tree `json:"tree,omitempty"`
	// Memory is set for the kinds dataset and data.
	Memory *footprint.Memory `json:"memory,omitempty"`
	// Seconds is the estimated time of a training. It is set for the kinds dataset and data.
	Seconds float64 `json:"train_seconds,omitempty"`
	// Until describes where the training stops.
	Until string `json:"train_until,omitempty"`
	// Plan is the plan for a cluster, if one was requested.
	Plan *estimate.Info `json:"plan,omitempty"`

	// Options, Counts and Report are set for models, and Pruned for pruned models.
	Options *model.Options `json:"options,omitempty"`
	Counts  *model.Counts  `json:"counts,omitempty"`
	Report  *model.Report  `json:"report,omitempty"`
	Pruned  *model.Pruned  `json:"pruned,omitempty"`
}

// Data holds the counts of instances and classes.
type Data struct {
	// Form is libsvm, xmc or text.
	Form        string `json:"form,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Instances   int64  `json:"instances"`
	// Documents and Terms are the instances that are documents, and texts about labels.
	Documents int64 `json:"documents"`
	Terms     int64 `json:"terms"`
	// Weights is the sum of the instances' weights. It is zero if all weights are 1.
	Weights float64 `json:"instance_weights,omitempty"`
	// LeftOut is the number of instances of weight 0, which no other count includes.
	LeftOut int64 `json:"left_out,omitempty"`
	// Features is the number of features that occur. It is nil if unknown.
	Features *int64 `json:"features"`
	// Nonzeros is nil if unknown.
	Nonzeros *int64 `json:"nonzeros"`
	// Labels is the number of classes.
	Labels            int64   `json:"labels"`
	LabelEntries      int64   `json:"label_entries"`
	LabelsPerInstance float64 `json:"labels_per_instance"`
	MaxLabels         int64   `json:"max_labels,omitempty"`
	ClassSizes        *Sizes  `json:"class_sizes,omitempty"`
}

// Sizes describes the distribution of instances over classes.
type Sizes struct {
	Min    int64   `json:"min"`
	Median int64   `json:"median"`
	Mean   float64 `json:"mean"`
	Max    int64   `json:"max"`
	Bins   []Bin   `json:"bins"`
}

// Bin counts the classes of a range of sizes.
type Bin struct {
	From int64 `json:"from"`
	// To is nil if the range has no upper end.
	To      *int64 `json:"to"`
	Classes int    `json:"classes"`
}

// Tree counts the nodes of a training tree.
type Tree struct {
	Nodes     int  `json:"nodes"`
	Terminals int  `json:"terminals"`
	Internals int  `json:"internals"`
	Spawned   int  `json:"spawned"`
	Virtual   bool `json:"virtual_root"`
	// Depth is the number of edges from a root to the deepest node.
	Depth int32 `json:"depth"`
}

// Look inspects a path. Its errors are fs.InputErrors or name the file otherwise.
func Look(ctx context.Context, o Options, ui progress.Reporter) (*Info, error) {
	l := look{o, ui}
	if o.Weights != "" && (dataset.LooksIngested(o.Path) || model.IsModel(o.Path)) {
		return nil, fs.Inputf(o.Path, 0, "‹instance-weights› goes with a file of instances: this is none, or has them within")
	}
	if o.Path != fs.Stdin {
		st, err := fs.Stat(o.Path)
		if err != nil && !errors.Is(err, iofs.ErrNotExist) { // otherwise it may be a pattern
			return nil, fs.Explain(o.Path, err)
		}
		switch {
		case model.IsUnfinished(o.Path):
			return modelInfo(o.Path)
		case err != nil || !st.IsDir():
		case dataset.LooksIngested(o.Path):
			return l.set(ctx)
		case !fs.HasParts(o.Path):
			return modelInfo(o.Path)
		}
	}
	return l.file(ctx)
}

// modelInfo describes a model.
func modelInfo(path string) (*Info, error) {
	m, err := model.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	man := m.Manifest
	i := &Info{Kind: "model", Path: path, Version: man.Version, Pruned: man.Pruned, Options: &man.Options,
		Counts: &man.Counts, Report: &man.Report}
	for _, f := range man.Files {
		i.Bytes += f.Bytes
	}
	features, nonzeros := int64(len(m.Feature)), m.Data.Nonzeros
	i.Data = &Data{Fingerprint: m.Data.Fingerprint, Instances: int64(m.Data.Instances), Weights: m.Data.InstanceWeights,
		Documents: int64(m.Data.Documents()), Terms: int64(m.Data.LabelTerms),
		Features: &features, Nonzeros: &nonzeros,
		Labels: int64(len(m.Labels)), LabelEntries: m.Data.Positives, LabelsPerInstance: m.LabelsPerInstance(),
		ClassSizes: describeSizes(m.LabelCounts)}
	if m.Data.Text {
		i.Form = "text"
	}
	if m.Data.Strings != "" {
		i.Form = "strings " + m.Data.Strings
	}
	if m.Structure != nil {
		shape := m.Structure.Shape(m.Labels)
		i.Structure = &shape
	}
	i.Tree = describeTree(m.Tree)
	return i, nil
}

// look is the state of one call of Look.
type look struct {
	o  Options
	ui progress.Reporter
}

// set describes an ingested data set.
func (l *look) set(ctx context.Context) (*Info, error) {
	set, err := dataset.Open(l.o.Path)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	st, d := set.Stats, program.DescribeData(set)
	i := &Info{Kind: "dataset", Path: l.o.Path, Bytes: fs.FolderBytes(l.o.Path), Notes: set.Warnings}
	form := set.Source.Form
	if flags := set.Source.Strings; flags != "" {
		form = "strings " + flags
	}
	i.Data = &Data{Form: form, Fingerprint: set.Fingerprint, Instances: st.Rows, Weights: st.Weight,
		Documents: st.Rows - st.Terms, Terms: st.Terms, Features: &st.Columns,
		Nonzeros: &st.Nonzeros,
		Labels:   st.Labels, LabelEntries: st.LabelEntries - st.Terms,
		LabelsPerInstance: ratio(st.LabelEntries-st.Terms, st.Rows-st.Terms),
		MaxLabels:         st.MaxLabels, ClassSizes: describeSizes(set.LabelSizes())}
	return i, fs.Compute(ctx, func() error { return l.training(ctx, i, d) })
}

// file describes a file of instances or a structure. The files that match a pattern, and the parts
// in a folder, count as one file.
func (l *look) file(ctx context.Context) (*Info, error) {
	f, err := fs.Open(ctx, l.o.Files, l.o.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i := &Info{Path: l.o.Path, Bytes: max(0, f.Size())}
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), f)
	if !l.o.Text && l.o.Weights == "" && looksLikeStructure(head[:n]) {
		return i, fs.Compute(ctx, func() error {
			s, warnings, err := taxonomy.Read(all, f.Name())
			if err != nil {
				return err
			}
			shape := s.Shape(nil)
			i.Kind, i.Structure, i.Notes = "structure", &shape, warnings
			return nil
		})
	}
	if form := new(dataset.ReaderOptions).Table.FormatOf(l.o.Path, l.o.Text); form != "" {
		return nil, fs.Inputf(l.o.Path, 0, "is a table or a matrix (%s), which info does not read: `taxon ingest` makes a "+
			"folder of it, and info tells of that", form)
	}
	i.Kind = "data"
	d, err := l.countRows(ctx, i, f, all)
	if err != nil {
		return nil, err
	}
	return i, fs.Compute(ctx, func() error { return l.training(ctx, i, d) })
}

// sniffBytes is how much of a file is read to tell a structure from instances.
const sniffBytes = 64 << 10

// looksLikeStructure reports whether every complete line is empty, a comment, or two names of which
// the second is no idx:value pair.
func looksLikeStructure(head []byte) bool {
	lines := bytes.Split(head, []byte("\n"))
	if len(head) == sniffBytes {
		lines = lines[:len(lines)-1] // incomplete
	}
	edges := 0
	for _, line := range lines {
		words := bytes.Fields(line)
		if k := slices.IndexFunc(words, func(w []byte) bool { return w[0] == '#' }); k >= 0 {
			words = words[:k]
		}
		switch {
		case len(words) == 0:
			continue
		case len(words) != 2 || isPair(words[0]) || isPair(words[1]):
			return false
		}
		edges++
	}
	return edges > 0
}

// isPair reports whether w is INTEGER:NUMBER.
func isPair(w []byte) bool {
	index, value, ok := bytes.Cut(w, []byte(":"))
	if !ok {
		return false
	}
	_, err1 := strconv.ParseUint(string(index), 10, 64)
	_, err2 := strconv.ParseFloat(string(value), 64)
	return err1 == nil && (err2 == nil || errors.Is(err2, strconv.ErrRange))
}

// countRows reads all instances and fills in the counts.
func (l *look) countRows(ctx context.Context, i *Info, f *fs.File, in io.Reader) (*taxonv1.Data, error) {
	r := dataset.NewReader(in, dataset.ReaderOptions{Name: f.Name(), Text: l.o.Text, ZeroBased: l.o.ZeroBased})
	weights := (*dataset.WeightReader)(nil)
	if l.o.Weights != "" {
		var err error
		if weights, err = dataset.OpenWeights(ctx, l.o.Files, l.o.Weights); err != nil {
			return nil, err
		}
		defer weights.Close()
	}
	line := l.ui.StartBytes("info", max(0, f.Size()))
	defer line.Done()
	d, counted := &Data{}, &taxonv1.Data{}
	i.Data = d
	number := map[string]int{}
	var features featureRows
	var nonzeros int64
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		weight := 1.0
		if err == nil && weights != nil {
			weight, err = weights.Next()
		}
		if err != nil {
			return nil, err
		}
		if weight == 0 {
			d.LeftOut++
			continue
		}
		for _, label := range row.Labels {
			k, ok := number[string(label)]
			if !ok {
				k = len(number)
				number[string(label)] = k
				counted.Labels, counted.LabelInstances = append(counted.Labels, string(label)), append(counted.LabelInstances, 0)
			}
			counted.LabelInstances[k]++
		}
		for _, index := range row.Index {
			features.add(index)
		}
		nonzeros += int64(len(row.Index))
		d.Instances++
		d.LabelEntries += int64(len(row.Labels))
		d.MaxLabels = max(d.MaxLabels, int64(len(row.Labels)))
		switch len(row.Labels) {
		case 0:
			counted.NoLabel++
		case 1:
		default:
			counted.SeveralLabels++
		}
		if len(row.Labels) != 1 && counted.FirstNotOne == 0 {
			counted.FirstNotOne = uint64(d.Instances)
		}
		line.Set(f.BytesRead(), format.Count(d.Instances)+" instances")
	}
	if weights != nil {
		if err := weights.End(); err != nil {
			return nil, err
		}
		d.Weights = weights.Sum()
	}
	d.Form, d.Labels, d.LabelsPerInstance, d.ClassSizes = r.Form(), int64(len(number)), ratio(d.LabelEntries, d.Instances),
		describeSizes(counted.LabelInstances)
	d.Documents = d.Instances
	counted.Instances, counted.Features, counted.Nonzeros = uint64(d.Instances), uint64(features.count), uint64(nonzeros)
	counted.FeatureCountsLog = program.FeatureCounts(features.ranked())
	if !l.o.Text {
		d.Features, d.Nonzeros = &features.count, &nonzeros
	}
	i.Notes = dataset.Stats{Counts: r.Counts()}.Warnings()
	if l.o.Text {
		i.Notes = append(i.Notes, "the vocabulary is counted by ingest: `taxon ingest ‹text›`, then info tells "+
			"features and memory")
	}
	return counted, nil
}

// featureRows counts the rows of each feature index, in memory proportional to the ranges in use.
type featureRows struct {
	// count is the number of distinct indices.
	count int64
	pages map[uint32]*[1 << 10]uint32
}

// add counts a row with feature i.
func (c *featureRows) add(i uint32) {
	if c.pages == nil {
		c.pages = map[uint32]*[1 << 10]uint32{}
	}
	page := c.pages[i>>10]
	if page == nil {
		page = new([1 << 10]uint32)
		c.pages[i>>10] = page
	}
	rows := &page[i&1023]
	if *rows == 0 {
		c.count++
	}
	*rows++
}

// ranked lists the counts in the order in which ingest numbers the columns, largest first.
func (c *featureRows) ranked() []uint32 {
	out := make([]uint32, 0, c.count)
	for _, page := range c.pages {
		for _, rows := range page {
			if rows > 0 {
				out = append(out, rows)
			}
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// training estimates a training on these data.
func (l *look) training(ctx context.Context, i *Info, d *taxonv1.Data) error {
	var s *taxonomy.Structure
	if l.o.Hierarchy != "" {
		var err error
		if s, err = l.hierarchy(ctx, i, d.GetLabels()); err != nil {
			return err
		}
	}
	if i.LabelEntries == 0 {
		i.Notes = append(i.Notes, "no instance has a label: there is nothing to learn from")
		return nil
	}
	counts := make([]int, len(d.GetLabelInstances()))
	for k, n := range d.GetLabelInstances() {
		counts[k] = int(n)
	}
	prune, err := taxonomy.ParsePrune(l.o.Said["prune"])
	if err != nil {
		return option.Errorf("%w", err)
	}
	tree, warnings, err := taxonomy.Build(s, d.GetLabels(), counts, prune)
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	i.Notes = append(i.Notes, warnings...)
	i.Tree = describeTree(tree)
	if i.Features == nil {
		return nil
	}
	spec := &taxonv1.JobSpec{Data: d}
	if s != nil {
		spec.Structure = &taxonv1.Structure{Names: s.Names, Parents: s.Parents, Children: s.Children}
	}
	j, err := l.o.job(spec)
	if err != nil {
		return err
	}
	threads := parallel.Threads(l.o.Threads)
	m := footprint.Alone(j.Estimate, uint32(threads), 1, footprint.Cached)
	i.Memory, i.Seconds, i.Until = &m, estimate.Seconds(j, min(threads, runtime.NumCPU())), estimate.Until(j)
	i.Plan = l.o.Plan.of(j)
	return nil
}

// hierarchy reads the structure of data with these labels. A structure that would be read as a
// graph is reduced to the first parents.
func (l *look) hierarchy(ctx context.Context, i *Info, names []string) (*taxonomy.Structure, error) {
	s, warnings, err := taxonomy.ReadFile(ctx, l.o.Files, l.o.Hierarchy, taxonomy.Read)
	for _, w := range warnings {
		l.ui.Warn("%s", w)
	}
	if err == nil {
		err = s.CheckLabels(l.o.Hierarchy, names)
	}
	if err != nil {
		return nil, err
	}
	shape := s.Shape(names)
	i.Structure = &shape
	if s.IsDAG() {
		i.Notes = append(i.Notes, "some nodes have several parents: train reads that as a graph, which takes more time and "+
			"memory than the tree that follows (‹dag=first-parent›)")
		s = s.FirstParent()
	}
	return s, nil
}

// Shape plans a training on data of a given shape without generating them.
func Shape(s generate.Shape, o Options) (*Info, error) {
	spec := estimate.Spec(s, 0)
	d := spec.GetData()
	features, nonzeros := int64(d.GetFeatures()), int64(d.GetNonzeros())
	i := &Info{Kind: "shape", Path: fmt.Sprintf("%s at scale %g", s.Like, s.Scale)}
	i.Data = &Data{Instances: int64(s.Instances), Documents: int64(s.Instances), Features: &features,
		Nonzeros: &nonzeros, Labels: int64(s.Classes), LabelEntries: int64(float64(s.Instances) * s.Labels),
		LabelsPerInstance: s.Labels,
		ClassSizes:        describeSizes(d.GetLabelInstances())}
	j, err := o.job(spec)
	if err != nil {
		return nil, err
	}
	i.Plan = o.Plan.of(j)
	return i, nil
}

// job plans a training with the chosen method.
func (o *Options) job(spec *taxonv1.JobSpec) (*registry.Job, error) {
	spec.Options = &taxonv1.Options{Method: o.Method}
	if err := registry.Fill(spec.Options, o.Said); err != nil {
		return nil, option.Errorf("%w", err)
	}
	if registry.Unstructured(o.Method) {
		spec.Structure = nil
	}
	j, err := registry.Prepare(spec)
	if err != nil {
		return nil, option.Errorf("%w", err)
	}
	return j, nil
}

// of estimates the training on the cluster. It is nil if there is no plan.
func (p *Plan) of(j *registry.Job) *estimate.Info {
	if p == nil {
		return nil
	}
	return estimate.Of(j, p.Cluster, p.Cores)
}

// describeTree counts the nodes of t.
func describeTree(t *taxonomy.Tree) *Tree {
	d := &Tree{Nodes: t.Len(), Terminals: len(t.Terminals()), Depth: max(0, t.MaxDepth())}
	d.Internals = d.Nodes - d.Terminals
	for _, k := range t.Kind {
		switch k {
		case taxonomy.Spawned:
			d.Spawned++
		case taxonomy.Virtual:
			d.Virtual = true
		}
	}
	return d
}

// classBins are the upper ends of the bins of class sizes, as in eval --by-size.
var classBins = []int64{0, 1, 5, 10, 20, 50, 100}

// describeSizes returns the distribution of class sizes.
func describeSizes[N int | uint32](sizes []N) *Sizes {
	if len(sizes) == 0 {
		return nil
	}
	sorted := make([]int64, len(sizes))
	for k, n := range sizes {
		sorted[k] = int64(n)
	}
	slices.Sort(sorted)
	d := &Sizes{Min: sorted[0], Median: sorted[len(sorted)/2], Max: sorted[len(sorted)-1]}
	total := int64(0)
	for _, n := range sorted {
		total += n
	}
	d.Mean = float64(total) / float64(len(sorted))
	from, at := int64(0), 0
	for b := 0; b <= len(classBins); b++ {
		bin := Bin{From: from}
		end := len(sorted)
		if b < len(classBins) {
			to := classBins[b]
			bin.To, from = &to, to+1
			end = at
			for end < len(sorted) && sorted[end] <= to {
				end++
			}
		}
		bin.Classes = end - at
		at = end
		if bin.Classes > 0 {
			d.Bins = append(d.Bins, bin)
		}
	}
	return d
}
