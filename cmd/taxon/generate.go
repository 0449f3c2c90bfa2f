package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/generate"
	"taxon/internal/human"
)

// generateOptions are the flags of generate.
type generateOptions struct {
	shape   shapeOptions
	seed    int
	out     string
	force   bool
	threads int
}

// shapeOptions are the flags that make a generate.Shape; zero values, which cannot be given, leave
// what --like says.
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
	intFlag(f, &o.instances, "instances", 0, 1, 1<<31-1, "`N` training instances")
	intFlag(f, &o.test, "test-instances", 0, 1, 1<<31-1, "`N` test instances")
	intFlag(f, &o.classes, "classes", 0, 2, 1<<27, "`N` classes, the leaves of the hierarchy")
	intFlag(f, &o.internals, "internals", 0, 1, 1<<27, "`N` inner nodes of the hierarchy")
	intFlag(f, &o.features, "features", 0, 10, 1<<27, "`N` features")
	intFlag(f, &o.depth, "depth", 0, 1, 1<<20, "at most `N` edges from the root to a class, by first parents")
	floatFlag(f, &o.nonzeros, "nonzeros", 0, "mean `NUMBER` of features an instance", from1To(10_000))
	floatFlag(f, &o.labels, "labels", 0, "mean `NUMBER` of labels an instance", from1To(100))
}

// from1To accepts a mean of an instance.
func from1To(most float64) func(float64) string {
	return func(x float64) string {
		if !(x >= 1 && x <= most) {
			return fmt.Sprintf("must be from 1 to %g", most)
		}
		return ""
	}
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
		return generate.Shape{}, exit.Usagef("%s: --tree and --dag exclude each other", verb)
	}
	s, err := generate.Like(o.like, o.scale)
	if err != nil {
		return s, exit.Usagef("%s: %v", verb, err)
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
	if o.depth == 1 && o.internals == 0 { // all classes below the root
		s.Internals = min(s.Internals, 1)
	}
	if o.nonzeros > 0 {
		s.Nonzeros = o.nonzeros
	}
	if o.labels > 0 {
		s.Labels = o.labels
	}
	s.DAG = o.dag
	if err := o.fits(verb, s); err != nil {
		return s, err
	}
	if err := s.Validate(); err != nil {
		return s, exit.Usagef("%s: %v", verb, err)
	}
	return s, nil
}

// fits refuses counts that exclude each other by the flags that they come from.
func (o *shapeOptions) fits(verb string, s generate.Shape) error {
	from := func(given int, flag string, n int) string {
		if given > 0 {
			return fmt.Sprintf("%s %d", flag, n)
		}
		return fmt.Sprintf("--scale %g (%d)", o.scale, n)
	}
	switch {
	case s.Classes > s.Instances && o.instances == 0 && o.classes == 0:
		return exit.Usagef("%s: --scale %g leaves %s for %d classes, and each class needs one: choose a larger --scale", verb, o.scale,
			human.Counted(int64(s.Instances), "instance", "instances"), s.Classes)
	case s.Classes > s.Instances:
		return exit.Usagef("%s: more classes, by %s, than instances, by %s: each class needs one", verb,
			from(o.classes, "--classes", s.Classes), from(o.instances, "--instances", s.Instances))
	case s.Internals > s.Classes:
		return exit.Usagef("%s: --internals %d: at most as many as classes, %d", verb, s.Internals, s.Classes)
	case s.Depth == 1 && s.Internals > 1:
		return exit.Usagef("%s: --depth 1 leaves room for one inner node, the root, not for --internals %d", verb, s.Internals)
	}
	return nil
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
	fmt.Fprintf(a.stdout, "%s\n", a.style.Bold(out))
	row("instances", fmt.Sprintf("%s, and %s for testing", human.Count(int64(s.Instances)), human.Count(int64(s.Test))))
	row("features", human.Count(int64(s.Features)))
	row("classes", human.Count(int64(s.Classes))+perInstance(r.Labels, int64(s.Instances)))
	if r.Nodes > 0 {
		row("hierarchy", fmt.Sprintf("%s nodes, %s edges", human.Count(int64(r.Nodes)), human.Count(int64(r.Edges))))
	}
	row("size", human.Bytes(r.Bytes))
	next := fmt.Sprintf("taxon train --data %s", fs.Join(out, generate.TrainFile))
	if r.Nodes > 0 {
		next += " --hierarchy " + fs.Join(out, generate.HierarchyFile)
	}
	a.ui.Note("train on it: %s --out MODEL", next)
}
