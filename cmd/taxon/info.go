package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/estimate"
	"taxon/internal/app/inspect"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// infoOptions holds the flags of info.
type infoOptions struct {
	inspect.Options
	plan bool
	data string
	on   inspect.Plan
	like shapeOptions
}

func newInfoCmd(a *app) *cobra.Command {
	var o infoOptions
	cmd := &cobra.Command{
		Use:     "info PATH",
		GroupID: groupData,
		Short:   "what a model, a data set, a data file or a structure holds",
		Long: "Says what PATH is (a model, a data set made by ingest, a file of instances, a class structure) and " +
			"prints its figures: " +
			"instances, features, classes and their sizes, depth, and the memory and time that a training would need. " +
			"With --hierarchy the figures are those of data and class structure together. --plan prints what a training takes " +
			"on a cluster: tasks, " +
			"bytes, memory, CPU time, and where more cores stop helping; with --like for generated data, which need not exist.",
		Example: "taxon info train.svm.xz --hierarchy tree.txt\n" +
			"taxon info --plan --like lwiki --scale 1 --stores 64",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && (o.data != "" || o.like.Like != ""): // checked by infoOptions.check
				return nil
			case len(args) == 0 || len(args) == 1 && args[0] == "":
				return option.Errorf("info: name a model, a data set, a data file or a structure: taxon info PATH")
			case len(args) > 1:
				return option.Errorf("info: unexpected argument %q: one PATH at a time", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := o.check(args)
			if err != nil {
				return err
			}
			if o.Path, err = fs.Canonical(path); err != nil {
				return fmt.Errorf("info: %w", err)
			}
			return runInfo(cmd.Context(), a, o)
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.BoolVar(&o.Text, "text", false, "PATH has lines LABEL[,LABEL...]<TAB>text")
		f.BoolVar(&o.ZeroBased, "zero-based", false, "feature indices count from 0")
		instanceWeightsFlag(f, &o.Weights)
		f.StringVar(&o.Hierarchy, "hierarchy", "", "class structure of the data: a `FILE`")
	})
	flagGroup(cmd, "Method", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.Method, "method", registry.Names()[0], registry.Names(), "the method whose memory and time are "+
			"estimated, with the options that train has for it: see --all")
		o.methodOptions(f, true)
	})
	optionGroup(cmd, "Method", func(f *pflag.FlagSet) { o.methodOptions(f, false) })
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		intFlag(f, &o.Threads, "threads", 0, 0, 1<<15, "`N` threads that the training would use, 0 for all cores")
	})
	flagGroup(cmd, "Plan", o.planFlags)
	return cmd
}

// methodOptions adds the training options on which a plan depends. It adds either the common
// options, as flags, or the other ones. An estimate needs a tree that exists already.
func (o *infoOptions) methodOptions(f *pflag.FlagSet, common bool) {
	for _, p := range registry.Options() {
		if p.Common == common && (p.Group == method.GroupMethod && p.On != method.Graphs && !p.Learns ||
			p.Name == "tolerance" || p.Name == "schedule") {
			optionFlag(f, &o.Said, p, usageOf(&p))
		}
	}
}

func runInfo(ctx context.Context, a *app, o infoOptions) error {
	if err := oneStdin("info", "PATH and --hierarchy", o.Path, o.Hierarchy); err != nil {
		return err
	}
	o.Files = fs.Local{In: a.stdin}
	if o.plan {
		o.Plan = &o.on
	}
	i, err := o.look(ctx, a)
	if err != nil {
		return err
	}
	for k := range i.Notes {
		i.Notes[k] = option.Flags(i.Notes[k])
	}
	return a.print(i, func() { printInfo(a, i) })
}

// look describes the content of the path. Without a path it describes data of the given dimensions.
func (o *infoOptions) look(ctx context.Context, a *app) (*inspect.Info, error) {
	if o.like.Like == "" {
		return inspect.Look(ctx, o.Options, a.ui)
	}
	s, err := o.like.shape("info")
	if err != nil {
		return nil, err
	}
	return inspect.Shape(s, o.Options)
}

