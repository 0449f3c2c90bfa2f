package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/inspect"
	"taxon/internal/fs"
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
	return a.print(i, func() { i.Print(a.stdout, a.style.Bold) })
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
