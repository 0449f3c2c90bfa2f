package main

import (
	"context"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/app/demo"
	"taxon/internal/app/train"
	"taxon/internal/model"
)

// newDemoVerb returns the verb demo with the real trainer.
func newDemoVerb(a *app) *cobra.Command {
	return newDemoCmd(a, func(ctx context.Context, t demo.Training) (*model.Report, error) {
		// The training is that of `train --text` with its defaults.
		o := trainDefaults()
		o.Data, o.Text, o.Hierarchy, o.Out = []string{t.Data}, true, t.Hierarchy, t.Out
		o.Job.Method, o.Threads = t.Method, t.Threads
		o.Job.Set("gap", t.Gap)
		return train.Run(ctx, o.options(a), a.ui)
	})
}

// trainDefaults returns train's options when no flag is given.
func trainDefaults() *trainOptions {
	o := &trainOptions{}
	o.defineFlags(&cobra.Command{})
	return o
}

// newDemoCmd returns the verb demo with a given trainer.
func newDemoCmd(a *app, train func(context.Context, demo.Training) (*model.Report, error)) *cobra.Command {
	o := demo.Options{Train: train}
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupStart,
		Short:   "train with and without a hierarchy on text inside this binary, and compare",
		Long: "Trains two classifiers on real text that ships inside this binary (WordNet's glosses of animals, food and " +
			"artifacts: some 8,000 documents, 500 classes, a hierarchy of 18 levels), one blind to the hierarchy (bsvm) and " +
			"one regularised along it (rr-svm), tests both on documents that neither has seen, and shows what the " +
			"hierarchy gained. It takes less than a minute on two cores and leaves nothing behind unless --keep names a folder.",
		Example: "taxon demo\ntaxon demo --keep demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.json {
				o.Began = func(r *demo.Report) { r.PrintHead(a.stdout, a.style) }
			}
			r, err := demo.Run(cmd.Context(), o, a.ui)
			if err != nil {
				return err
			}
			return a.print(r, func() { r.Print(a.stdout, a.style) })
		},
	}
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.Keep, "keep", "", "`DIR` that keeps the texts, the hierarchy and both models")
	})
	flagGroup(cmd, "Training", func(f *pflag.FlagSet) {
		floatFlag(f, &o.Gap, "gap", 1e-2, "stop when no weights could lower the objective by more than this share, the "+
			"certified relative gap", above0to1)
		intFlag(f, &o.Threads, "threads", 0, 0, math.MaxInt, "`N` threads, 0 for all cores")
	})
	return cmd
}