// maxPlanCores bounds --cores, because a plan iterates over that many cores.
const maxPlanCores = 1 << 24

func (o *infoOptions) planFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.plan, "plan", false, "print what a training would take on a cluster")
	f.StringVar(&o.data, "data", "", "with --plan: another way to give `PATH`")
	f.StringVar(&o.like.Like, "like", "", "with --plan and no PATH: data as generate would make them, a `NAME`")
	floatFlag(f, &o.like.Scale, "scale", 1, "of --like: a `NUMBER` above 0", above0)
	intFlag(f, &o.on.Workers, "workers", 0, 0, 1<<20, "`N` workers; 0: as many as the cores need")
	intFlag(f, &o.on.Slots, "slots", 8, 1, 1<<15, "`N` tasks at a time of a worker")
	intFlag(f, &o.on.Stores, "stores", 8, 1, 1<<20, "`N` shards of the store")
	o.on.Cores = []int{1, 8, 64, 512}
	f.Var((*coresValue)(&o.on.Cores), "cores", "`COUNTS` of cores to estimate the time for, ascending")
	bytesFlag(f, &o.on.Memory, "memory", 0, "`SIZE` of a worker's memory: whether the job fits")
}

// coresValue is a flag for a list of counts such as 1,8,64.
type coresValue []int

