package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method"
	"taxon/internal/dataset"
	"taxon/internal/evaluate"
	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/model"
	"taxon/internal/planinfo"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// infoOptions are the flags of info.
type infoOptions struct {
	path      string
	text      bool
	zeroBased bool
	hierarchy string
	threads   int
	plan      planOptions
}

func newInfoCmd(a *app) *cobra.Command {
	var o infoOptions
	cmd := &cobra.Command{
		Use:     "info PATH",
		GroupID: groupData,
		Short:   "what a model, a data set, a data file or a structure holds",
		Long: "Tells what PATH is (a model, a data set made by ingest, a file of instances, a class structure) and counts what it holds: " +
			"instances, features, classes and their sizes, depth, and the memory and time that a training would need. " +
			"With --hierarchy data are looked at together with their class structure. --plan tells what a training takes on a cluster: tasks, " +
			"bytes, memory, CPU time, and where more cores stop helping; with --like for data that need not exist.",
		Example: "taxon info train.svm.xz --hierarchy tree.txt\n" +
			"taxon info --plan --like lwiki --scale 1 --stores 64",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && (o.plan.data != "" || o.plan.shape.Like != ""): // judged by planOptions.check
				return nil
			case len(args) == 0 || len(args) == 1 && args[0] == "":
				return exit.Usagef("info: name a model, a data set, a data file or a structure: taxon info PATH")
			case len(args) > 1:
				return exit.Usagef("info: unexpected argument %q: one PATH at a time", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.path, err = o.plan.check(args); err != nil {
				return err
			}
			if o.path, err = fs.Canonical(o.path); err != nil {
				return fmt.Errorf("info: %w", err)
			}
			return runInfo(cmd.Context(), a, o)
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.BoolVar(&o.text, "text", false, "PATH has lines LABEL[,LABEL...]<TAB>text")
		f.BoolVar(&o.zeroBased, "zero-based", false, "feature indices count from 0")
		f.StringVar(&o.hierarchy, "hierarchy", "", "class structure of the data: a `FILE`")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		intFlag(f, &o.threads, "threads", 0, 0, 1<<15, "`N` threads that the training would use, 0 for all cores")
	})
	flagGroup(cmd, "Plan", o.plan.flags)
	return cmd
}

