package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/generate"
)

// generateOptions are the flags of generate.
type generateOptions struct {
	shape   shapeOptions
	seed    int
	out     string
	force   bool
	threads int
}

// shapeOptions are the flags that make a generate.Shape; zero values leave what --like says.
type shapeOptions struct {
	like      string
	scale     float64
	dag, tree bool
	instances int
	test      int
	classes   int
	internals int
	features  int
	depth     int
	nonzeros  float64
	labels    float64
}

func newGenerateCmd(a *app) *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:     "generate --like NAME --out DIR",
		GroupID: groupData,
		Short:   "synthetic data of a given shape and size",
		Long: "Writes train.svm, test.svm and hierarchy.txt of a stated shape: class sizes, words and numbers of children follow power laws, " +
			"relatives in the hierarchy share words. --like names the data set whose counts are imitated, --scale shrinks them; other flags " +
			"override single counts. The same flags and seed give the same bytes, whatever the threads.",
		Example: "taxon generate --like lwiki --scale 0.001 --out small\n" +
			"taxon generate --like flat --instances 5000 --classes 100 --seed 7 --out flat",
		RunE: func(cmd *cobra.Command, _ []string) error { return runGenerate(cmd, a, o) },
	}
	flagGroup(cmd, "Shape", o.shape.flags)
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		intFlag(f, &o.seed, "seed", 0, 0, 1<<62, "seed of all that is random: a whole number `N`")
		f.StringVar(&o.out, "out", "", "the `DIR` to make")
		f.BoolVar(&o.force, "force", false, "replace generated data that are there already")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		intFlag(f, &o.threads, "threads", 0, 0, 1<<15, "`N` threads, 0 for all cores; they change no result")
	})
	require(cmd, "out")
	return cmd
}

func (o *shapeOptions) flags(f *pflag.FlagSet) {
	choiceFlag(f, &o.like, "like", "lwiki", generate.Names(), "the data set to imitate: "+joinNames(generate.Names()))
	floatFlag(f, &o.scale, "scale", 1, "size as a share of it: a `NUMBER` above 0", above0)
	f.BoolVar(&o.tree, "tree", false, "one parent a node (the default)")
	f.BoolVar(&o.dag, "dag", false, "further parents for some nodes")
	intFlag(f, &o.instances, "instances", 0, 0, 1<<31-1, "`N` training instances")
	intFlag(f, &o.test, "test-instances", 0, 0, 1<<31-1, "`N` test instances")
	intFlag(f, &o.classes, "classes", 0, 0, 1<<27, "`N` classes, the leaves of the hierarchy")
	intFlag(f, &o.internals, "internals", 0, 0, 1<<27, "`N` inner nodes of the hierarchy")
	intFlag(f, &o.features, "features", 0, 0, 1<<27, "`N` features")
	intFlag(f, &o.depth, "depth", 0, 0, 1<<20, "at most `N` edges from the root to a class")
	floatFlag(f, &o.nonzeros, "nonzeros", 0, "mean `NUMBER` of features an instance", atLeast0)
	floatFlag(f, &o.labels, "labels", 0, "mean `NUMBER` of labels an instance", atLeast0)
}

func joinNames(names []string) string {
	out := ""
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			out += " or "
		case i > 0:
			out += ", "
		}
		out += n
	}
	return out
}

// shape is what the flags ask for.
func (o *shapeOptions) shape(verb string) (generate.Shape, error) {
	if o.dag && o.tree {
		return generate.Shape{}, usagef("%s: --tree and --dag exclude each other", verb)
	}
	s, err := generate.Like(o.like, o.scale)
	if err != nil {
		return s, usagef("%s: %v", verb, err)
	}
	for _, c := range []struct {
		to   *int
		from int
	}{{&s.Instances, o.instances}, {&s.Test, o.test}, {&s.Classes, o.classes}, {&s.Internals, o.internals}, {&s.Features, o.features}, {&s.Depth, o.depth}} {
		if c.from > 0 {
			*c.to = c.from
		}
	}
	if o.classes > 0 && o.internals == 0 { // keep the mean number of children
		s.Internals = min(s.Internals, max(1, s.Classes/2))
	}
	if o.nonzeros > 0 {
		s.Nonzeros = o.nonzeros
	}
	if o.labels > 0 {
		s.Labels = o.labels
	}
	s.DAG = o.dag
	if err := s.Validate(); err != nil {
		return s, usagef("%s: %v", verb, err)
	}
	return s, nil
}

func runGenerate(cmd *cobra.Command, a *app, o generateOptions) error {
	s, err := o.shape.shape("generate")
	if err != nil {
		return err
	}
	line := a.ui.Start("generate", int64(s.Instances+s.Test))
	r, err := generate.Write(cmd.Context(), generate.Options{Shape: s, Seed: uint64(o.seed), Out: o.out, Replace: o.force, Threads: o.threads,
		Progress: func(done, _ int64) { line.Set(done) }})
	line.Done()
	if err != nil {
		return fs.Explain(o.out, err)
	}
	if a.json {
		return a.printJSON(struct {
			Out string `json:"out"`
			*generate.Report
		}{o.out, r})
	}
	printGenerated(a, o.out, r)
	return nil
}

func printGenerated(a *app, out string, r *generate.Report) {
	s := r.Shape
	row := func(name, value string) { fmt.Fprintf(a.stdout, "  %-12s%s\n", name, value) }
	fmt.Fprintf(a.stdout, "%s\n", a.style.bold(out))
	row("instances", fmt.Sprintf("%s, and %s for testing", formatCount(int64(s.Instances)), formatCount(int64(s.Test))))
	row("features", formatCount(int64(s.Features)))
	row("classes", formatCount(int64(s.Classes))+perInstance(r.Labels, int64(s.Instances)))
	if r.Nodes > 0 {
		row("hierarchy", fmt.Sprintf("%s nodes, %s edges", formatCount(int64(r.Nodes)), formatCount(int64(r.Edges))))
	}
	row("size", formatBytes(r.Bytes))
	next := fmt.Sprintf("taxon train --data %s", fs.Join(out, generate.TrainFile))
	if r.Nodes > 0 {
		next += " --hierarchy " + fs.Join(out, generate.HierarchyFile)
	}
	a.ui.Note("train on it: %s --out MODEL", next)
}