// String implements [pflag.Value].
func (v *coresValue) String() string {
	var words []string
	for _, n := range *v {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

// Type implements [pflag.Value].
func (v *coresValue) Type() string { return "counts" }

// Set implements [pflag.Value].
func (v *coresValue) Set(s string) error {
	var list coresValue
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > maxPlanCores || len(list) > 0 && n <= list[len(list)-1] {
			return valuef("must be rising numbers from 1 to %d, such as 1,8,64", maxPlanCores)
		}
		list = append(list, n)
	}
	*v = list
	return nil
}

// check checks the flags against the arguments and returns the path.
func (o *infoOptions) check(args []string) (string, error) {
	if err := registry.Fill(&taxonv1.Options{Method: o.Method}, o.Said); err != nil {
		var errs []error
		for line := range strings.SplitSeq(err.Error(), "\n") {
			errs = append(errs, option.Errorf("info: %s", line))
		}
		return "", option.Join(errs...)
	}
	switch {
	case !o.plan && (o.data != "" || o.like.Like != ""):
		return "", option.Errorf("info: --data and --like go with --plan")
	case o.like.Like != "" && o.Weights != "":
		return "", option.Errorf("info: --like has no instances that --instance-weights could weigh: leave it out")
	case o.like.Like != "" && (o.data != "" || len(args) > 0):
		return "", option.Errorf("info: --like needs no data: leave PATH out")
	case o.data != "" && len(args) > 0:
		return "", option.Errorf("info: PATH and --data name the same thing: give one of them")
	case o.data != "":
		return o.data, nil
	case len(args) > 0:
		return args[0], nil
	}
	return "", nil
}

// printInfo prints a description as text.
func printInfo(a *app, i *inspect.Info) {
	kind := map[string]string{"model": "a model", "dataset": "an ingested data set", "data": "a file of instances",
		"structure": "a class structure",
		"shape":     "data that generate would make"}[i.Kind]
	size := ""
	if i.Bytes > 0 {
		size = ", " + format.Bytes(i.Bytes)
	}
	fmt.Fprintf(a.stdout, "%s: %s%s\n", a.style.Bold(i.Path), kind, size)
	p := infoPrinter{a}
	p.training(i)
	p.data(i.Data)
	p.structure(i)
	p.memory(i.Memory)
	if i.Seconds > 0 {
		p.row("time", "about %s to %s, within a factor of three", format.Seconds(i.Seconds), i.Until)
	}
	p.plan(i.Plan)
	for _, n := range i.Notes {
		fmt.Fprintf(a.stdout, "  note: %s\n", n)
	}
}

type infoPrinter struct{ a *app }

func (p infoPrinter) row(name, format string, args ...any) {
	fmt.Fprintf(p.a.stdout, "  %-12s%s\n", name, fmt.Sprintf(format, args...))
}

// training prints the options and the report of a model.
func (p infoPrinter) training(i *inspect.Info) {
	if i.Report == nil {
		return
	}
	r := i.Report
	p.row("method", "%s", registry.Words(r.Method, r.Own))
	gap := "no certificate"
	if r.Gap != nil {
		gap = fmt.Sprintf("gap %.3g", *r.Gap)
	}
	p.row("training", "objective %.6g, %s, stopped by %s after %s, %s", r.Objective, gap, r.StoppedBy,
		format.Counted(int64(r.Sweeps), "sweep", "sweeps"), format.Seconds(r.Seconds))
	for _, c := range r.CapsBefore {
		p.row("before", "%s", capsThen(c))
	}
	if i.Pruned != nil {
		p.row("pruned", "threshold %.4g: weights that differed from the parent's by less became the parent's; %s others "+
			"kept, as %s; the sha256 is of the weights before", i.Pruned.Threshold, format.Count(i.Pruned.Entries),
			i.Pruned.Values)
		if c := r.Pruned; c != nil {
			p.row("cost", "%s", pruneCost(c))
		}
		p.row("weights", "sha256 %s", r.WeightsSHA256)
		return
	}
	p.row("weights", "%s stored, sha256 %s", format.Count(int64(i.Counts.Overrides)), r.WeightsSHA256)
}

// pruneCost describes how much pruning cost, as it was measured.
func pruneCost(c *model.PruneCost) string {
	if c.Instances == 0 {
		return "not measured: there were too few instances to hold some out"
	}
	on := format.Counted(int64(c.Instances), "instance", "instances")
	if c.HeldOut {
		on += fmt.Sprintf(" held out of further trainings, whose models were pruned alike (costs %s points)", c.Lost())
	}
	return fmt.Sprintf("micro F1 %s %% before, %s %% after, on %s", measure.Percent(c.MicroF1), measure.Percent(c.Pruned),
		on)
}

func (p infoPrinter) data(d *inspect.Data) {
	if d == nil {
		return
	}
	p.row("instances", "%s%s", format.Count(d.Instances), prefixed(d.Form))
	if d.LeftOut > 0 {
		p.row("left out", "%s of weight 0", format.Count(d.LeftOut))
	}
	if d.Weights != 0 {
		p.row("weighing", "%.6g in all", d.Weights)
	}
	if d.Features != nil {
		p.row("features", "%s", format.Count(*d.Features))
	}
	if d.Nonzeros != nil {
		p.row("nonzeros", "%s%s", format.Count(*d.Nonzeros), perInstance(*d.Nonzeros, d.Instances))
	}
	p.row("classes", "%s%s", format.Count(d.Labels), labelsEach(d))
	if s := d.ClassSizes; s != nil {
		p.row("class sizes", "least %s, median %s, mean %.1f, most %s", format.Count(s.Min), format.Count(s.Median), s.Mean,
			format.Count(s.Max))
		var bins []string
		for _, b := range s.Bins {
			to := "+"
			if b.To != nil {
				to = fmt.Sprintf("-%d", *b.To)
			}
			bins = append(bins, fmt.Sprintf("%d%s: %s", b.From, to, format.Count(int64(b.Classes))))
		}
		p.row("", "%s", strings.Join(bins, "   "))
	}
}

func labelsEach(d *inspect.Data) string {
	if d.Instances == 0 {
		return ""
	}
	return fmt.Sprintf(", %.2f labels an instance", d.LabelsPerInstance)
}

func prefixed(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

func (p infoPrinter) structure(i *inspect.Info) {
	if s := i.Structure; s != nil {
		p.row("structure", "%s, %s, %s, %s, depth %d", format.Counted(int64(s.Nodes), "node", "nodes"),
			format.Counted(int64(s.Edges), "edge", "edges"),
			format.Counted(int64(s.Roots), "root", "roots"), format.Counted(int64(s.Leaves), "leaf", "leaves"), s.Depth)
		if s.MultiParent > 0 {
			p.row("", "%s with more than one parent", format.Counted(int64(s.MultiParent), "node", "nodes"))
		}
		if i.Data != nil {
			p.row("", "classes: %s at leaves, %s at internal nodes, %s outside", format.Count(int64(s.LabelsLeaves)),
				format.Count(int64(s.LabelsInside)), format.Count(int64(s.LabelsAbsent)))
		}
	}
	if t := i.Tree; t != nil {
		virtual := ""
		if t.Virtual {
			virtual = ", a virtual root"
		}
		p.row("tree", "%s: %s (%s for labels of internal nodes), %s internal%s, depth %d", format.Counted(int64(t.Nodes),
			"node", "nodes"), format.Counted(int64(t.Terminals), "terminal", "terminals"),
			format.Count(int64(t.Spawned)), format.Count(int64(t.Internals)), virtual, t.Depth)
	}
}

func (p infoPrinter) memory(m *footprint.Memory) {
	if m != nil {
		p.row("memory", "about %s to train (data %s, state %s, scratch %s, program and garbage %s); with train "+
			"--memory at least %s", format.Bytes(int64(m.Total)), format.Bytes(int64(m.Data)), format.Bytes(int64(m.State)),
			format.Bytes(int64(m.Scratch)), format.Bytes(int64(m.Process)), format.Bytes(int64(m.Least)))
	}
}

func (p infoPrinter) plan(i *estimate.Info) {
	if i == nil {
		return
	}
	var items []string
	for _, list := range i.Items {
		items = append(items, format.Counted(int64(list.Count), list.Kind, list.Kind+"s"))
	}
	p.row("plan", "%s in %s: %s a sweep, about %s to %s", format.Counted(int64(i.Terminals), "terminal", "terminals"),
		strings.Join(items, ", "),
		format.Counted(int64(i.TasksSweep), "task", "tasks"), format.Counted(int64(i.Sweeps), "sweep", "sweeps"), i.Until)
	visits := ""
	if i.Visits > 0 {
		visits = fmt.Sprintf("%.3g visits (nonzeros times classes), ", i.Visits)
	}
	p.row("sweep", "%sabout %s written, %s moved", visits, format.Bytes(i.StoredSweep), format.Bytes(i.BytesSweep))
	fits := ""
	if i.Fits != nil && *i.Fits {
		fits = ": it fits"
	} else if i.Fits != nil {
		fits = ": it does not fit; give more memory or fewer slots"
	}
	p.row("needs", "about %s a worker (with --memory %s or more), %s a store%s", format.Bytes(i.WorkerMemory),
		format.Bytes(i.WorkerLeast), format.Bytes(i.StoreMemory), fits)
	accuracy := "within a factor of three"
	if i.CPUSeconds < factorHoldsFrom {
		accuracy = "likely less: short trainings are overestimated"
	}
	p.row("CPU", "about %s, %s", formatLong(i.CPUSeconds), accuracy)
	width := max(4, len(format.Count(int64(i.Speedup[len(i.Speedup)-1].Cores))))
	for k, s := range i.Speedup {
		name := ""
		if k == 0 {
			name = "cores"
		}
		limit := ""
		if s.Bottleneck != "none" {
			limit = "; limit: " + s.Bottleneck
		}
		speedup := strconv.FormatFloat(s.Speedup, 'g', 3, 64)
		if s.Speedup >= 100 {
			speedup = format.Count(int64(s.Speedup))
		}
		p.row(name, "%*s: %s, %s times as fast%s", width, format.Count(int64(s.Cores)), formatLong(s.Seconds), speedup, limit)
	}
}

// factorHoldsFrom is a time in seconds. Estimates of at least this length are right within a factor
// of three, and shorter ones may be further off.
const factorHoldsFrom = 20

// formatLong formats a duration, with hours if it is long.
func formatLong(seconds float64) string {
	if seconds >= 7200 {
		return fmt.Sprintf("%.3g h", seconds/3600)
	}
	return format.Seconds(seconds)
}