// info is `taxon info --json`; which parts there are depends on kind.
type info struct {
	Kind    string   `json:"kind"` // model, dataset, data, structure, shape
	Path    string   `json:"path"`
	Bytes   int64    `json:"bytes,omitempty"` // on disk
	Version int      `json:"version,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	*dataInfo // model, dataset, data

	Structure *taxonomy.Shape `json:"structure,omitempty"`     // as the user gave it
	Tree      *treeInfo       `json:"tree,omitempty"`          // that is or would be trained
	Memory    *method.Memory  `json:"memory,omitempty"`        // dataset, data
	Seconds   float64         `json:"train_seconds,omitempty"` // about what a training takes; dataset, data
	Plan      *planinfo.Info  `json:"plan,omitempty"`          // with --plan

	Options *model.Options `json:"options,omitempty"` // model
	Counts  *model.Counts  `json:"counts,omitempty"`  // model
	Report  *model.Report  `json:"report,omitempty"`  // model
	Pruned  *model.Pruned  `json:"pruned,omitempty"`  // model for prediction
}

// dataInfo counts instances and classes.
type dataInfo struct {
	Form              string     `json:"form,omitempty"` // libsvm, xmc, text
	Fingerprint       string     `json:"fingerprint,omitempty"`
	Instances         int64      `json:"instances"`
	Weights           float64    `json:"instance_weights,omitempty"` // their sum; not there: all are 1
	Features          *int64     `json:"features"`                   // that occur; null: not known
	Nonzeros          *int64     `json:"nonzeros"`                   // null: not known
	Labels            int64      `json:"labels"`                     // classes
	LabelEntries      int64      `json:"label_entries"`
	LabelsPerInstance float64    `json:"labels_per_instance"`
	MaxLabels         int64      `json:"max_labels,omitempty"`
	ClassSizes        *sizesInfo `json:"class_sizes,omitempty"`
}

// sizesInfo describes how many instances the classes have.
type sizesInfo struct {
	Min    int64     `json:"min"`
	Median int64     `json:"median"`
	Mean   float64   `json:"mean"`
	Max    int64     `json:"max"`
	Bins   []sizeBin `json:"bins"`
}

type sizeBin struct {
	From    int64  `json:"from"`
	To      *int64 `json:"to"` // null: no upper end
	Classes int    `json:"classes"`
}

// treeInfo counts the nodes of a training tree.
type treeInfo struct {
	Nodes     int   `json:"nodes"`
	Terminals int   `json:"terminals"`
	Internals int   `json:"internals"`
	Spawned   int   `json:"spawned"`
	Virtual   bool  `json:"virtual_root"`
	Depth     int32 `json:"depth"` // edges from a root to the deepest node
}

func runInfo(ctx context.Context, a *app, o infoOptions) error {
	if err := oneStdin("info", "PATH and --hierarchy", o.path, o.hierarchy); err != nil {
		return err
	}
	i, err := gatherInfo(ctx, a, o)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(i)
	}
	printInfo(a, i)
	return nil
}

// gatherInfo finds out what the path is.
func gatherInfo(ctx context.Context, a *app, o infoOptions) (*info, error) {
	if o.plan.shape.Like != "" {
		return shapeInfo(o)
	}
	if o.path != fs.Stdin {
		st, err := fs.Stat(o.path)
		if err != nil && !errors.Is(err, iofs.ErrNotExist) { // else it may be a pattern
			return nil, fs.Explain(o.path, err)
		}
		switch {
		case model.IsUnfinished(o.path):
			return modelInfo(o)
		case err != nil || !st.IsDir():
		case dataset.LooksIngested(o.path):
			return setInfo(ctx, a, o)
		case !fs.HasParts(o.path):
			return modelInfo(o)
		}
	}
	return fileInfo(ctx, a, o)
}

func modelInfo(o infoOptions) (*info, error) {
	m, err := model.Open(o.path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	man := m.Manifest
	i := &info{Kind: "model", Path: o.path, Version: man.Version, Pruned: man.Pruned, Options: &man.Options, Counts: &man.Counts, Report: &man.Report}
	for _, f := range man.Files {
		i.Bytes += f.Bytes
	}
	sizes := make([]int64, len(m.LabelCounts))
	for k, n := range m.LabelCounts {
		sizes[k] = int64(n)
	}
	features, nonzeros := int64(len(m.Feature)), m.Data.Nonzeros
	i.dataInfo = &dataInfo{Fingerprint: m.Data.Fingerprint, Instances: int64(m.Data.Instances), Weights: m.Data.InstanceWeights, Features: &features, Nonzeros: &nonzeros,
		Labels: int64(len(m.Labels)), LabelEntries: m.Data.Positives, LabelsPerInstance: m.LabelsPerInstance(), ClassSizes: describeSizes(sizes)}
	if m.Data.Text {
		i.Form = "text"
	}
	if m.Structure != nil {
		shape := m.Structure.Shape(m.Labels)
		i.Structure = &shape
	}
	i.Tree = describeTree(m.Tree)
	return i, nil
}

func setInfo(ctx context.Context, a *app, o infoOptions) (*info, error) {
	set, err := dataset.Open(o.path)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	sizes := make([]int64, len(set.Labels))
	for l := range sizes {
		sizes[l] = int64(set.PosBegin[l+1] - set.PosBegin[l])
	}
	st := set.Stats
	i := &info{Kind: "dataset", Path: o.path, Bytes: fs.FolderBytes(o.path), Notes: set.Warnings}
	i.dataInfo = &dataInfo{Form: set.Source.Form, Fingerprint: set.Fingerprint, Instances: st.Rows, Weights: st.Weight, Features: &st.Columns, Nonzeros: &st.Nonzeros,
		Labels: st.Labels, LabelEntries: st.LabelEntries, LabelsPerInstance: ratio(st.LabelEntries, st.Rows), MaxLabels: st.MaxLabels, ClassSizes: describeSizes(sizes)}
	return i, i.addTraining(ctx, a, o, set.Labels, sizes)
}

// fileInfo reads a file of instances or a structure, or the files of a pattern or a folder of
// parts as one.
func fileInfo(ctx context.Context, a *app, o infoOptions) (*info, error) {
	f, err := fs.Open(ctx, fs.Local{In: a.stdin}, o.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	i := &info{Path: o.path, Bytes: max(0, f.Size())}
	head := make([]byte, sniffBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), f)
	if !o.text && looksLikeStructure(head[:n]) {
		s, warnings, err := taxonomy.Read(all, f.Name())
		if err != nil {
			return nil, err
		}
		shape := s.Shape(nil)
		i.Kind, i.Structure, i.Notes = "structure", &shape, warnings
		return i, nil
	}
	i.Kind = "data"
	names, sizes, err := i.countRows(ctx, a, f, all, o)
	if err != nil {
		return nil, err
	}
	return i, i.addTraining(ctx, a, o, names, sizes)
}

// sniffBytes is how much of a file is looked at to tell a structure from instances.
const sniffBytes = 64 << 10

// looksLikeStructure: every whole line is a comment, empty, or two names of which the
// second is no idx:value pair.
func looksLikeStructure(head []byte) bool {
	lines := bytes.Split(head, []byte("\n"))
	if len(head) == sniffBytes {
		lines = lines[:len(lines)-1] // cut off
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

// isPair recognises INTEGER:NUMBER.
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
func (i *info) countRows(ctx context.Context, a *app, f *fs.File, in io.Reader, o infoOptions) (names []string, sizes []int64, err error) {
	r := dataset.NewReader(in, dataset.ReaderOptions{Name: f.Name(), Text: o.text, ZeroBased: o.zeroBased})
	line := a.ui.StartBytes("info", max(0, f.Size()))
	defer line.Done()
	d := &dataInfo{}
	i.dataInfo = d
	number := map[string]int{}
	var features bitset
	var nonzeros int64
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		for _, l := range row.Labels {
			k, ok := number[string(l)]
			if !ok {
				k = len(names)
				number[string(l)] = k
				names, sizes = append(names, string(l)), append(sizes, 0)
			}
			sizes[k]++
		}
		for _, index := range row.Index {
			features.add(index)
		}
		nonzeros += int64(len(row.Index))
		d.Instances++
		d.LabelEntries += int64(len(row.Labels))
		d.MaxLabels = max(d.MaxLabels, int64(len(row.Labels)))
		line.Set(f.BytesRead(), human.Count(d.Instances)+" instances")
	}
	d.Form, d.Labels, d.LabelsPerInstance, d.ClassSizes = r.Form(), int64(len(names)), ratio(d.LabelEntries, d.Instances), describeSizes(sizes)
	if !o.text {
		d.Features, d.Nonzeros = &features.count, &nonzeros
	}
	i.Notes = dataset.Stats{Counts: r.Counts()}.Warnings()
	if o.text {
		i.Notes = append(i.Notes, "the vocabulary is counted by ingest: `taxon ingest --text`, then info tells features and memory")
	}
	return names, sizes, nil
}

// bitset counts distinct feature indices in memory proportional to the ranges in use.
type bitset struct {
	count int64
	pages map[uint32]*[1 << 10]uint64
}

func (b *bitset) add(i uint32) {
	if b.pages == nil {
		b.pages = map[uint32]*[1 << 10]uint64{}
	}
	page := b.pages[i>>16]
	if page == nil {
		page = new([1 << 10]uint64)
		b.pages[i>>16] = page
	}
	word, bit := &page[i>>6&1023], uint64(1)<<(i&63)
	if *word&bit == 0 {
		*word |= bit
		b.count++
	}
}

// addTraining says what a training of these data would be like.
func (i *info) addTraining(ctx context.Context, a *app, o infoOptions, names []string, sizes []int64) error {
	var s *taxonomy.Structure
	if o.hierarchy != "" {
		var err error
		if s, err = evaluate.ReadHierarchy(ctx, fs.Local{In: a.stdin}, o.hierarchy, a.ui); err != nil {
			return err
		}
		if err := s.CheckLabels(o.hierarchy, names); err != nil {
			return err
		}
		shape := s.Shape(names)
		i.Structure = &shape
		if s.IsDAG() {
			i.Notes = append(i.Notes, "some nodes have several parents: train reads that as a graph, which takes more time and memory than the tree that follows (--dag first-parent)")
			s = s.FirstParent()
		}
	}
	if i.LabelEntries == 0 {
		i.Notes = append(i.Notes, "no instance has a label: there is nothing to learn from")
		return nil
	}
	counts := make([]int, len(sizes))
	for k, n := range sizes {
		counts[k] = int(n)
	}
	tree, warnings, err := taxonomy.Build(s, names, counts, taxonomy.PruneEmpty)
	if err != nil {
		return fmt.Errorf("info: %w", err)
	}
	i.Notes = append(i.Notes, warnings...)
	i.Tree = describeTree(tree)
	if i.Features != nil {
		d := &taxonv1.Data{Instances: uint64(i.Instances), Features: uint64(*i.Features), Nonzeros: uint64(*i.Nonzeros), Labels: names}
		for _, n := range sizes {
			d.LabelInstances = append(d.LabelInstances, uint32(n))
		}
		return i.addPlan(o, d, s)
	}
	return nil
}

func describeTree(t *taxonomy.Tree) *treeInfo {
	d := &treeInfo{Nodes: t.Len(), Terminals: len(t.Terminals()), Depth: max(0, t.MaxDepth())}
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
var classBins = []int64{5, 10, 20, 50, 100}

func describeSizes(sizes []int64) *sizesInfo {
	if len(sizes) == 0 {
		return nil
	}
	sorted := slices.Clone(sizes)
	slices.Sort(sorted)
	d := &sizesInfo{Min: sorted[0], Median: sorted[len(sorted)/2], Max: sorted[len(sorted)-1]}
	total := int64(0)
	for _, n := range sorted {
		total += n
	}
	d.Mean = float64(total) / float64(len(sorted))
	from, at := int64(1), 0
	for b := 0; b <= len(classBins); b++ {
		bin := sizeBin{From: from}
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

func ratio(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
