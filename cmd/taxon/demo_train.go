package main

import (
	"context"

	"github.com/spf13/cobra"

	"taxon/internal/model"
	"taxon/internal/train"
)

// newDemoVerb is the demo over the real trainer.
func newDemoVerb(a *app) *cobra.Command { return newDemoCmd(a, trainForDemo) }

// trainForDemo trains as `train --text` with its defaults does.
func trainForDemo(ctx context.Context, a *app, run demoRun) (*model.Report, error) {
	o := trainDefaults()
	o.data, o.text, o.hierarchy, o.out = []string{run.Data}, true, run.Hierarchy, run.Out
	o.method, o.gap, o.threads = run.Method, run.Gap, run.Threads
	return train.Run(ctx, o.options(a), a.told())
}

// trainDefaults are train's options when no flag is given.
func trainDefaults() *trainOptions {
	o := &trainOptions{}
	o.defineFlags(&cobra.Command{})
	return o
}
