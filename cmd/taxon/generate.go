package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/data/generate"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// generateOptions holds the flags of generate.
type generateOptions struct {
	shape   shapeOptions
	seed    int
	out     string
	force   bool
	threads int
}

// shapeOptions holds the flags that make a generate.Shape.
type shapeOptions struct {
	generate.Request
	tree bool
}

// newGenerateCmd returns the verb generate, which makes data of a given shape.
func newGenerateCmd(a *app) *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:     "generate --like NAME --out DIR",
		GroupID: groupData,
		Short:   "synthetic data of a given shape and size",
		Long: "Writes train.svm, test.svm and hierarchy.txt of a stated shape: class sizes, words and numbers of children " +
			"follow power laws, " +
			"relatives in the hierarchy share words. --like names the data set whose counts are imitated, --scale " +
			"shrinks them; other flags " +
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
	choiceFlag(f, &o.Like, "like", "lwiki", generate.Names(), "the data set to imitate: "+joinNames(generate.Names()))
	floatFlag(f, &o.Scale, "scale", 1, "size as a share of it: a `NUMBER` above 0", above0)
	f.BoolVar(&o.tree, "tree", false, "one parent a node (the default)")
	f.BoolVar(&o.DAG, "dag", false, "further parents for some nodes")
	intFlag(f, &o.Instances, "instances", 0, 1, 1<<31-1, "`N` training instances")
	intFlag(f, &o.Test, "test-instances", 0, 1, 1<<31-1, "`N` test instances")
	intFlag(f, &o.Classes, "classes", 0, 2, 1<<27, "`N` classes, the leaves of the hierarchy")
	intFlag(f, &o.Internals, "internals", 0, 1, 1<<27, "`N` inner nodes of the hierarchy")
	intFlag(f, &o.Features, "features", 0, 10, 1<<27, "`N` features")
	intFlag(f, &o.Depth, "depth", 0, 1, 1<<20, "at most `N` edges from the root to a class, by first parents")
	floatFlag(f, &o.Nonzeros, "nonzeros", 0, "mean `NUMBER` of features an instance", from1To(10_000))
	floatFlag(f, &o.Labels, "labels", 0, "mean `NUMBER` of labels an instance", from1To(100))
}

// from1To accepts numbers from 1 to an upper bound. The flags for means per instance use it.
func from1To(most float64) func(float64) string {
	return func(x float64) string {
		if !(x >= 1 && x <= most) {
			return fmt.Sprintf("must be from 1 to %g", most)
		}
		return ""
	}
}

// joinNames joins names as a sentence lists them.
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

// shape returns the shape that the flags describe.
func (o *shapeOptions) shape(verb string) (generate.Shape, error) {
	if o.DAG && o.tree {
		return generate.Shape{}, option.Errorf("%s: --tree and --dag exclude each other", verb)
	}
	s, err := o.Shape()
	if err != nil {
		return s, option.Errorf("%s: %v", verb, err)
	}
	return s, nil
}

func runGenerate(cmd *cobra.Command, a *app, o generateOptions) error {
	s, err := o.shape.shape("generate")
	if err != nil {
		return err
	}
	line := a.ui.Start("generate", int64(s.Instances+s.Test))
	r, err := generate.Write(cmd.Context(), generate.Options{Shape: s, Seed: uint64(o.seed), Out: o.out, Replace: o.force,
		Threads:  o.threads,
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

// printGenerated prints a report as text.
func printGenerated(a *app, out string, r *generate.Report) {
	s := r.Shape
	row := func(name, value string) { fmt.Fprintf(a.stdout, "  %-12s%s\n", name, value) }
	fmt.Fprintf(a.stdout, "%s\n", a.style.Bold(out))
	row("instances", fmt.Sprintf("%s, and %s for testing", format.Count(int64(s.Instances)), format.Count(int64(s.Test))))
	row("features", format.Count(int64(s.Features)))
	row("classes", format.Count(int64(s.Classes))+format.PerInstance(r.Labels, int64(s.Instances)))
	if r.Nodes > 0 {
		row("hierarchy", fmt.Sprintf("%s nodes, %s edges", format.Count(int64(r.Nodes)), format.Count(int64(r.Edges))))
	}
	row("size", format.Bytes(r.Bytes))
	next := fmt.Sprintf("taxon train --data %s", fs.Join(out, generate.TrainFile))
	if r.Nodes > 0 {
		next += " --hierarchy " + fs.Join(out, generate.HierarchyFile)
	}
	a.ui.Note("train on it: %s --out MODEL", next)
}
